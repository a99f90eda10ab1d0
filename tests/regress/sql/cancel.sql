\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SET ROLE regress_shop;
SELECT awty.register('unshipped', 'shop.unshipped');
SELECT awty.register('unpaid', 'shop.unpaid');
SELECT awty.schedule('orders', key, job, after => '1 day') > 0
FROM unnest(ARRAY['1', '2', '3']) AS key, unnest(ARRAY['unshipped', 'unpaid']) AS job;

SELECT awty.cancel('orders', '1', 'unpaid');
SELECT awty.cancel('orders', '1', 'unpaid');
SELECT awty.cancel('orders', '2');
SELECT awty.cancel('orders', '2');
SELECT awty.cancel('orders', '99'), awty.cancel('nothing', '1'), awty.cancel('orders', '1', NULL);
SELECT entity_key, job FROM awty.future_job ORDER BY 1, 2;
SELECT entity_key, job, outcome, started_at, lateness, run_time, check_count, attempts, sqlstate, message, role FROM awty.future_job_history
WHERE entity_name = 'orders' AND outcome = 'cancelled' AND job IN ('unshipped', 'unpaid') AND finished_at > now() - interval '1 minute'
    AND scheduled_at > (SELECT registered_at FROM awty.job WHERE job = 'unpaid')
ORDER BY 1, 2;

SELECT awty.schedule(entity_name => 'it''s', entity_key => '"; DROP', job => 'unpaid', after => '1 day') > 0;
SELECT awty.cancel(entity_name => 'it''s', entity_key => '"; DROP', job => 'unpaid');

SELECT test.raises($$SELECT awty.cancel(NULL, '3')$$);
SELECT test.raises($$SELECT awty.cancel('orders', NULL)$$);
SELECT test.raises($$SELECT awty.cancel('', '3')$$);
SELECT test.raises($$SELECT awty.cancel('orders', '')$$);
SELECT test.raises($$SELECT awty.cancel('orders', '3', '')$$);
SELECT test.raises($$SELECT awty.cancel('orders', '3', 'unpiad')$$);
SELECT test.raises($$SELECT awty.cancel('orders', '3', 'refund')$$);
SELECT test.raises($$SELECT awty.cancel(repeat('x', 256), '3')$$);
SELECT test.raises($$SELECT awty.cancel('orders', repeat('x', 1025))$$);
SELECT test.raises($$SELECT awty.cancel('orders', '3', repeat('x', 64))$$);

BEGIN;
SELECT awty.cancel('orders', '3');
SELECT count(*) FROM awty.future_job WHERE entity_key = '3';
ROLLBACK;
SELECT count(*) FROM awty.future_job WHERE entity_key = '3';

-- A role that may schedule a job may cancel its checks. Other roles find no checks, or are refused.
SET ROLE regress_eve;
SELECT awty.cancel('orders', '3');
SELECT test.raises($$SELECT awty.cancel('orders', '3', 'unpaid')$$);
SET ROLE regress_shop;
SELECT awty.allow('unpaid', 'regress_app');
SET ROLE regress_app;
SELECT test.raises($$SELECT awty.cancel('orders', '3', 'unshipped')$$);
SELECT awty.cancel('orders', '3');
SET ROLE regress_shop;
SELECT entity_key, job FROM awty.future_job ORDER BY 1, 2;

-- The plan uses an index, even for many pending checks.
RESET ROLE;
SELECT count(awty.schedule('many', n::text, 'unpaid', after => '1 day')) FROM generate_series(1, 2000) AS n;
BEGIN;
SELECT seq_scan, idx_scan FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass
\gset before_
SELECT awty.cancel('many', '1000');
SELECT seq_scan = :before_seq_scan AND idx_scan > :before_idx_scan AS by_index
FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass;
COMMIT;

SET ROLE regress_shop;
SELECT awty.unregister('unshipped'), awty.unregister('unpaid');
