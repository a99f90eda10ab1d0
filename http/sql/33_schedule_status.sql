-- Pages follow the order of an index. enable_sort is off, so that PostgreSQL uses the index instead of sorting a
-- million rows.
CREATE FUNCTION awty_http_internal.attempts(id text, before timestamptz DEFAULT 'infinity', before_lease bigint DEFAULT 0, max integer DEFAULT 50)
    RETURNS SETOF awty.attempt LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 50 SET search_path = pg_catalog, pg_temp SET enable_sort = off AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
BEGIN
    SELECT e.* INTO endpoint FROM awty_http_internal.endpoint AS e WHERE e.id = attempts.id;
    RETURN QUERY SELECT a.* FROM awty.attempt AS a
        WHERE a.entity_name = endpoint.entity_name AND a.entity_key = endpoint.entity_key AND a.job = endpoint.job
          AND (a.ended_at, a.lease) < (attempts.before, attempts.before_lease)
        ORDER BY a.ended_at DESC, a.lease DESC LIMIT attempts.max;
END
$$;
COMMENT ON FUNCTION awty_http_internal.attempts(text, timestamptz, bigint, integer) IS 'Calls of a schedule, the newest first, from a position in that order on; kept for awty.attempt_retention';

-- Jitter delays all calls of one schedule by the same time.
CREATE FUNCTION awty_http_internal.next_calls(id text, max integer DEFAULT 10) RETURNS SETOF timestamptz
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
    pending awty.future_job;
    zone text;
    moved interval;
BEGIN
    SELECT e.* INTO endpoint FROM awty_http_internal.endpoint AS e WHERE e.id = next_calls.id;
    SELECT f.* INTO pending FROM awty.future_job AS f
    WHERE f.entity_name = endpoint.entity_name AND f.entity_key = endpoint.entity_key AND f.job = endpoint.job AND NOT f.held;
    IF NOT FOUND OR next_calls.max < 1 THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT pending.next_check_at;
    SELECT r.zone INTO zone FROM awty.repetition AS r
    WHERE r.entity_name = endpoint.entity_name AND r.entity_key = endpoint.entity_key AND r.job = endpoint.job;
    SELECT pending.first_check_at - o INTO moved
    FROM awty_http_internal.coming(endpoint.every, endpoint.cron, zone, pending.first_check_at - awty_http_internal.jitter(endpoint) - '1 s'::interval, 1, endpoint.starts) AS o
    WHERE o <= pending.first_check_at;
    RETURN QUERY SELECT s.slot FROM (
            SELECT awty.next_slot(o + coalesce(moved, '0'), endpoint.job) AS slot
            FROM awty_http_internal.coming(endpoint.every, endpoint.cron, zone, greatest(pending.next_check_at, clock_timestamp()) - coalesce(moved, '0'), next_calls.max, endpoint.starts) AS o
            WHERE endpoint.ends IS NULL OR o <= endpoint.ends) AS s
        WHERE s.slot > pending.next_check_at ORDER BY s.slot LIMIT next_calls.max - 1;
END
$$;
COMMENT ON FUNCTION awty_http_internal.next_calls(text, integer) IS 'Next calls of a schedule, as they are planned now';

-- This is a function instead of a part of the view, because the function reads the clock, and joins with the view must
-- stay cheap.
CREATE FUNCTION awty_http_internal.why_held(id bigint) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    -- Joins awty.future_job to hide checks that the caller may not read, because awty_internal.standing shows all.
    RETURN (SELECT s.why FROM awty.future_job AS f JOIN awty_internal.standing AS s ON s.id = f.id WHERE f.id = why_held.id);
COMMENT ON FUNCTION awty_http_internal.why_held(bigint) IS 'Why a check does not run now; NULL: the caller may not read the check';

CREATE FUNCTION awty_http_internal.standing(id text) RETURNS TABLE (why text, mend text)
    LANGUAGE sql VOLATILE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT s.why, s.mend
    FROM awty_http_internal.endpoint AS e
    JOIN awty.future_job AS f ON f.entity_name = e.entity_name AND f.entity_key = e.entity_key AND f.job = e.job
    JOIN awty_internal.standing AS s ON s.id = f.id
    WHERE e.id = standing.id AND s.rank <> ALL ('{6,8}') -- the call is not due yet, or under way
    UNION ALL
    SELECT s.why, s.mend
    FROM awty_http_internal.endpoint AS e
    JOIN awty_internal.standstill AS s ON s.entity_name = e.entity_name AND s.entity_key = e.entity_key AND s.job = e.job
    WHERE e.id = standing.id;
