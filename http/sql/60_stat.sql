-- awty_http, part 6: statistics.

CREATE TABLE awty_http.stat (
    id              text COLLATE "C" NOT NULL,
    width           interval NOT NULL,
    bucket          timestamptz NOT NULL,
    count           bigint NOT NULL,
    ok              bigint NOT NULL,
    dropped         bigint NOT NULL,
    caught_up       bigint NOT NULL,
    implausible     bigint NOT NULL,
    lateness_sum    interval NOT NULL,
    lateness_min    interval,
    lateness_max    interval,
    lateness_steps  bigint[] NOT NULL,
    duration_sum    interval NOT NULL,
    duration_min    interval,
    duration_max    interval,
    duration_steps  bigint[] NOT NULL,
    CONSTRAINT stat_pkey PRIMARY KEY (id, width, bucket),
    CONSTRAINT stat_width_is_an_hour_or_a_day CHECK (width OPERATOR(pg_catalog.=) ANY ('{1 hour,24 hours}'::pg_catalog.interval[]))
);

CREATE INDEX stat_age_idx ON awty_http.stat (width, bucket);

COMMENT ON TABLE awty_http.stat IS 'What the calls of each endpoint, and those of all schedules of each job, came to, by hour for 90 days and by day in UTC for 5 years';
COMMENT ON COLUMN awty_http.stat.id IS 'The endpoint, or the job';
COMMENT ON COLUMN awty_http.stat.width IS 'Length of the bucket: 1 hour or 24 hours';
COMMENT ON COLUMN awty_http.stat.bucket IS 'Begin of the bucket: calls that ended in it are counted';
COMMENT ON COLUMN awty_http.stat.count IS 'Calls, also those that were dropped';
COMMENT ON COLUMN awty_http.stat.ok IS 'Calls that went well';
COMMENT ON COLUMN awty_http.stat.dropped IS 'Calls that were not made, because they would have been too late';
COMMENT ON COLUMN awty_http.stat.caught_up IS 'Calls later than 10 s and one period; they are in no lateness';
COMMENT ON COLUMN awty_http.stat.implausible IS 'Values that were negative, or that no clock can explain; they are in no average';
COMMENT ON COLUMN awty_http.stat.lateness_sum IS 'Of calls that were made and not caught up: start minus due time, added up';
COMMENT ON COLUMN awty_http.stat.lateness_min IS 'The smallest of them';
COMMENT ON COLUMN awty_http.stat.lateness_max IS 'The largest of them';
COMMENT ON COLUMN awty_http.stat.lateness_steps IS '24 counts: below 1 ms, below 2 ms, below 4 ms and so on; the last one has the rest';
COMMENT ON COLUMN awty_http.stat.duration_sum IS 'Of calls that were made: their time, added up';
COMMENT ON COLUMN awty_http.stat.duration_min IS 'The smallest of them';
COMMENT ON COLUMN awty_http.stat.duration_max IS 'The largest of them';
COMMENT ON COLUMN awty_http.stat.duration_steps IS 'As lateness_steps';

-- Histograms that can be added: step n has what is below 2^n ms.
CREATE FUNCTION awty_http_internal.count_step(steps bigint[], length interval) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step integer;
BEGIN
    IF length IS NOT NULL THEN
        step := 1 + width_bucket(extract(epoch FROM length) * 1000, '{1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,1048576,2097152,4194304}'::numeric[]);
        steps[step] := steps[step] + 1;
    END IF;
    RETURN steps;
END
$$;
COMMENT ON FUNCTION awty_http_internal.count_step(bigint[], interval) IS 'Counts one length in a histogram of 24 steps';

