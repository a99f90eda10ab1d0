\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
SELECT awty.register('silent', 'shop.unpaid', keep_history => 'none');
SELECT awty.register('ran', 'shop.unpaid', keep_history => 'ran');
SELECT set_config('test.day', date_trunc('day', now())::text, false) IS NULL;
-- Schedules a check of an order. Returns whether the check is new, and the hours until the pending check is due.
CREATE FUNCTION test.again(key text, hours integer, on_conflict text DEFAULT 'replace', job text DEFAULT 'unpaid')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before bigint := (SELECT id FROM awty.future_job AS f WHERE f.entity_name = 'invoices' AND f.entity_key = key AND f.job = again.job);
    after bigint := awty.schedule('invoices', key, job, at => current_setting('test.day')::timestamptz + (hours + 48) * interval '1 hour',
        args => to_jsonb(hours), on_conflict => on_conflict);
BEGIN
    RETURN (SELECT concat_ws(' ', CASE WHEN before IS NULL THEN 'first' WHEN before = after THEN 'kept' WHEN after > before THEN 'new' END,
                'at', extract(epoch FROM next_check_at - current_setting('test.day')::timestamptz)::integer / 3600 - 48, 'args', args,
                CASE WHEN f.id <> after THEN 'wrong id' END)
            FROM awty.future_job AS f WHERE f.entity_name = 'invoices' AND f.entity_key = key AND f.job = again.job);
END $$;

SELECT test.again('1', 3), test.again('1', 5), test.again('1', 4), test.again('1', 4);
SELECT outcome, args, started_at, lateness, run_time, check_count, attempts, sqlstate FROM awty.future_job_history
WHERE entity_name = 'invoices' AND entity_key = '1' ORDER BY id;
SELECT test.again('2', 3, 'keep'), test.again('2', 5, 'keep'), test.again('2', 1, 'keep');
-- 'earliest' keeps the earlier check, and 'latest' keeps the later check. At the same slot, both keep the pending
-- check.
SELECT test.again('3', 3, 'earliest'), test.again('3', 5, 'earliest'), test.again('3', 1, 'earliest'), test.again('3', 1, 'earliest');
SELECT test.again('4', 3, 'latest'), test.again('4', 1, 'latest'), test.again('4', 5, 'latest'), test.again('4', 5, 'latest');
SELECT test.again('5', 3, 'error');
SELECT regexp_replace(test.raises($$SELECT test.again('5', 4, 'error')$$), 'check \d+\.', 'check N.');
SELECT test.raises($$SELECT test.again('5', 4, 'error')$$) LIKE '%It is check ' || id || '.%' FROM awty.future_job WHERE entity_key = '5';
SELECT test.again('5', 4, 'keep');

-- The history gets a row only when a check is replaced.
SELECT entity_key, outcome, count(*) FROM awty.future_job_history
WHERE entity_name = 'invoices' AND job = 'unpaid' AND entity_key IN ('2', '3', '4', '5') GROUP BY 1, 2 ORDER BY 1;

SELECT test.raises($$SELECT awty.schedule('invoices', '6', 'unpaid', after => '1 hour', on_conflict => 'ignore')$$);
SELECT test.raises($$SELECT awty.schedule('invoices', '6', 'unpaid', after => '1 hour', on_conflict => 'Replace')$$);
SELECT test.raises($$SELECT awty.schedule('invoices', '6', 'unpaid', after => '1 hour', on_conflict => ' keep')$$);
SELECT test.raises($$SELECT awty.schedule('invoices', '6', 'unpaid', after => '1 hour', on_conflict => '')$$);
SELECT test.raises($$SELECT awty.schedule('invoices', '6', 'unpaid', after => '1 hour', on_conflict => NULL)$$);
SELECT count(*) FROM awty.future_job WHERE entity_key = '6';

-- Of two calls in one statement or transaction, the last one wins.
SELECT test.again('7', h) FROM (VALUES (1), (2)) AS v (h);
SELECT count(*) FROM awty.future_job WHERE entity_name = 'invoices' AND entity_key = '7';

-- The unique index compares bytes, so case, blanks and dots make different keys.
SELECT test.again(key, 1) FROM (VALUES ('A'), ('a'), ('a '), (' a'), ('a.b'), ('"a"')) AS v (key);

-- keep_history 'ran' archives only checks that have run, and 'none' archives no check.
SELECT test.again('8', 1, job => 'ran'), test.again('8', 2, job => 'ran'), test.again('8', 1, job => 'silent'), test.again('8', 2, job => 'silent');
SELECT awty.cancel('invoices', '8', 'ran'), awty.cancel('invoices', '8', 'silent');
SELECT count(*) FROM awty.future_job_history WHERE job IN ('ran', 'silent');

-- A role that may schedule the job may replace another role's check, because the check belongs to the job.
SELECT awty.allow('unpaid', 'regress_app');
SET ROLE regress_app;
SELECT awty.schedule('invoices', '2', 'unpaid', after => '1 hour') > 0;
RESET ROLE;
SELECT scheduled_by FROM awty.future_job WHERE entity_name = 'invoices' AND entity_key = '2';
SELECT scheduled_by, outcome FROM awty.future_job_history WHERE entity_name = 'invoices' AND entity_key = '2';

SET ROLE regress_shop;
SELECT awty.unregister('unpaid'), awty.unregister('silent'), awty.unregister('ran');
DROP FUNCTION test.again;
