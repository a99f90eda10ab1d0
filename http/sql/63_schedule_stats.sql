CREATE FUNCTION awty_http_internal.calls_of(id text, since timestamptz, until timestamptz,
    OUT ended_at timestamptz, OUT ok boolean, OUT dropped boolean, OUT caught_up boolean, OUT implausible integer,
    OUT left_out bigint, OUT lateness interval, OUT duration interval, OUT caught_up_by interval)
    RETURNS SETOF record LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
BEGIN
    SELECT e.* INTO endpoint FROM awty_http_internal.endpoint AS e WHERE e.id = calls_of.id;
    RETURN QUERY SELECT a.ended_at, a.ok, c.dropped, c.caught_up, c.implausible,
            awty_http_internal.left_out(endpoint, a.first_check_at, a.next_check_at, a.ended_at), c.lateness, c.duration, c.caught_up_by
        FROM awty.attempt AS a
        CROSS JOIN LATERAL awty_http_internal.cleaned(a.ok, a.message, a.result, a.lateness, a.ended_at - a.leased_at, endpoint.every) AS c
        WHERE a.entity_name = endpoint.entity_name AND a.entity_key = endpoint.entity_key AND a.job = endpoint.job
          AND a.ended_at >= calls_of.since AND a.ended_at < calls_of.until;
END
$$;
COMMENT ON FUNCTION awty_http_internal.calls_of(text, timestamptz, timestamptz) IS 'Calls of one schedule that ended in a time range, as the statistics count them';

CREATE FUNCTION awty_http_internal.counted_until(id text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT coalesce(max(s.bucket) + '1 hour'::interval, '-infinity') FROM awty_http.stat AS s
            WHERE s.id = counted_until.id AND s.width = '1 hour' AND s.bucket < clock_timestamp());
END
$$;
COMMENT ON FUNCTION awty_http_internal.counted_until(text) IS 'End of the hours that awty_http.stat has of a schedule';

-- Interpolates within a step of the histogram, as if the lengths in this step were evenly spread.
CREATE FUNCTION awty_http_internal.percentile(steps bigint[], share double precision, lowest interval, highest interval) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT greatest(percentile.lowest, least(percentile.highest, make_interval(secs => (s.low + (s.high - s.low) * (s.wanted - s.before) / s.n) / 1000)))
    FROM (
        SELECT t.n, CASE WHEN t.place = 1 THEN 0 ELSE 2 ^ (t.place - 2) END AS low, 2 ^ (t.place - 1) AS high,
               (sum(t.n) OVER (ORDER BY t.place) - t.n)::double precision AS before, sum(t.n) OVER () * percentile.share AS wanted
        FROM unnest(percentile.steps) WITH ORDINALITY AS t (n, place)
    ) AS s
    WHERE s.n > 0 AND s.before + s.n >= s.wanted ORDER BY s.low LIMIT 1
$$;
COMMENT ON FUNCTION awty_http_internal.percentile(bigint[], double precision, interval, interval) IS 'Length below which that share of a histogram lies; NULL: the histogram is empty';

-- Buckets of an hour and longer come from awty_http.stat. Calls that the roll-up has not counted yet come from
-- awty.attempt.
CREATE FUNCTION awty_http_internal.stats(id text, width interval, since timestamptz, until timestamptz,
    OUT bucket timestamptz, OUT count bigint, OUT ok bigint, OUT dropped bigint, OUT caught_up bigint, OUT implausible bigint,
    OUT left_out bigint, OUT lateness_p50 interval, OUT lateness_p95 interval, OUT lateness_max interval,
    OUT duration_p50 interval, OUT duration_p95 interval, OUT duration_max interval, OUT caught_up_max interval)
    RETURNS SETOF record LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    origin CONSTANT timestamptz := '2000-01-01 00:00:00+00';
    first timestamptz;
    live timestamptz;