CREATE FUNCTION awty_http_internal.add_steps(steps bigint[], more bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(a.n + b.n ORDER BY a.place)
    FROM unnest(steps) WITH ORDINALITY AS a (n, place) JOIN unnest(more) WITH ORDINALITY AS b (n, place) ON b.place = a.place
$$;
COMMENT ON FUNCTION awty_http_internal.add_steps(bigint[], bigint[]) IS 'Adds two histograms';

CREATE AGGREGATE awty_http_internal.steps(interval) (
    SFUNC = awty_http_internal.count_step, STYPE = bigint[], INITCOND = '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}'
);
COMMENT ON AGGREGATE awty_http_internal.steps(interval) IS 'Histogram of lengths: 24 counts, below 1 ms, 2 ms, 4 ms and so on';

CREATE AGGREGATE awty_http_internal.all_steps(bigint[]) (
    SFUNC = awty_http_internal.add_steps, STYPE = bigint[], INITCOND = '{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}'
);
COMMENT ON AGGREGATE awty_http_internal.all_steps(bigint[]) IS 'Sum of histograms';

-- A number of seconds that a gateway has reported; NULL where it is none.
CREATE FUNCTION awty_http_internal.seconds(value jsonb) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN pg_catalog.jsonb_typeof(value) OPERATOR(pg_catalog.=) 'number' THEN
        CASE WHEN pg_catalog.abs(value::pg_catalog.numeric) OPERATOR(pg_catalog.<) 1e9
            THEN pg_catalog.make_interval(secs => value::pg_catalog.float8) END END;
COMMENT ON FUNCTION awty_http_internal.seconds(jsonb) IS 'A JSON number of seconds as an interval';

-- What an attempt says of a call, cleaned. In its results a gateway reports "lateness" and "duration" in seconds; where it does not, the
-- lease says so. Each query takes this in as its own part.
CREATE FUNCTION awty_http_internal.cleaned(ok boolean, message text, result jsonb, lateness interval, took interval, every interval)
    RETURNS TABLE (dropped boolean, caught_up boolean, implausible integer, lateness interval, duration interval)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT c.dropped, c.caught_up,
        CASE WHEN c.dropped THEN 0 ELSE (c.lateness IS NULL)::pg_catalog.int4 OPERATOR(pg_catalog.+) (c.duration IS NULL)::pg_catalog.int4 END,
        CASE WHEN NOT c.dropped AND NOT c.caught_up THEN c.lateness END,
        CASE WHEN NOT c.dropped THEN c.duration END
    FROM (
        SELECT NOT cleaned.ok AND coalesce(cleaned.message, '') OPERATOR(pg_catalog.^@) 'dropped: ' AS dropped,
            said.lateness OPERATOR(pg_catalog.>) greatest('10 s', cleaned.every)
                AND said.lateness OPERATOR(pg_catalog.<=) '366 days' AS caught_up,
            CASE WHEN said.lateness OPERATOR(pg_catalog.>=) '0' AND said.lateness OPERATOR(pg_catalog.<=) '366 days' THEN said.lateness END AS lateness,
            CASE WHEN said.duration OPERATOR(pg_catalog.>=) '0' AND said.duration OPERATOR(pg_catalog.<=) '1 day' THEN said.duration END AS duration
        FROM (
            SELECT coalesce(awty_http_internal.seconds(cleaned.result OPERATOR(pg_catalog.->) 'lateness'), cleaned.lateness) AS lateness,
                coalesce(awty_http_internal.seconds(cleaned.result OPERATOR(pg_catalog.->) 'duration'), cleaned.took) AS duration
        ) AS said
    ) AS c;
END;
COMMENT ON FUNCTION awty_http_internal.cleaned(boolean, text, jsonb, interval, interval, interval) IS 'What an attempt says of a call, without what no clock can explain';

-- The calls of all schedules that ended in a stretch of time.
CREATE FUNCTION awty_http_internal.calls(since timestamptz, until timestamptz,
    OUT id text, OUT job text, OUT ended_at timestamptz, OUT ok boolean, OUT dropped boolean, OUT caught_up boolean, OUT implausible integer,
    OUT lateness interval, OUT duration interval)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.id, e.job, a.ended_at, a.ok, c.dropped, c.caught_up, c.implausible, c.lateness, c.duration
    FROM awty.attempt AS a
    JOIN awty_http.endpoint AS e ON e.entity_name = a.entity_name AND e.entity_key = a.entity_key AND e.job = a.job
    CROSS JOIN LATERAL awty_http_internal.cleaned(a.ok, a.message, a.result, a.lateness, a.ended_at - a.leased_at, e.every) AS c
    WHERE a.ended_at >= calls.since AND a.ended_at < calls.until
$$;
COMMENT ON FUNCTION awty_http_internal.calls(timestamptz, timestamptz) IS 'The calls of schedules that ended in a stretch of time, with implausible values left out';

-- Overwrites whole buckets, so that it may run twice. An hour is counted as long as awty.attempt has all of it, which forgets whole days in
-- UTC; hours that stood still for longer are gaps.
CREATE FUNCTION awty_http_internal.roll_up(at timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' AS $$
DECLARE
    kept CONSTANT interval := nullif(current_setting('awty.attempt_retention')::interval, '0'); -- NULL: for ever
    until CONSTANT timestamptz := date_trunc('hour', roll_up.at);
    last CONSTANT timestamptz := (SELECT s.bucket FROM awty_http.stat AS s WHERE s.width = '1 hour' ORDER BY s.bucket DESC LIMIT 1);
    since timestamptz := coalesce(date_trunc('day', roll_up.at - kept), '-infinity');
BEGIN
    -- What ended in an hour may have been committed after it.
    since := greatest(since, last - '2 hours'::interval);
    INSERT INTO awty_http.stat AS s
    SELECT coalesce(c.id, c.job), '1 hour', date_trunc('hour', c.ended_at), count(*), count(*) FILTER (WHERE c.ok), count(*) FILTER (WHERE c.dropped),
           count(*) FILTER (WHERE c.caught_up), sum(c.implausible),
           coalesce(sum(c.lateness), '0'), min(c.lateness), max(c.lateness), awty_http_internal.steps(c.lateness),
           coalesce(sum(c.duration), '0'), min(c.duration), max(c.duration), awty_http_internal.steps(c.duration)
    FROM awty_http_internal.calls(since, until) AS c
    GROUP BY GROUPING SETS ((c.id, date_trunc('hour', c.ended_at)), (c.job, date_trunc('hour', c.ended_at)))
    ON CONFLICT ON CONSTRAINT stat_pkey DO UPDATE SET (count, ok, dropped, caught_up, implausible, lateness_sum, lateness_min,
        lateness_max, lateness_steps, duration_sum, duration_min, duration_max, duration_steps)
        = ROW (excluded.count, excluded.ok, excluded.dropped, excluded.caught_up, excluded.implausible, excluded.lateness_sum,
        excluded.lateness_min, excluded.lateness_max, excluded.lateness_steps, excluded.duration_sum, excluded.duration_min,
        excluded.duration_max, excluded.duration_steps);
    INSERT INTO awty_http.stat AS s
    SELECT h.id, '24 hours', date_trunc('day', h.bucket), sum(h.count), sum(h.ok), sum(h.dropped), sum(h.caught_up), sum(h.implausible),
           sum(h.lateness_sum), min(h.lateness_min), max(h.lateness_max), awty_http_internal.all_steps(h.lateness_steps),
           sum(h.duration_sum), min(h.duration_min), max(h.duration_max), awty_http_internal.all_steps(h.duration_steps)
    FROM awty_http.stat AS h WHERE h.width = '1 hour' AND h.bucket >= date_trunc('day', since) GROUP BY h.id, date_trunc('day', h.bucket)
    ON CONFLICT ON CONSTRAINT stat_pkey DO UPDATE SET (count, ok, dropped, caught_up, implausible, lateness_sum, lateness_min,
        lateness_max, lateness_steps, duration_sum, duration_min, duration_max, duration_steps)
        = ROW (excluded.count, excluded.ok, excluded.dropped, excluded.caught_up, excluded.implausible, excluded.lateness_sum,
        excluded.lateness_min, excluded.lateness_max, excluded.lateness_steps, excluded.duration_sum, excluded.duration_min,
        excluded.duration_max, excluded.duration_steps);
    -- Whole days, so that no day is added up from a part of its hours.
    DELETE FROM awty_http.stat AS s WHERE s.width = '1 hour' AND s.bucket < date_trunc('day', roll_up.at - '90 days'::interval);
    DELETE FROM awty_http.stat AS s WHERE s.width = '24 hours' AND s.bucket < roll_up.at - '1827 days'::interval;
    DELETE FROM awty_http.endpoint AS e
    WHERE e.deleted_at < roll_up.at - '90 days'::interval AND NOT EXISTS (SELECT FROM awty_http.stat AS s WHERE s.id = e.id);
    DELETE FROM awty_http_internal.sent AS s
    WHERE greatest(s.due_at, s.sent_at) < roll_up.at - coalesce(kept, '0') - '1 hour'::interval
      AND NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = s.check_id)
      -- It may have been tried for longer than that.
      AND NOT EXISTS (SELECT FROM awty.attempt AS a WHERE a.id = s.check_id);
    DELETE FROM awty_http.token AS t WHERE t.expires_at < roll_up.at - '90 days'::interval;
END
$$;
COMMENT ON FUNCTION awty_http_internal.roll_up(timestamptz) IS 'Counts the calls of the hours before a time, and forgets what is too old';

-- The function of the job awty_http.roll_up.
CREATE FUNCTION awty_http_internal.roll_up() RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT awty_http_internal.roll_up(clock_timestamp())
$$;
COMMENT ON FUNCTION awty_http_internal.roll_up() IS 'Counts the calls of the hours before now';
