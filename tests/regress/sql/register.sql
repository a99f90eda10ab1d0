\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SET ROLE regress_shop;

SELECT awty.register('unshipped', 'shop.unshipped');
SELECT job, function_schema, function_name, role, set_based, slot, timeout, max_checks, max_horizon, max_attempts,
       retry_after, on_missed, max_lateness, keep_history, allowed, paused, resumed_at, registered_by,
       registered_at BETWEEN now() - interval '1 minute' AND now() AS just_now
FROM awty.job;

-- awty recognizes a set-based function by its argument.
SELECT awty.register('stale', 'shop.stale', slot => '15 min', timeout => '1500 ms', max_checks => 1000000,
    max_horizon => '1 month', max_attempts => 1, retry_after => '1 day', on_missed => 'next_slot', max_lateness => '1 us',
    keep_history => 'none', run_as => 'regress_shop');
SELECT job, set_based, slot, timeout, max_checks, max_horizon, max_attempts, retry_after, on_missed, max_lateness,
       keep_history FROM awty.job WHERE job = 'stale';
SELECT awty.register('skipper', 'shop.unpaid', on_missed => 'skip', keep_history => 'ran');

SELECT awty.register('least', 'shop.unpaid', slot => '1 min', timeout => '1 ms', max_checks => 1, max_horizon => '1 s',
    max_attempts => 1, retry_after => '1 ms', max_lateness => '1 us');
SELECT awty.register('most', 'shop.unpaid', slot => '1 day', timeout => '1 day', max_checks => 1000000,
    max_horizon => '36525 days', max_attempts => 1000, retry_after => '366 days', max_lateness => '36525 days');

SELECT test.raises($$SELECT awty.register('unshipped', 'shop.unpaid')$$);
SELECT function_name FROM awty.job WHERE job = 'unshipped';

-- register() finds a name without a schema by the caller's search_path, and stores the schema.
SELECT test.raises($$SELECT awty.register('paths', 'unpaid')$$);
SET search_path = nowhere, shop;
SELECT awty.register('paths', 'unpaid');
SELECT awty.register('folded', 'SHOP.UnPaid');
RESET search_path;
SELECT job, function_schema, function_name FROM awty.job WHERE job IN ('paths', 'folded') ORDER BY job;

RESET ROLE;
CREATE SCHEMA "Odd.Shop" AUTHORIZATION regress_shop;
SET ROLE regress_shop;
CREATE FUNCTION "Odd.Shop"."Un ""Paid"""(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
SELECT awty.register('odd', '"Odd.Shop"."Un ""Paid"""');
SELECT function_schema, function_name FROM awty.job WHERE job = 'odd';

-- A rollback, also to a savepoint, undoes the registration.
BEGIN;
SELECT awty.register('ghost', 'shop.unpaid');
SAVEPOINT s;
SELECT awty.register('ghost2', 'shop.unpaid');
SELECT count(*) FROM awty.job WHERE job LIKE 'ghost%';
ROLLBACK TO s;
SELECT awty.schedule('orders', '1', 'ghost', after => '1 day') > 0;
ROLLBACK;
SELECT count(*) FROM awty.job WHERE job LIKE 'ghost%';
SELECT count(*) FROM awty.future_job;

SELECT awty.schedule('orders', n::text, 'unshipped', after => '1 hour', args => jsonb_build_object('n', n)) > 0
FROM generate_series(1, 3) AS n;
SELECT awty.unregister('unshipped');
SELECT awty.unregister('skipper');
SELECT entity_name, entity_key, job, args, outcome, sqlstate, message, started_at, lateness, run_time, check_count, attempts,
       scheduled_by, role, finished_at BETWEEN now() - interval '1 minute' AND now() AS just_now
FROM awty.future_job_history WHERE job = 'unshipped' ORDER BY entity_key;
SELECT test.raises($$SELECT awty.unregister('unshipped')$$);
-- After unregister(), the job's name can be used again, but the old checks do not come back.
SELECT awty.register('unshipped', 'shop.unshipped');
SELECT count(*) FROM awty.future_job;

-- Only a superuser can remove a job whose row is broken.
RESET ROLE;
UPDATE awty.job SET max_checks = -1 WHERE job = 'odd';
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'odd', after => '1 hour')$$);
SELECT test.raises($$SELECT awty.alter('odd', max_checks => 1)$$);
SET ROLE regress_shop;
SELECT test.sqlstate($$SELECT awty.unregister('odd')$$);
RESET ROLE;
SELECT awty.unregister('odd');
SET ROLE regress_shop;

SELECT job, awty.unregister(job) FROM awty.job ORDER BY job;