BEGIN
    IF stats.width <> ALL ('{1 s,10 s,1 min,10 min,1 h,6 h,1 day}'::interval[]) OR stats.width IS NULL THEN
        PERFORM awty_http_internal.refuse('22023', 'unknown width of a bucket', 'Use 1 s, 10 s, 1 min, 10 min, 1 h, 6 h or 1 day.');
    END IF;
    IF stats.since >= stats.until IS NOT FALSE OR NOT isfinite(stats.since) OR NOT isfinite(stats.until)
       OR stats.until - stats.since > stats.width * 360 THEN
        PERFORM awty_http_internal.refuse('22023', 'the time range must have 1 to 360 buckets', 'Ask for a shorter time range or for wider buckets.');
    END IF;
    first := date_bin(stats.width, stats.since, origin);
    live := CASE WHEN stats.width < '1 hour' THEN first ELSE greatest(first, awty_http_internal.counted_until(stats.id)) END;
    RETURN QUERY
    WITH part AS (
        SELECT date_bin(stats.width, s.bucket, origin) AS at, s.count, s.ok, s.dropped, s.caught_up, s.implausible, s.left_out,
            s.lateness_min, s.lateness_max, s.lateness_steps, s.duration_min, s.duration_max, s.duration_steps, s.caught_up_max
        FROM awty_http.stat AS s
        WHERE stats.width >= '1 hour' AND s.id = stats.id
          AND s.width = CASE WHEN stats.width < '1 day' THEN '1 hour' ELSE '24 hours' END::interval AND s.bucket >= first AND s.bucket < stats.until
        UNION ALL
        SELECT date_bin(stats.width, c.ended_at, origin), count(*), count(*) FILTER (WHERE c.ok), count(*) FILTER (WHERE c.dropped),
            count(*) FILTER (WHERE c.caught_up), sum(c.implausible), sum(c.left_out), min(c.lateness), max(c.lateness), awty_http_internal.steps(c.lateness),
            min(c.duration), max(c.duration), awty_http_internal.steps(c.duration), max(c.caught_up_by)
        FROM awty_http_internal.calls_of(stats.id, live, stats.until) AS c GROUP BY 1
    )
    SELECT p.at, sum(p.count)::bigint, sum(p.ok)::bigint, sum(p.dropped)::bigint, sum(p.caught_up)::bigint, sum(p.implausible)::bigint, sum(p.left_out)::bigint,
        awty_http_internal.percentile(awty_http_internal.all_steps(p.lateness_steps), 0.5, min(p.lateness_min), max(p.lateness_max)),
        awty_http_internal.percentile(awty_http_internal.all_steps(p.lateness_steps), 0.95, min(p.lateness_min), max(p.lateness_max)),
        max(p.lateness_max),
        awty_http_internal.percentile(awty_http_internal.all_steps(p.duration_steps), 0.5, min(p.duration_min), max(p.duration_max)),
        awty_http_internal.percentile(awty_http_internal.all_steps(p.duration_steps), 0.95, min(p.duration_min), max(p.duration_max)),
        max(p.duration_max), max(p.caught_up_max)
    FROM part AS p GROUP BY p.at ORDER BY p.at;
END
$$;
COMMENT ON FUNCTION awty_http_internal.stats(text, interval, timestamptz, timestamptz) IS 'Statistics of the calls of a schedule, one row per bucket, at most 360; buckets without a call are left out';

CREATE FUNCTION awty_http_internal.counts(id text, OUT ok bigint, OUT failed bigint, OUT dropped bigint)
    RETURNS record LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    moment CONSTANT timestamptz := clock_timestamp();
    since CONSTANT timestamptz := moment - '24 hours'::interval;
    whole CONSTANT timestamptz := date_bin('1 hour', moment - '23 hours'::interval, '2000-01-01 00:00:00+00');
    live CONSTANT timestamptz := greatest(whole, awty_http_internal.counted_until(counts.id));
    endpoint awty_http_internal.endpoint;
BEGIN
    SELECT e.* INTO endpoint FROM awty_http_internal.endpoint AS e WHERE e.id = counts.id;
    SELECT coalesce(sum(p.ok), 0), coalesce(sum(p.count - p.ok - p.dropped), 0), coalesce(sum(p.dropped), 0)
    INTO ok, failed, dropped
    FROM (
        SELECT s.count, s.ok, s.dropped FROM awty_http.stat AS s
        WHERE s.id = counts.id AND s.width = '1 hour' AND s.bucket >= whole AND s.bucket < moment
        UNION ALL
        SELECT count(*), count(*) FILTER (WHERE c.ok), count(*) FILTER (WHERE awty_http_internal.dropped(c.ok, c.message))
        FROM (
            SELECT a.ok, a.message FROM awty.attempt AS a
            WHERE a.entity_name = endpoint.entity_name AND a.entity_key = endpoint.entity_key AND a.job = endpoint.job
              AND a.ended_at >= since AND a.ended_at < whole
            UNION ALL
            SELECT a.ok, a.message FROM awty.attempt AS a
            WHERE a.entity_name = endpoint.entity_name AND a.entity_key = endpoint.entity_key AND a.job = endpoint.job
              AND a.ended_at >= live
        ) AS c
    ) AS p;
END
$$;
COMMENT ON FUNCTION awty_http_internal.counts(text) IS 'How many calls of a schedule succeeded, failed and were dropped in the last 24 hours';
