-- awty_http, part 6c: how schedules, sends and targets stand, and calling again. All of it reads with the rights of who asks.

-- Told apart, so that the view can be a part of other queries: what the time changes stays out of its columns.
CREATE FUNCTION awty_http_internal.why_held(id bigint) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT s.why FROM awty_internal.standing AS s WHERE s.id = why_held.id);
COMMENT ON FUNCTION awty_http_internal.why_held(bigint) IS 'Why a check does not run now';

-- What is cheap to know of many, beside all columns of the endpoint, so that a list takes no join. A function of one schedule knows more:
-- awty_http_internal.counts() and so on.
CREATE VIEW awty_http_internal.schedule_status WITH (security_invoker = true) AS
SELECT CASE WHEN e.deleted_at IS NOT NULL THEN 'ended' WHEN e.paused THEN 'paused' WHEN f.held THEN 'held' WHEN f.id IS NULL THEN 'ended'
        WHEN target.state = ANY ('{blocked,open}') THEN 'blocked' ELSE 'active' END AS state,
    CASE WHEN e.deleted_at IS NOT NULL THEN NULL WHEN e.paused THEN e.paused_note
        WHEN f.held THEN coalesce(e.verdict_note, awty_http_internal.why_held(f.id))
        WHEN f.id IS NULL THEN e.verdict_note
        WHEN target.state = 'blocked' THEN concat('its target is blocked until ', target.until, ': ' || block.note)
        WHEN target.state = 'open'
            THEN format('its target has failed %s times in a row; the next try is at %s: %s', breaker.failures, target.until, breaker.message)
    END AS why,
    f.id AS check_id,
    CASE WHEN NOT f.held THEN f.next_check_at END AS next_slot,
    EXISTS (SELECT FROM awty.lease AS l WHERE l.id = f.id AND l.expires_at > statement_timestamp()) AS in_flight,
    -- Last, where columns of later versions can be added.
    e.*
FROM awty_http.endpoint AS e
LEFT JOIN LATERAL (
    SELECT p.id, p.held, p.next_check_at FROM awty.future_job AS p
    WHERE p.entity_name = e.entity_name AND p.entity_key = e.entity_key
      AND p.job = e.job OFFSET 0
) AS f ON true
LEFT JOIN LATERAL (
    SELECT x.blocked_until, x.note FROM awty_internal.target AS x
    WHERE x.job = e.job AND x.target = ANY (ARRAY[e.entity_name, ''])
    ORDER BY x.blocked_until DESC NULLS LAST LIMIT 1
) AS block ON true
LEFT JOIN LATERAL (
    SELECT x.failures, x.since, x.opened_at, x.opens, x.message FROM awty_internal.breaker AS x
    WHERE x.job = e.job AND x.target = e.entity_name OFFSET 0
) AS breaker ON true
CROSS JOIN LATERAL awty_internal.target_standing(NULL, 0, NULL, NULL, block.blocked_until, NULL, NULL, breaker.failures, breaker.since,
    breaker.opened_at, breaker.opens) AS target;

COMMENT ON VIEW awty_http_internal.schedule_status IS 'How each schedule stands: active, paused by a person, held by awty or its endpoint, blocked target, or ended; and why';

-- Sends with a key. What is over and has no row in the history was done, or cancelled.
CREATE VIEW awty_http_internal.send_status WITH (security_invoker = true) AS
SELECT s.key, s.job, s.check_id, s.entity_name, s.entity_key,
    concat(s.entity_name, split_part(s.entity_key, '#', 1)) AS uri,
    s.sent_by, s.sent_at, s.due_at,
    CASE WHEN f.held THEN 'held'
        WHEN f.id IS NOT NULL AND EXISTS (SELECT FROM awty.lease AS l WHERE l.id = f.id AND l.expires_at > statement_timestamp()) THEN 'in_flight'
        WHEN f.id IS NOT NULL THEN 'pending'
        WHEN last.ok THEN 'done'
        WHEN ended.outcome IS NOT NULL THEN ended.outcome
        WHEN last.ended_at IS NULL AND kept.kept > '0'
            AND greatest(s.due_at, s.sent_at) < (statement_timestamp() - kept.kept) THEN 'forgotten'
        ELSE 'cancelled' END AS state,
    CASE WHEN NOT f.held THEN f.next_check_at END AS next_slot,
    ended.finished_at,
    last.attempt, last.leased_at, last.ended_at, last.ok, last.message, last.result
FROM awty_http_internal.sent AS s
CROSS JOIN (SELECT current_setting('awty.attempt_retention')::interval AS kept) AS kept
LEFT JOIN LATERAL (
    SELECT p.id, p.held, p.next_check_at FROM awty.future_job AS p WHERE p.id = s.check_id OFFSET 0
) AS f ON true
LEFT JOIN LATERAL (
    SELECT h.outcome, h.finished_at FROM awty.future_job_history AS h
    WHERE f.id IS NULL AND h.id = s.check_id ORDER BY h.finished_at DESC LIMIT 1
) AS ended ON true
LEFT JOIN LATERAL (
    SELECT a.attempt, a.leased_at, a.ended_at, a.ok, a.message, a.result FROM awty.attempt AS a
    WHERE a.id = s.check_id ORDER BY a.ended_at DESC LIMIT 1
) AS last ON true;

