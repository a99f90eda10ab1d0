\pset format unaligned
\pset tuples_only on
GRANT CREATE ON SCHEMA shop TO regress_mallory;
SET ROLE regress_shop;
CREATE FUNCTION test.register(function text) RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.register(%L, %L)', 'new', function)) $$;

SELECT left(function, 80), test.register(function) FROM unnest(ARRAY['shop.', '.unpaid', '.', 'shop..unpaid', 'a.shop.unpaid', '"shop.unpaid', 'shop."unpaid', '""',
    'shop unpaid', 'shop.unpaid()', 'shop.unpaid(awty.future_job)', 'shop.unpaid(future_job)', 'shop.unpaid; SELECT 1', 'shop.unpiad', 'nowhere.unpaid',
    'unpaid', '"Shop".unpaid', '"shop.unpaid"', '"Shop"."un""paid()"', repeat('x', 1000)]) AS function;
SELECT oid AS oid FROM pg_proc WHERE proname = 'unpaid'
\gset
SELECT test.raises(format('SELECT awty.register(%L, %L)', 'new', :'oid')) ~ '^42883: function "\d+"\(awty.future_job\) does not exist';

CREATE FUNCTION shop.wrong_argument(bigint) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.no_argument() RETURNS timestamp LANGUAGE sql AS 'SELECT now()::timestamp';
CREATE FUNCTION shop.two_arguments(awty.future_job, text) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.with_default(awty.future_job, text DEFAULT 'x') RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.any_element(anyelement) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.any_record(record) RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RETURN now(); END';
CREATE FUNCTION shop.of_history(awty.future_job_history) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.rest(VARIADIC awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS $$ SELECT '{}'::timestamptz[] $$;
CREATE FUNCTION shop.answer(j awty.future_job, OUT t timestamptz) LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.two_answers(j awty.future_job, OUT t timestamptz, OUT u timestamptz) LANGUAGE sql AS 'SELECT now(), now()';
SELECT function, test.register('shop.' || function) FROM unnest(ARRAY['wrong_argument', 'no_argument', 'two_arguments', 'with_default',
    'any_element', 'any_record', 'of_history', 'two_answers']) AS function;
-- Both functions have the right signature, because an OUT parameter is a result, and VARIADIC is an array.
SELECT function, awty.register(function, 'shop.' || function), awty.unregister(function) FROM unnest('{answer, rest}'::text[]) AS function;
CREATE FUNCTION shop.with_default(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
SELECT awty.register('with_default', 'shop.with_default'), awty.unregister('with_default');

-- These functions have the right arguments, but are no plain functions or return a wrong type.
CREATE PROCEDURE shop.a_procedure(awty.future_job) LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.step(timestamptz, awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE AGGREGATE shop.an_aggregate(awty.future_job) (sfunc = shop.step, stype = timestamptz);
CREATE FUNCTION shop.a_set(awty.future_job) RETURNS SETOF timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.a_table(awty.future_job) RETURNS TABLE (t timestamptz) LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.without_zone(awty.future_job) RETURNS timestamp LANGUAGE sql AS 'SELECT now()::timestamp';
CREATE FUNCTION shop.nothing(awty.future_job) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION shop.one_for_many(awty.future_job[]) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.many_for_one(awty.future_job) RETURNS timestamptz[] LANGUAGE sql AS 'SELECT ARRAY[now()]';
CREATE FUNCTION shop.set_for_many(awty.future_job[]) RETURNS SETOF timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE DOMAIN shop.moment AS timestamptz;
CREATE FUNCTION shop.a_domain(awty.future_job) RETURNS shop.moment LANGUAGE sql AS 'SELECT now()::shop.moment';
SELECT function, test.register('shop.' || function) FROM unnest(ARRAY['a_procedure', 'an_aggregate', 'a_set', 'a_table', 'without_zone', 'nothing',
    'one_for_many', 'many_for_one', 'set_for_many', 'a_domain']) AS function;
-- The name is ambiguous, because one function takes a single check and the other an array of checks.
CREATE FUNCTION shop.both(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.both(awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS 'SELECT ARRAY[now()]';
SELECT test.register('shop.both');

-- awty refuses a function in a temporary schema, and a name that is not on the search_path.
CREATE FUNCTION pg_temp.mine(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
SELECT test.register('pg_temp.mine');
SELECT test.register('mine');
SELECT nspname AS temp FROM pg_namespace WHERE oid = pg_my_temp_schema()
\gset
SELECT regexp_replace(test.register(:'temp' || '.mine'), 'pg_temp_\d+', 'pg_temp_N', 'g');
SET search_path = pg_temp, shop;
CREATE FUNCTION pg_temp.unpaid(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
SELECT awty.register('unpaid', 'unpaid');
SELECT function_schema, function_name FROM awty.job WHERE job = 'unpaid';
SELECT awty.unregister('unpaid');
RESET search_path;

RESET ROLE;
REVOKE EXECUTE ON FUNCTION shop.unpaid(awty.future_job), shop.stale(awty.future_job[]) FROM PUBLIC;
SET ROLE regress_mallory;
SELECT test.register('shop.unpaid');
SELECT test.register('shop.stale');
RESET ROLE;
CREATE FUNCTION test.common(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
REVOKE EXECUTE ON FUNCTION test.common(awty.future_job) FROM PUBLIC;
SET ROLE regress_mallory;
SELECT test.register('test.common');
RESET ROLE;
GRANT EXECUTE ON FUNCTION test.common(awty.future_job) TO regress_mallory;
SET ROLE regress_mallory;
SELECT awty.register('mallorys', 'test.common');

-- A function may become invalid after register(). Pending checks then stay, and schedule() refuses new checks.
SELECT awty.schedule('orders', '1', 'mallorys', after => '1 hour') > 0;
CREATE FUNCTION test.schedule(job text) RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.schedule(%L, %L, %L, after => %L)', 'orders', '1', job, '1 hour')) $$;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION test.common(awty.future_job) FROM regress_mallory;
SET ROLE regress_mallory;
SELECT test.schedule('mallorys');
SELECT awty.unregister('mallorys');
SET ROLE regress_shop;
GRANT EXECUTE ON FUNCTION shop.unpaid(awty.future_job), shop.stale(awty.future_job[]) TO PUBLIC;
CREATE FUNCTION shop.fickle(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
SELECT awty.register('fickle', 'shop.fickle');
SELECT test.schedule('fickle');
DROP FUNCTION shop.fickle(awty.future_job);
SELECT test.schedule('fickle');
CREATE FUNCTION shop.fickle(awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS $$ SELECT '{}'::timestamptz[] $$;
SELECT test.schedule('fickle');
CREATE FUNCTION shop.fickle(awty.future_job) RETURNS SETOF timestamptz LANGUAGE sql AS 'SELECT now()';
SELECT test.schedule('fickle');
DROP FUNCTION shop.fickle(awty.future_job);
CREATE FUNCTION shop.fickle(awty.future_job) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
SELECT test.schedule('fickle');
DROP FUNCTION shop.fickle(awty.future_job);
-- A new body or another overload does not change the job, because the job stores the exact signature.
CREATE FUNCTION shop.fickle(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
SELECT test.schedule('fickle');
-- If a set-based job has lost its function, the hint shows the function to create.
SELECT awty.register('stale', 'shop.stale');
ALTER FUNCTION shop.stale(awty.future_job[]) RENAME TO staler;
SELECT test.schedule('stale');
ALTER FUNCTION shop.staler(awty.future_job[]) RENAME TO stale;
SELECT test.schedule('stale');
SELECT awty.unregister('fickle'), awty.unregister('stale');

RESET ROLE;
REVOKE CREATE ON SCHEMA shop FROM regress_mallory;
SET client_min_messages = warning;
DROP FUNCTION test.register, test.schedule, test.common;
DROP FUNCTION shop.wrong_argument, shop.no_argument, shop.two_arguments, shop.with_default(awty.future_job), shop.with_default(awty.future_job, text), shop.any_element,
    shop.any_record, shop.of_history, shop.rest, shop.answer, shop.two_answers, shop.a_set, shop.a_table, shop.without_zone, shop.nothing,
    shop.one_for_many, shop.many_for_one, shop.set_for_many, shop.a_domain, shop.both(awty.future_job),
    shop.both(awty.future_job[]), shop.fickle(awty.future_job), shop.fickle(awty.future_job[]);
DROP PROCEDURE shop.a_procedure;
DROP AGGREGATE shop.an_aggregate(awty.future_job);
DROP FUNCTION shop.step;
DROP DOMAIN shop.moment;
SELECT count(*) FROM awty.job;
