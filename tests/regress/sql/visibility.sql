-- A role sees only the rows of jobs whose role it can become, and the checks that it scheduled.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_carol LOGIN;
CREATE ROLE regress_dave LOGIN;
CREATE ROLE regress_trudy LOGIN;
GRANT USAGE ON SCHEMA awty TO regress_carol, regress_dave, regress_trudy;
CREATE FUNCTION test.see() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' | ', (SELECT string_agg(job, ' ' ORDER BY job) FROM awty.job),
        (SELECT string_agg(entity_name || '/' || entity_key || '/' || job, ' ' ORDER BY entity_name, entity_key, job) FROM awty.future_job),
        (SELECT string_agg(entity_name || '/' || entity_key || '/' || job || '/' || outcome, ' ' ORDER BY id) FROM awty.future_job_history WHERE entity_name LIKE 'secret%')) $$;
GRANT CREATE ON SCHEMA shop TO regress_carol;
CREATE FUNCTION shop.of_trudy(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
SET ROLE regress_carol;
CREATE FUNCTION shop.of_carol(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
SELECT awty.register('carols', 'shop.of_carol');
SELECT awty.schedule('secret_carol', '1', 'carols', after => '1 hour', args => '{"pin": 1111}') > 0;
SELECT awty.schedule('secret_carol', '2', 'carols', after => '1 hour') > 0;
SELECT awty.cancel('secret_carol', '2');
SET ROLE regress_trudy;
SELECT awty.register('trudys', 'shop.of_trudy');
SELECT awty.schedule('secret_trudy', '0', 'trudys', after => '1 hour', args => '{"pin": 0}') > 0;
SELECT awty.schedule('secret_trudy', '2', 'trudys', after => '1 hour', args => '{"pin": 0}') > 0;
SELECT awty.cancel('secret_trudy', '2');

SELECT test.see();
SET ROLE regress_carol;
SELECT test.see();
SET ROLE regress_dave;
SELECT test.see() = '';
RESET ROLE;
SELECT test.see();
-- A role that may schedule reads the job and its checks. Other roles read only the checks that they scheduled.
SET ROLE regress_carol;
SELECT awty.allow('carols', 'regress_dave');
SET ROLE regress_dave;
SELECT test.see() = '';
SELECT awty.schedule('secret_app', '1', 'carols', after => '1 hour') > 0;
SELECT test.see();
SET ROLE regress_carol;
SELECT test.see();
SET ROLE regress_dave;
SELECT awty.cancel('secret_app', '1');
SELECT test.see();
SET ROLE regress_carol;
SELECT awty.allow('carols', 'regress_dave', 'read');
SET ROLE regress_dave;
SELECT test.see();
SELECT test.sqlstate($$SELECT awty.schedule('secret_app', '1', 'carols', after => '1 hour')$$);
SET ROLE regress_carol;
SELECT awty.disallow('carols', 'regress_dave');
SET ROLE regress_dave;
SELECT test.see();
-- A member of the role sees the rows until the membership ends.
RESET ROLE;
GRANT regress_carol TO regress_dave;
SET ROLE regress_dave;
SELECT test.see();
RESET ROLE;
REVOKE regress_carol FROM regress_dave;
SET ROLE regress_dave;
SELECT test.see();

-- A cheap function that leaks its arguments gets only rows that the role may see.
SET ROLE regress_trudy;
CREATE FUNCTION test.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE NOTICE 'leaked: %', $1; RETURN true; END $$;
SELECT count(*) FROM awty.job WHERE test.leak(job);
SELECT count(*) FROM awty.future_job WHERE test.leak(entity_name);
SELECT count(*) FROM awty.future_job AS f WHERE test.leak(f::text) AND f.args IS NOT NULL AND f.entity_name LIKE '%carol%';
SELECT count(*) FROM awty.future_job_history WHERE test.leak(entity_name);
SELECT count(*) FROM awty.status WHERE test.leak(database::text) AND pending < 0 AND database = 'x';
CREATE OPERATOR test.=== (leftarg = text, rightarg = text, procedure = texteq, restrict = eqsel);
SELECT count(*) FROM awty.future_job WHERE entity_name OPERATOR(test.===) 'secret_carol';
DROP OPERATOR test.=== (text, text);
-- Errors that depend on a value do not reveal other rows: trudy's own 0 raises the error, but carol's 1111 does not.
SELECT test.sqlstate($$SELECT 1 / (args ->> 'pin')::integer FROM awty.future_job WHERE entity_name = 'secret_trudy'$$);
SELECT test.sqlstate($$SELECT 1 / ((args ->> 'pin')::integer - 1111) FROM awty.future_job WHERE entity_key = '1'$$);
SELECT test.sqlstate($$SELECT (entity_name || 'x')::integer FROM awty.future_job_history WHERE entity_name NOT LIKE '%trudy'$$);
-- The planner's estimates, the statistics and the partitions reveal nothing.
RESET ROLE;
ANALYZE awty.future_job;
ANALYZE awty.future_job_history;
SET ROLE regress_trudy;
SELECT count(*) FROM pg_stats WHERE schemaname = 'awty';
SELECT test.sqlstate('SELECT * FROM awty_internal.future_job_history_default');
SELECT test.sqlstate('SELECT * FROM awty_internal.check_stat'), test.sqlstate('SELECT * FROM awty_internal.in_flight'), test.sqlstate('SELECT * FROM awty_internal.origin');
-- A role that switches the policies off gets an error instead of rows.
SET row_security = off;
SELECT test.sqlstate('SELECT * FROM awty.future_job'), test.sqlstate('SELECT * FROM awty.job'), test.sqlstate('SELECT * FROM awty.future_job_history');
-- awty's own functions ignore row_security = off.
SELECT awty.schedule('secret_trudy', '3', 'trudys', after => '1 hour') > 0, awty.cancel('secret_trudy', '3');
RESET row_security;

-- A call on another role's check fails: the check does not exist, or permission is denied.
SELECT test.sqlstate($$SELECT awty.release('secret_carol', '1')$$), test.sqlstate($$SELECT awty.release('secret_carol', '1', 'carols')$$);
SELECT awty.cancel('secret_carol', '1');
SELECT test.sqlstate($$SELECT awty.cancel('secret_carol', '1', 'carols')$$), test.sqlstate($$SELECT awty.schedule('secret_carol', '1', 'carols', after => '0')$$),
    test.sqlstate($$SELECT awty.alter('carols', max_checks => 1)$$), test.sqlstate($$SELECT awty.next_slot(now(), 'carols')$$);
-- next_slot() does not reveal whether a job of that name exists.
SELECT test.raises($$SELECT awty.next_slot(now(), 'carols')$$)
     = replace(test.raises($$SELECT awty.next_slot(now(), 'planet')$$), 'planet', 'carols');
-- awty refuses a name that another role's job has, and reveals nothing else about this job.
SELECT test.raises($$SELECT awty.register('carols', 'shop.of_trudy')$$);

SET ROLE regress_carol;
SELECT awty.unregister('carols');
SELECT test.see();
SET ROLE regress_trudy;
SELECT awty.unregister('trudys');
SELECT test.see();
SET ROLE regress_dave;
SELECT test.see();
RESET ROLE;
DROP FUNCTION test.see, test.leak, shop.of_carol, shop.of_trudy;
DROP OWNED BY regress_carol, regress_dave, regress_trudy;
DROP ROLE regress_carol, regress_dave, regress_trudy;
