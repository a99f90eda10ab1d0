-- A target without its own row has the limits for all targets of the job.
CREATE FUNCTION awty_http_internal.target(origin text, OUT job text, OUT target text, OUT concurrency integer, OUT rate numeric,
    OUT burst integer, OUT in_flight bigint, OUT state text, OUT blocked_until timestamptz, OUT why text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
    SELECT mine.job, origin, t.concurrency, t.rate, t.burst, CASE WHEN t.target IS NULL THEN 0 ELSE t.in_flight END,
        coalesce(t.state, 'ready'), t.blocked_until, t.why
    FROM (SELECT awty_http_internal.job() AS job) AS mine
    LEFT JOIN LATERAL (
        (SELECT a.* FROM awty.target AS a WHERE a.job = mine.job AND a.target = origin LIMIT 1)
        UNION ALL
        (SELECT a.* FROM awty.target AS a WHERE a.job = mine.job AND a.target IS NULL LIMIT 1)
        LIMIT 1
    ) AS t ON true
$$;
COMMENT ON FUNCTION awty_http_internal.target(text) IS 'State and limits of a target, as in awty.target';

-- Finds the names of the targets by indexes first, because computing the state of a target takes several lookups.
CREATE FUNCTION awty_http_internal.targets(after text DEFAULT NULL, max integer DEFAULT 50) RETURNS SETOF awty.target
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 50
BEGIN ATOMIC
    (SELECT a.* FROM awty.target AS a WHERE a.job = awty_http_internal.job() AND a.target IS NULL AND targets.after IS NULL LIMIT 1)
    UNION ALL
    SELECT t.* FROM (
        (SELECT x.job, x.target FROM awty_internal.target AS x
         WHERE x.job = awty_http_internal.job() AND x.target > coalesce(targets.after, '') ORDER BY x.target LIMIT targets.max)
        UNION
        (SELECT b.job, b.target FROM awty_internal.breaker AS b
         WHERE b.job = awty_http_internal.job() AND b.target > coalesce(targets.after, '') ORDER BY b.target LIMIT targets.max)
        UNION
        (SELECT DISTINCT l.job, l.entity_name FROM awty_internal.lease AS l
         WHERE l.job = awty_http_internal.job() AND l.entity_name > coalesce(targets.after, '') ORDER BY l.entity_name LIMIT targets.max)
        ORDER BY 2 LIMIT targets.max
    ) AS k
    CROSS JOIN LATERAL (SELECT a.* FROM awty.target AS a WHERE a.job = k.job AND a.target = k.target OFFSET 0) AS t
    LIMIT targets.max;
END;
COMMENT ON FUNCTION awty_http_internal.targets(text, integer) IS 'Targets in the order of their names, from a name on; the first row stands for all targets together';

-- Locks the tenant's row instead of an advisory lock, because any role could keep an advisory lock.
CREATE FUNCTION awty_http_internal.lock_limits() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.lock_limits() IS 'Waits until no other transaction changes the limits of this tenant''s targets, and makes others wait until this one ends';

CREATE FUNCTION awty_http_internal.lock_limits_as(caller oid) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT FROM awty_http.tenant AS t WHERE t.job = awty_http_internal.job_to_schedule(lock_limits_as.caller) FOR NO KEY UPDATE
$$;
COMMENT ON FUNCTION awty_http_internal.lock_limits_as(oid) IS 'awty_http_internal.lock_limits for a caller';

-- A role needs only the right to claim, because the target itself has answered the role's call with 429 or 503 and
-- Retry-After.
CREATE FUNCTION awty_http_internal.asked_to_wait(job text, target text, until timestamptz, note text) RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    RETURN awty_internal.block_for_now(job, target, until, note);
COMMENT ON FUNCTION awty_http_internal.asked_to_wait(text, text, timestamptz, text)
    IS 'Blocks a target as it has asked, at most one hour, and shortens no other block; returns whether it did; for roles that may claim';
