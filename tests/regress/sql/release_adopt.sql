\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour') AS id
\gset
SELECT test.raises($$SELECT awty.release('orders', '1')$$);
SELECT test.raises($$SELECT awty.release('orders', '1', 'unpaid')$$);
SELECT test.raises($$SELECT awty.release('orders', '2')$$);
SELECT test.raises($$SELECT awty.release('orders', '1', 'planet')$$);
SELECT test.raises($$SELECT awty.release(NULL, '1')$$);
SELECT awty.register('unshipped', 'shop.unpaid');
SELECT test.raises($$SELECT awty.release('orders', '1', 'unshipped')$$);
SELECT awty.schedule('orders', '1', 'unshipped', after => '1 hour') > 0;
SELECT test.raises($$SELECT awty.release('orders', '1')$$);
SELECT awty.unregister('unshipped');

-- A check that awty holds after too many crashes is visible and counted. A member of the job's role can release it.
RESET ROLE;
UPDATE awty.future_job SET held = true;
INSERT INTO awty_internal.check_stat (check_id, crashes) VALUES (:id, 5);
SELECT pending, held_checks FROM awty.status;
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.release('orders', '1')$$) = replace(test.raises($$SELECT awty.release('orders', '2')$$), '"2"', '"1"');
SET ROLE regress_shop;
SELECT awty.allow('unpaid', 'regress_app');
SET ROLE regress_app;
BEGIN;
SELECT test.sqlstate($$SELECT awty.release('orders', '1')$$), test.sqlstate($$SELECT awty.release('orders', '1', 'unpaid')$$);
ROLLBACK;
SELECT awty.schedule('orders', '1', 'unpaid', after => '2 hours', on_conflict => 'keep') = :id;
SET ROLE regress_shop;
BEGIN;
SELECT awty.release('orders', '1');
ROLLBACK;
SELECT held FROM awty.future_job;
SELECT awty.release('orders', '1');
SELECT held FROM awty.future_job;
RESET ROLE;
SELECT runs, crashes FROM awty_internal.check_stat;
SELECT pending, held_checks FROM awty.status;
SET ROLE regress_shop;
SELECT awty.unregister('unpaid');
RESET ROLE;
SELECT count(*) FROM awty_internal.check_stat;

SELECT database_held, why, fix FROM awty.status;
SELECT awty.adopt();
SELECT database_held, why, fix FROM awty.status;
SELECT current_database() AS database
\gset
SET ROLE regress_shop;
SELECT replace(test.raises($$SELECT awty.adopt()$$), :'database', 'DATABASE');

-- The UPDATE simulates a restore on another server. The database is held, and each schedule() warns.
RESET ROLE;
UPDATE awty_internal.origin SET identity = identity + 1;
\c -
\pset format unaligned
\pset tuples_only on
SELECT current_database() AS database
\gset
SELECT database_held, why, fix FROM awty.status;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
\set SHOW_CONTEXT never
DO $$ BEGIN PERFORM awty.schedule('orders', '1', 'unpaid', after => '1 hour'); END $$;
SELECT count(*) FROM awty.future_job;
SELECT test.sqlstate($$SELECT awty.adopt()$$);
RESET ROLE;
ALTER DATABASE :"database" OWNER TO regress_shop;
SET ROLE regress_shop;
BEGIN;
SELECT awty.adopt();
ROLLBACK;
SELECT database_held FROM awty.status;
SELECT awty.adopt();
SELECT database_held, why, fix FROM awty.status;
SELECT awty.schedule('orders', '2', 'unpaid', after => '1 hour') > 0;
RESET ROLE;
ALTER DATABASE :"database" OWNER TO postgres;
SELECT awty.unregister('unpaid');
-- The UPDATE simulates a copy by CREATE DATABASE … TEMPLATE.
UPDATE awty_internal.origin SET database = 1;
SELECT database_held FROM awty.status;
SELECT awty.adopt();
SELECT database_held FROM awty.status;
