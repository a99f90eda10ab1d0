-- A target without its own row has the limits for all targets of the job.
CREATE FUNCTION awty_http_internal.target(origin text, OUT job text, OUT target text, OUT concurrency integer, OUT rate numeric,
    OUT burst integer, OUT in_flight bigint, OUT state text, OUT blocked_until timestamptz, OUT why text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
    SELECT mine.job, origin, t.concurrency, t.rate, t.burst, CASE WHEN t.target IS NULL THEN 0 ELSE t.in_flight END,
        coalesce(t.state, 'ready'), t.blocked_until, t.why
    FROM (SELECT awty_http_internal.job() AS job) AS mine
    LEFT JOIN awty.target AS t ON t.job = mine.job AND (t.target = origin OR t.target IS NULL)
    ORDER BY t.target NULLS LAST LIMIT 1
$$;
COMMENT ON FUNCTION awty_http_internal.target(text) IS 'State and limits of a target, as in awty.target';

-- Locks the tenant's row, because any role could take an advisory lock and keep it.
CREATE FUNCTION awty_http_internal.lock_limits() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.lock_limits() IS 'Waits until no other transaction changes the limits of this tenant''s targets, and makes others wait until this one ends';

CREATE FUNCTION awty_http_internal.lock_limits_as(caller oid) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT FROM awty_http.tenant AS t WHERE t.job = awty_http_internal.job_to_schedule(lock_limits_as.caller) FOR NO KEY UPDATE
$$;
COMMENT ON FUNCTION awty_http_internal.lock_limits_as(oid) IS 'awty_http_internal.lock_limits for a caller';

-- The right to claim suffices, because the caller has got 429 or 503 with Retry-After from the target.
CREATE FUNCTION awty_http_internal.asked_to_wait(job text, target text, until timestamptz, note text) RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    RETURN awty_internal.block_for_now(job, target, until, note);
COMMENT ON FUNCTION awty_http_internal.asked_to_wait(text, text, timestamptz, text)
    IS 'Blocks a target as it has asked, at most one hour, and shortens no other block; returns whether it did; for roles that may claim';