COMMENT ON VIEW awty_http_internal.send_status IS 'What became of each send whose key is remembered: pending, in_flight, held, done, cancelled, forgotten, or the outcome of awty; with its last attempt';

-- Finished calls that did not go well: those that went well are in awty.attempt.
CREATE VIEW awty_http_internal.problem WITH (security_invoker = true) AS
SELECT h.id, h.job, concat(h.entity_name, split_part(h.entity_key, '#', 1)) AS uri, h.entity_name, h.entity_key,
    CASE WHEN strpos(h.entity_key, '#') = 0
        THEN awty_http_internal.id(t.number, concat(h.entity_name, h.entity_key)) END AS schedule,
    awty_http_internal.key_of(h.entity_key) AS key,
    h.first_check_at, h.next_check_at, h.started_at, h.finished_at, h.lateness, h.attempts, h.outcome, h.sqlstate, h.message
FROM awty.future_job_history AS h
JOIN awty_http.tenant AS t ON t.job = h.job AND t.role::oid = h.role::oid
-- As the index of a job's problems says it.
WHERE h.outcome <> ALL ('{done,met,cancelled,replaced}');

COMMENT ON VIEW awty_http_internal.problem IS 'The history of calls that ended otherwise than done or cancelled, of schedules and of sends';

-- The occurrence that comes next is called now instead. A call that nothing follows is made once more.
CREATE FUNCTION awty_http_internal.retry(id bigint) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.retry(bigint) IS 'Has a finished call made again, now; returns the number of its check';

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
            'SELECT id, uri, outcome FROM awty_http_internal.problem ORDER BY finished_at DESC LIMIT 20; lists the last ones.');
    END IF;
    IF NOT awty_http_internal.has_right(retry_as.caller, past.job, 'schedule') THEN
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
        PERFORM awty_http_internal.refuse('42704', format('"%s%s" is not scheduled any more', past.entity_name, past.entity_key),
            format('SELECT awty_http.send(%L);', past.entity_name || past.entity_key));
    END IF;
    IF strpos(past.entity_key, '#') > 0 AND NOT EXISTS (
        SELECT FROM awty_http_internal.content AS c
        WHERE c.entity_name = past.entity_name AND c.entity_key = past.entity_key AND c.job = past.job) THEN
        PERFORM awty_http_internal.refuse('42704', format('the content of call %s is not kept any more', retry_as.id),
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

-- Also of one that nothing is known of: the limits for all are its own.
CREATE FUNCTION awty_http_internal.target(origin text, OUT job text, OUT target text, OUT concurrency integer, OUT rate numeric,
    OUT burst integer, OUT in_flight bigint, OUT state text, OUT blocked_until timestamptz, OUT why text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
    SELECT mine.job, origin, t.concurrency, t.rate, t.burst, CASE WHEN t.target IS NULL THEN 0 ELSE t.in_flight END,
        coalesce(t.state, 'ready'), t.blocked_until, t.why
    FROM (SELECT awty_http_internal.job() AS job) AS mine
    LEFT JOIN awty.target AS t ON t.job = mine.job AND (t.target = origin OR t.target IS NULL)
    ORDER BY t.target NULLS LAST LIMIT 1
$$;
COMMENT ON FUNCTION awty_http_internal.target(text) IS 'How a target stands and what it allows, as in awty.target';

-- The row of the tenant is the lock: only this function and the owner of the extension lock that row. Any role could take an advisory lock.
CREATE FUNCTION awty_http_internal.lock_limits() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.lock_limits() IS 'Waits until no other transaction sets limits of this tenant''s targets, and keeps others waiting until this one ends';

CREATE FUNCTION awty_http_internal.lock_limits_as(caller oid) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT FROM awty_http.tenant AS t WHERE t.job = awty_http_internal.job_to_schedule(lock_limits_as.caller) FOR NO KEY UPDATE
$$;
COMMENT ON FUNCTION awty_http_internal.lock_limits_as(oid) IS 'awty_http_internal.lock_limits for a caller';

-- What the gateway says when a target has answered 429 or 503 with Retry-After. The right to claim is enough.
CREATE FUNCTION awty_http_internal.asked_to_wait(job text, target text, until timestamptz, note text) RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    RETURN awty_internal.block_for_now(job, target, until, note);
COMMENT ON FUNCTION awty_http_internal.asked_to_wait(text, text, timestamptz, text)
    IS 'Blocks a target as it has asked for, an hour at most, and shortens no other block; returns whether it did; for roles that may claim';
