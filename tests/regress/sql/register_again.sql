\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SET ROLE regress_shop;

CREATE FUNCTION shop.tidy() RETURNS void LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION shop.later() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()';
CREATE FUNCTION shop.noted(awty.future_job) RETURNS void LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION shop.all_noted(awty.future_job[]) RETURNS void LANGUAGE sql AS 'SELECT 1';
SELECT awty.register(name, 'shop.' || name) FROM unnest('{tidy, later, noted, all_noted}'::text[]) AS name;
SELECT job, set_based FROM awty.job ORDER BY job;
CREATE FUNCTION shop.tidy(awty.future_job) RETURNS void LANGUAGE sql AS 'SELECT 1';
SELECT test.raises($$SELECT awty.register('again', 'shop.tidy')$$);
SELECT awty.schedule('orders', '1', 'tidy', after => '1 day') > 0;
DROP FUNCTION shop.tidy(awty.future_job);
CREATE FUNCTION shop.tidy(awty.future_job[]) RETURNS void LANGUAGE sql AS 'SELECT 1';
SELECT awty.schedule('orders', '1', 'tidy', after => '1 day') > 0;
DROP FUNCTION shop.tidy(awty.future_job[]);

-- For an SQL command instead of a function, the hint shows a function that executes the command.
SELECT test.raises(format('SELECT awty.register(%L, %L)', job, command)) FROM (VALUES
    ('sweep', 'DELETE FROM shop.basket WHERE placed_at < now() - interval ''1 day'';'), ('odd "sweep"', 'truncate shop.basket'),
    ('sweep', 'SELECT shop.tidy()'), ('sweep', 'DELETE FROM shop.basket WHERE ' || repeat('id <> 1 AND ', 30) || 'true')) AS v (job, command);
SELECT test.raises($$SELECT awty.alter('tidy', 'VALUES (1)')$$);
CREATE TABLE shop.basket (placed_at timestamptz);
SET search_path = shop;
CREATE FUNCTION sweep() RETURNS void BEGIN ATOMIC DELETE FROM shop.basket WHERE placed_at < now() - interval '1 day'; END; SELECT awty.register('sweep', 'sweep');
CREATE FUNCTION "odd ""sweep"""() RETURNS void LANGUAGE sql AS $$ truncate shop.basket $$; SELECT awty.register('odd "sweep"', '"odd ""sweep"""');
RESET search_path;
SELECT job, function_schema, function_name FROM awty.job WHERE job LIKE '%sweep%' ORDER BY job;

SELECT awty.register('endless', 'shop.later', max_checks => 0, max_attempts => 0);
SELECT max_checks, max_attempts FROM awty.job WHERE job = 'endless';
SELECT awty.alter('endless', max_checks => 7, reset => '{max_attempts}');
SELECT awty.alter('endless', max_checks => 0);
SELECT max_checks, max_attempts FROM awty.job WHERE job = 'endless';

-- A registration with the same definition changes nothing, even with pending checks, a pause or rights.
SELECT awty.register('late', 'shop.unpaid', slot => '1 day', timeout => '90 s', max_lateness => '2 hours');
SELECT awty.allow('late', 'regress_app'), awty.pause('late');
SELECT awty.schedule('orders', '1', 'late', at => '2001-01-01') AS id
\gset
SELECT ctid AS was FROM awty.job WHERE job = 'late'
\gset
SELECT awty.register('late', 'shop.unpaid', slot => '24 hours', timeout => '1 min 30 s', max_lateness => '120 min');
SELECT awty.register('late', 'SHOP.unpaid', slot => '1 day', timeout => '90 s', max_lateness => '2 hours', replace => true);
SELECT ctid = :'was'::tid AS unchanged, paused, allowed FROM awty.job WHERE job = 'late';
SELECT test.raises(format('SELECT awty.register(%L, %s)', 'late', rest)) FROM unnest(ARRAY[
    $$'shop.unpaid'$$, $$'shop.unshipped', slot => '1 day', timeout => '90 s', max_lateness => '2 hours'$$,
    $$'shop.unpaid', slot => '1 day', timeout => '90 s'$$]) AS rest;
SELECT test.raises($$SELECT awty.register('late', 'shop.stale', replace => NULL)$$);
SELECT ctid = :'was'::tid AS unchanged FROM awty.job WHERE job = 'late';
-- With replace, the job keeps its pending checks, its pause and its rights.
SELECT awty.register('late', 'shop.stale', max_checks => 2, replace => true);
SELECT function_name, set_based, slot, timeout, max_checks, max_lateness, paused, allowed, registered_by FROM awty.job WHERE job = 'late';
SELECT id = :id AS still_there FROM awty.future_job WHERE job = 'late';
-- The same function name with another signature is a different definition of the job.
CREATE FUNCTION shop.formed(awty.future_job) RETURNS void LANGUAGE sql AS 'SELECT 1';
SELECT awty.register('formed', 'shop.formed');
DROP FUNCTION shop.formed;
CREATE FUNCTION shop.formed(awty.future_job[]) RETURNS void LANGUAGE sql AS 'SELECT 1';
SELECT test.sqlstate($$SELECT awty.register('formed', 'shop.formed')$$);
SELECT awty.register('formed', 'shop.formed', replace => true);
SELECT set_based FROM awty.job WHERE job = 'formed';
RESET ROLE;
GRANT CREATE ON SCHEMA shop TO regress_eve;
SET ROLE regress_eve;
CREATE FUNCTION shop.eves() RETURNS void LANGUAGE sql AS 'SELECT 1';
SELECT test.raises($$SELECT awty.register('late', 'shop.eves', replace => true)$$);
SELECT test.raises($$SELECT awty.register('late', 'shop.eves')$$);
DROP FUNCTION shop.eves();
RESET ROLE;
REVOKE CREATE ON SCHEMA shop FROM regress_eve;

-- The notice names the job's role if the role is not the caller, or has changed.
SELECT awty.register('posted', 'shop.unpaid', run_as => 'regress_shop');
SELECT awty.register('posted', 'shop.unpaid', run_as => 'regress_shop');
SELECT awty.alter('posted', run_as => 'regress_shop');
SELECT awty.alter('posted', timeout => '1 s');
-- registered_by changes to the role that replaces the definition.
SELECT registered_by FROM awty.job WHERE job = 'posted';
SET ROLE regress_shop;
SELECT awty.register('posted', 'shop.unpaid', replace => true);
SELECT registered_by FROM awty.job WHERE job = 'posted';

SELECT count(awty.unregister(job)) FROM awty.job;
DROP FUNCTION shop.tidy, shop.later, shop.noted, shop.all_noted, shop.formed, shop.sweep, shop."odd ""sweep""";
DROP TABLE shop.basket;
