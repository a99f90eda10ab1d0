-- A refused call succeeds after a role with the necessary rights has executed the statement in the error's hint.
\pset format unaligned
\pset tuples_only on
CREATE ROLE "regress ""odd""" LOGIN;
CREATE SCHEMA "Odd ""schema""";
GRANT USAGE ON SCHEMA awty TO "regress ""odd""";
GRANT USAGE, CREATE ON SCHEMA "Odd ""schema""" TO PUBLIC;
-- Makes the call as role, then executes the hint and ending as healer, and then repeats the call.
CREATE FUNCTION test.heals(role name, call text, healer name DEFAULT 'postgres', ending text DEFAULT '') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    hint text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    answer := test.raises(call);
    RESET ROLE;
    hint := rtrim(regexp_replace(substring(answer FROM 'HINT: (.*)$'), '^[^:]*execute: ', ''), '…') || ending;
    RETURN NEXT replace(answer, current_database(), 'DATABASE');
    EXECUTE format('SET LOCAL ROLE %I', healer);
    EXECUTE replace(hint, '''schema.function''', '''shop.unpaid''');
    EXECUTE format('SET LOCAL ROLE %I', role);
    RETURN NEXT '  then: ' || test.raises(call);
    RESET ROLE;
END $$;
SET ROLE "regress ""odd""";
CREATE FUNCTION "Odd ""schema"""."F""()"(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
REVOKE ALL ON FUNCTION "Odd ""schema"""."F""()"(awty.future_job) FROM PUBLIC;
CREATE FUNCTION "Odd ""schema""".odds(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
RESET ROLE;

SELECT test.heals('regress_shop', $$SELECT awty.schedule('orders', '1', 'Un"paid''s', after => '1 hour')$$, 'regress_shop');
SELECT test.heals('regress_app', $$SELECT awty.schedule('orders', '1', 'Un"paid''s', after => '1 hour')$$, 'regress_shop');
SELECT awty.unregister('Un"paid''s');
SET ROLE regress_shop;
SELECT awty.register('it''s', 'shop.unpaid', max_horizon => '1 day');
RESET ROLE;
SELECT regexp_replace(line, 'time \S+ \S+', 'time T') FROM test.heals('regress_shop', $$SELECT awty.schedule('orders', '1', 'it''s', after => '9 years 364 days')$$) AS line;
SELECT test.heals('regress "odd"', $$SELECT awty.schedule('orders', '1', 'it''s', after => '1 hour')$$);
SELECT test.heals('regress_shop', $$SELECT awty.register('odd', '"Odd ""schema"""."F""()"')$$);
SELECT test.heals('regress_shop', $$SELECT awty.register('odd2', 'shop.unpaid', run_as => 'regress "odd"')$$);
SELECT test.heals('regress_shop', $$SELECT awty.register('made', '"Odd ""schema""".made')$$, 'regress_shop', $$LANGUAGE sql AS 'SELECT NULL::timestamptz'$$);
SELECT current_database() AS database
\gset
REVOKE CONNECT ON DATABASE :"database" FROM PUBLIC;
SELECT test.heals('regress "odd"', $$SELECT awty.register('mine', '"Odd ""schema""".odds')$$);
GRANT CONNECT ON DATABASE :"database" TO PUBLIC;

SELECT job, awty.unregister(job) FROM awty.job ORDER BY job;
REVOKE "regress ""odd""" FROM regress_shop;
REVOKE ALL ON DATABASE :"database" FROM "regress ""odd""";
SET client_min_messages = warning;
DROP SCHEMA "Odd ""schema""" CASCADE;
DROP OWNED BY "regress ""odd""";
DROP ROLE "regress ""odd""";
DROP FUNCTION test.heals;
