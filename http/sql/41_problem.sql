CREATE VIEW awty_http_internal.problem WITH (security_invoker = true) AS
SELECT h.id, h.job, concat(h.entity_name, split_part(h.entity_key, '#', 1)) AS uri, h.entity_name, h.entity_key,
    CASE WHEN strpos(h.entity_key, '#') = 0
        THEN awty_http_internal.id(t.number, concat(h.entity_name, h.entity_key)) END AS schedule,
    awty_http_internal.key_of(h.entity_key) AS key,
    h.first_check_at, h.next_check_at, h.started_at, h.finished_at, h.lateness, h.attempts, h.outcome, h.sqlstate, h.message
FROM awty.future_job_history AS h
JOIN awty_http.tenant AS t ON t.job = h.job AND t.role::oid = h.role::oid
-- This condition equals the condition of the partial index on problems, so that PostgreSQL uses the index.
WHERE h.outcome <> ALL ('{done,met,cancelled,replaced}');

COMMENT ON VIEW awty_http_internal.problem IS 'History of calls that ended with a problem, of schedules and of sends';

-- Reads a bounded number of checks, because awty.failing would read all of them.
CREATE VIEW awty_http_internal.failing WITH (security_invoker = true) AS
SELECT j.job, f.entity_name, f.entity_key, f.attempt, j.max_attempts, f.next_check_at, s.sqlstate, s.message, s.failed_at
FROM awty.job AS j
CROSS JOIN LATERAL (
    SELECT c.id, c.entity_name, c.entity_key, c.attempt, c.next_check_at
    FROM (SELECT p.id, p.entity_name, p.entity_key, p.attempt, p.next_check_at FROM awty.future_job AS p
          WHERE p.job = j.job AND p.attempt > 0 ORDER BY p.id LIMIT 10000) AS c
    WHERE NOT EXISTS (
        SELECT FROM awty_http_internal.endpoint AS e
        WHERE e.entity_name = c.entity_name AND e.entity_key = c.entity_key AND e.job = j.job OFFSET 0)
    LIMIT 1000
) AS f
CROSS JOIN LATERAL (
    SELECT c.sqlstate, c.message, c.failed_at FROM awty_internal.check_stat AS c
    WHERE c.check_id = f.id AND c.failed_at IS NOT NULL OFFSET 0
) AS s;

COMMENT ON VIEW awty_http_internal.failing IS 'Pending checks whose last run failed, without those of schedules; at most 1,000 of the first 10,000 of each job';

-- If the schedule has a pending call, makes the call due now. Otherwise repeats the failed call.
CREATE FUNCTION awty_http_internal.retry(id bigint) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.retry(bigint) IS 'Makes a finished call again, now; returns the number of its check';

CREATE FUNCTION awty_http_internal.retry_as(caller oid, id bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    past awty.future_job_history;
    pending bigint;
BEGIN
    SELECT h.* INTO past FROM awty.future_job_history AS h
    WHERE h.id = retry_as.id AND EXISTS (SELECT FROM awty_http.tenant AS t WHERE t.job = h.job AND t.role::oid = h.role::oid)
    ORDER BY h.finished_at DESC LIMIT 1;
    IF NOT awty_http_internal.has_right(retry_as.caller, past.job, 'read') THEN
        PERFORM awty_http_internal.refuse('42704', format('call %s is not in the history', retry_as.id),
            'To list the last failed calls, run: SELECT id, uri, outcome FROM awty_http_internal.problem ORDER BY finished_at DESC LIMIT 20;');
    END IF;
    IF NOT awty_http_internal.keep_right(retry_as.caller, past.job, 'schedule') THEN
        PERFORM awty_http_internal.refuse('42501', format('permission denied for the calls of job "%s"', past.job),
            format('SELECT awty.allow(%L, %L);', past.job, pg_get_userbyid(retry_as.caller)));
    END IF;
    SELECT f.id INTO pending FROM awty.future_job AS f
    WHERE f.entity_name = past.entity_name AND f.entity_key = past.entity_key AND f.job = past.job;
    IF pending IS NOT NULL THEN
        PERFORM awty.check_now(past.entity_name, past.entity_key, past.job);
        RETURN pending;
    END IF;
    IF strpos(past.entity_key, '#') = 0 AND NOT EXISTS (
        SELECT FROM awty_http_internal.endpoint AS e
        WHERE e.entity_name = past.entity_name AND e.entity_key = past.entity_key AND e.job = past.job AND e.deleted_at IS NULL) THEN
        PERFORM awty_http_internal.refuse('42704', format('"%s%s" is no longer scheduled', past.entity_name, past.entity_key),
            format('SELECT awty_http.send(%L);', past.entity_name || past.entity_key));
    END IF;
    IF strpos(past.entity_key, '#') > 0 AND NOT EXISTS (
        SELECT FROM awty_http_internal.content AS c
        WHERE c.entity_name = past.entity_name AND c.entity_key = past.entity_key AND c.job = past.job) THEN
        PERFORM awty_http_internal.refuse('42704', format('the content of call %s is no longer kept', retry_as.id),
            format('SELECT awty_http.send(%L, …);', past.entity_name || split_part(past.entity_key, '#', 1)));
    END IF;
    pending := awty.schedule(past.entity_name, past.entity_key, past.job, after => '0', args => past.args, on_conflict => 'error');
    UPDATE awty_http_internal.sent AS s SET check_id = pending
    WHERE s.job = past.job AND s.entity_name = past.entity_name AND s.entity_key = past.entity_key
      AND s.key = awty_http_internal.key_of(past.entity_key);
    RETURN pending;
END
$$;
COMMENT ON FUNCTION awty_http_internal.retry_as(oid, bigint) IS 'awty_http_internal.retry for a caller';
