\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_clerks;
GRANT regress_clerks TO regress_app;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
CREATE FUNCTION test.schedule() RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises($_$SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour')$_$) $$;

SET ROLE regress_app;
SELECT test.schedule();
SET ROLE regress_shop;
SELECT test.schedule();

SELECT awty.allow('unpaid', 'regress_app'), awty.allow('unpaid', 'regress_app');
SELECT allowed FROM awty.job;
SET ROLE regress_app;
SELECT test.schedule();
SELECT awty.next_slot('2099-06-01 10:00:30+00', 'unpaid') = '2099-06-01 10:01:00+00';
SELECT awty.cancel('orders', '1', 'unpaid');
SET ROLE regress_eve;
SELECT test.schedule();
-- The right to schedule gives no other right.
SET ROLE regress_app;
SELECT call, test.raises('SELECT awty.' || call) FROM unnest(ARRAY[$$alter('unpaid', max_checks => 1)$$, $$unregister('unpaid')$$, $$pause('unpaid')$$,
    $$resume('unpaid')$$, $$allow('unpaid', 'regress_eve')$$, $$disallow('unpaid', 'regress_app')$$]) AS call;
SELECT count(*) FROM awty.job;

-- Members of a group role have the group's right to schedule. A second disallow() changes nothing.
SET ROLE regress_shop;
SELECT awty.disallow('unpaid', 'regress_app'), awty.disallow('unpaid', 'regress_app'), awty.disallow('unpaid', 'regress_eve');
SELECT awty.allow('unpaid', 'regress_clerks');
SELECT allowed FROM awty.job;
SET ROLE regress_app;
SELECT test.schedule();
SET ROLE regress_shop;
SELECT awty.disallow('unpaid', 'regress_clerks');
SET ROLE regress_app;
SELECT test.schedule();

-- A renamed role keeps its right, and a dropped role loses its right.
RESET ROLE;
CREATE ROLE regress_temp LOGIN;
GRANT USAGE ON SCHEMA awty TO regress_temp;
SELECT awty.allow('unpaid', 'regress_temp');
ALTER ROLE regress_temp RENAME TO regress_renamed;
SELECT allowed FROM awty.job;
SET ROLE regress_renamed;
SELECT test.schedule();
RESET ROLE;
REVOKE ALL ON SCHEMA awty FROM regress_renamed;
DROP ROLE regress_renamed;
SELECT allowed::text ~ '^{\d+}$' FROM awty.job;
SET ROLE regress_app;
SELECT test.schedule();

SET ROLE regress_shop;
SELECT test.raises($$SELECT awty.allow('unpaid', 'public')$$);

-- In a SECURITY DEFINER function, the function's owner is the caller.
CREATE FUNCTION test.for_all() RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT test.schedule()';
SET ROLE regress_eve;
SELECT test.for_all();
RESET ROLE;
SELECT scheduled_by FROM awty.future_job;
SELECT awty.unregister('unpaid');
DROP FUNCTION test.for_all, test.schedule;
DROP ROLE regress_clerks;
