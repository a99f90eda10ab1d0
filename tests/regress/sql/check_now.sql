\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid'), awty.register('unshipped', 'shop.unshipped');
SELECT awty.schedule('orders', 1, 'unpaid', after => '1 hour', args => '{"level": 1}') AS id
\gset
SELECT first_check_at AS first FROM awty.future_job WHERE id = :id
\gset
-- No worker can run the check before this transaction ends. The check's time becomes now(), which is no slot.
BEGIN;
SELECT awty.check_now('orders', 1) = :id;
SELECT id = :id AS same, args, first_check_at = :'first' AS first, next_check_at BETWEEN now() AND clock_timestamp() AS now, check_count, attempt, held FROM awty.future_job WHERE id = :id;
SELECT awty.check_now('orders', '1', 'unpaid') = :id;
ROLLBACK;
SELECT next_check_at = :'first' FROM awty.future_job WHERE id = :id;

SELECT test.raises(call) FROM unnest(ARRAY[$$SELECT awty.check_now('orders', 2)$$, $$SELECT awty.check_now('orders', 1, 'unshipped')$$,
    $$SELECT awty.check_now('orders', 1, 'unpiad')$$, $$SELECT awty.check_now('orders', NULL::text)$$, $$SELECT awty.check_now('', 1)$$]) AS call;
SELECT awty.schedule('orders', 1, 'unshipped', after => '1 hour') > 0;
SELECT test.raises($$SELECT awty.check_now('orders', 1)$$);
SELECT awty.hold('orders', 1, 'unpaid');
SELECT test.raises($$SELECT awty.check_now('orders', 1, 'unpaid')$$);
SELECT awty.release('orders', '1', 'unpaid');
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.check_now('orders', 1)$$) = replace(test.raises($$SELECT awty.check_now('orders', 2)$$), '"2"', '"1"');
SELECT test.sqlstate($$SELECT awty.check_now('orders', 1, 'unpaid')$$);
SET ROLE regress_shop;
SELECT awty.allow('unpaid', 'regress_app');
SET ROLE regress_app;
BEGIN;
SELECT awty.check_now('orders', 1) = :id;
ROLLBACK;
-- check_now() makes the check of a paused job due, but the check waits.
SET ROLE regress_shop;
SELECT awty.pause('unpaid');
SELECT awty.check_now('orders', 1, 'unpaid') = :id;
SELECT next_check_at < now() FROM awty.future_job WHERE id = :id;
BEGIN READ ONLY;
SELECT awty.check_now('orders', 1, 'unpaid');
ROLLBACK;

SELECT awty.unregister(job) > 0 FROM awty.job;
