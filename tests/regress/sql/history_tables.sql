-- Pending checks are only in awty.future_job, and finished checks only in the history.
\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SET ROLE regress_shop;
SELECT awty.register('all_of_them', 'shop.unpaid');
SELECT awty.register('that_ran', 'shop.unpaid', keep_history => 'ran');
SELECT awty.register('none_of_them', 'shop.unpaid', keep_history => 'none');
SELECT count(awty.schedule('history', n::text, job, after => '1 day', args => to_jsonb(n)))
FROM generate_series(1, 4) AS n, unnest('{all_of_them, that_ran, none_of_them}'::text[]) AS job;

-- The check has run before, so its history row has the number and the time of its runs.
RESET ROLE;
UPDATE awty.future_job SET check_count = 2, attempt = 1 WHERE entity_name = 'history' AND entity_key = '4';
INSERT INTO awty_internal.check_stat (check_id, runs, run_time, started_at, lateness)
SELECT id, 3, '1.5 s', '2026-01-01 10:00:00.25+00', '0.25 s' FROM awty.future_job WHERE entity_name = 'history' AND entity_key = '4';
SET ROLE regress_shop;

SELECT count(awty.schedule('history', '1', job, after => '2 days', args => '"again"'))
FROM unnest('{all_of_them, that_ran, none_of_them}'::text[]) AS job;
SELECT awty.cancel('history', '2', 'all_of_them');
SELECT awty.cancel('history', '2');
SELECT awty.unregister('all_of_them'), awty.unregister('that_ran'), awty.unregister('none_of_them');
SELECT count(*) FROM awty.future_job;
SET timezone = 'UTC';
SET datestyle = ISO;
SELECT job, entity_key, args, outcome, check_count, attempts, run_time, lateness, started_at, sqlstate, message, role, scheduled_by,
       finished_at > scheduled_at AS after_scheduling, first_check_at = next_check_at AS at_its_first_slot
FROM awty.future_job_history WHERE entity_name = 'history' ORDER BY job, entity_key, id;
SELECT count(*), count(DISTINCT id) FROM awty.future_job_history WHERE entity_name = 'history';
RESET ROLE;
SELECT (SELECT count(*) FROM awty_internal.check_stat), (SELECT count(*) FROM awty_internal.in_flight);

BEGIN;
SET LOCAL enable_seqscan = off;
CREATE FUNCTION test.plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS off) ' || query; END $$;
SELECT count(*) > 0 FROM test.plan($$SELECT * FROM awty.future_job_history WHERE entity_name = 'orders' AND entity_key = '42'$$) AS line
WHERE line ~ 'Index Cond: .*entity_name.*entity_key';
ROLLBACK;

-- The tables refuse values that no function of awty writes.
CREATE FUNCTION test.violates(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    violated text;
BEGIN
    EXECUTE statement;
    RETURN 'ok';
EXCEPTION WHEN integrity_constraint_violation THEN
    GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
    RETURN SQLSTATE || ' ' || violated;
END $$;
SELECT awty.register('unpaid', 'shop.unpaid', run_as => 'regress_shop');
SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour') > 0, awty.schedule('orders', '2', 'unpaid', after => '1 hour') > 0;
SELECT test.violates($$UPDATE awty.future_job SET entity_key = '2' WHERE entity_key = '1'$$);
SELECT change, test.violates('UPDATE awty.job SET ' || change) FROM unnest(ARRAY[
    $$job = ''$$, $$job = repeat('x', 64)$$, $$on_missed = 'later'$$, $$keep_history = 'some'$$]) AS change;
SELECT awty.unregister('unpaid');
DROP FUNCTION test.violates;