END;
COMMENT ON FUNCTION awty_http_internal.standing(text) IS 'Why a schedule is not called now, and the command that mends it';

CREATE VIEW awty_http_internal.schedule_status WITH (security_invoker = true) AS
SELECT CASE WHEN e.deleted_at IS NOT NULL THEN 'ended' WHEN e.paused THEN 'paused' WHEN f.held THEN 'held' WHEN f.id IS NULL THEN 'ended'
        WHEN target.state = ANY ('{blocked,open}') THEN 'blocked' ELSE 'active' END AS state,
    CASE WHEN e.deleted_at IS NOT NULL THEN NULL WHEN e.paused THEN e.paused_note
        WHEN f.held THEN coalesce(e.verdict_note, awty_http_internal.why_held(f.id))
        WHEN f.id IS NULL THEN e.verdict_note
        WHEN target.state = 'blocked' THEN concat('its target is blocked until ', date_trunc('second', target.until), ': ' || block.note)
        WHEN target.state = 'open'
            THEN format('its target has failed %s times in a row; the next attempt is at %s; the last error: %s', breaker.failures,
            date_trunc('second', target.until), breaker.message)
    END AS why,
    f.id AS check_id,
    CASE WHEN NOT f.held THEN f.next_check_at END AS next_slot,
    EXISTS (SELECT FROM awty.lease AS l WHERE l.id = f.id AND l.expires_at > statement_timestamp()) AS in_flight,
    -- The endpoint's columns come last, so that a later version can add columns.
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

COMMENT ON VIEW awty_http_internal.schedule_status IS 'State of each schedule and its reason: active, paused by a person, held by awty or its endpoint, blocked target, or ended';

CREATE FUNCTION awty_http_internal.say_blocked(endpoint awty_http_internal.endpoint) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    why CONSTANT text := (SELECT s.why FROM awty_http_internal.schedule_status AS s WHERE s.id = endpoint.id AND s.state = 'blocked');
BEGIN
    IF why IS NOT NULL THEN
        RAISE NOTICE USING MESSAGE = format('"%s" is not called now: %s', endpoint.uri, why);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.say_blocked(awty_http_internal.endpoint) IS 'Notifies the client that the target of an endpoint takes no calls';

-- A session that is idle reads new settings only with its next statement, so pg_conf_load_time() can be later.
CREATE FUNCTION awty_http_internal.settings_read() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
    RETURN (SELECT r.settings_read FROM awty_internal.runtime() AS r);
COMMENT ON FUNCTION awty_http_internal.settings_read() IS 'When did the database server last read its settings? NULL if awty is not preloaded';

-- A block that has ended stays in awty_internal.target for at least a day, unless the target is blocked again.
-- awty.target no longer shows such a block.
CREATE FUNCTION awty_http_internal.stops(id text, at timestamptz) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT jsonb_build_object(
            'block', (SELECT jsonb_build_object('target', nullif(t.target, ''), 'since', t.blocked_at, 'until', t.blocked_until,
                          'by', t.blocked_by::text, 'note', t.note)
                      FROM awty_internal.target AS t
                      WHERE t.job = e.job AND t.target = ANY (ARRAY[e.entity_name, '']) AND t.blocked_until > stops.at
                      ORDER BY t.blocked_at <= stops.at DESC, t.blocked_until DESC LIMIT 1),
            'pause', (SELECT jsonb_build_object('since', j.paused_at, 'until', j.paused_until, 'by', j.paused_by::text, 'note', j.paused_note)
                      FROM awty.job AS j WHERE j.job = e.job AND j.paused),
            'hold', (SELECT jsonb_build_object('since', h.held_at, 'until', h.held_until, 'note', h.note,
                         'paused', e.paused, 'by', CASE WHEN e.verdict IS NULL THEN h.held_by::text END)
                     FROM awty.future_job AS f JOIN awty_internal.hold AS h ON h.check_id = f.id
                     WHERE f.entity_name = e.entity_name AND f.entity_key = e.entity_key AND f.job = e.job AND f.held))
        FROM awty_http_internal.endpoint AS e WHERE e.id = stops.id);
COMMENT ON FUNCTION awty_http_internal.stops(text, timestamptz)
    IS 'Last block of a schedule''s target that ended after a time, and the present pause of its job and hold of its check, as far as the caller may read them';
