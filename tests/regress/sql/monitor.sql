-- A monitoring role sees every job, but no entity, argument or error text.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_watcher IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA awty TO regress_watcher;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour') > 0, awty.schedule('orders', '2', 'unpaid', after => '1 hour') > 0;
SELECT awty.cancel('orders', '2');
SET ROLE regress_watcher;
SELECT job, role FROM awty.job;
SELECT (SELECT count(*) FROM awty.future_job), (SELECT count(*) FROM awty.future_job_history), (SELECT count(*) FROM awty.failing),
    (SELECT count(*) FROM awty.explain('orders', '1'));
SELECT pending FROM awty.status;
-- Reading takes only AccessShare locks and writes nothing.
BEGIN READ ONLY;
SELECT count(*) >= 0 FROM awty.status, awty.job_status, awty.forecast(), awty.doctor(), awty.failing, awty.running, awty.repetition;
SELECT count(*) >= 0 FROM awty.explain('orders', '1');
SELECT awty.healthy() IS NOT NULL;
SELECT DISTINCT mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation';
COMMIT;
SELECT test.sqlstate($$SELECT awty.schedule('orders', '1', 'unpaid', after => '0')$$), test.sqlstate($$SELECT awty.pause('unpaid')$$);
RESET ROLE;
SELECT awty.unregister('unpaid');
REVOKE ALL ON SCHEMA awty FROM regress_watcher;
DROP ROLE regress_watcher;
