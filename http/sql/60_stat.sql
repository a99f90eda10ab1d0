CREATE TABLE awty_http.stat (
    id              text COLLATE "C" NOT NULL,
    width           interval NOT NULL,
    bucket          timestamptz NOT NULL,
    count           bigint NOT NULL,
    ok              bigint NOT NULL,
    dropped         bigint NOT NULL,
    caught_up       bigint NOT NULL,
    implausible     bigint NOT NULL,
    left_out        bigint NOT NULL,
    lateness_sum    interval NOT NULL,
    lateness_min    interval,
    lateness_max    interval,
    lateness_steps  bigint[] NOT NULL,
    duration_sum    interval NOT NULL,
    duration_min    interval,
    duration_max    interval,
    duration_steps  bigint[] NOT NULL,
    job             text COLLATE "C" NOT NULL,
    caught_up_max   interval,
    CONSTRAINT stat_pkey PRIMARY KEY (id, width, bucket),
    CONSTRAINT stat_width_is_an_hour_or_a_day CHECK (width = ANY ('{1 hour,24 hours}'::interval[]))
);

CREATE INDEX stat_age_idx ON awty_http.stat (width, bucket);
CREATE INDEX stat_job_idx ON awty_http.stat (job, width, bucket);
CREATE INDEX stat_of_jobs_idx ON awty_http.stat (width, bucket) WHERE id = job;

COMMENT ON TABLE awty_http.stat IS 'Statistics of the calls of each schedule, and of all schedules of each tenant''s job: by hour for 90 days, and by day in UTC for 5 years';
COMMENT ON COLUMN awty_http.stat.id IS 'Id of the schedule, or the job';
COMMENT ON COLUMN awty_http.stat.width IS 'Length of the bucket: 1 hour or 24 hours';
COMMENT ON COLUMN awty_http.stat.bucket IS 'Begin of the bucket, which counts the calls that ended in it';
COMMENT ON COLUMN awty_http.stat.count IS 'Calls, including dropped ones';
COMMENT ON COLUMN awty_http.stat.ok IS 'Successful calls';
COMMENT ON COLUMN awty_http.stat.dropped IS 'Calls that were not made, because they would have been too late';
COMMENT ON COLUMN awty_http.stat.caught_up IS 'Calls that were later than 10 s and one period; they do not count in lateness';
COMMENT ON COLUMN awty_http.stat.implausible IS 'Values that were negative or that no clock can explain; they count in no average';
COMMENT ON COLUMN awty_http.stat.left_out IS 'Slots of the schedule that passed before a call of an earlier slot had ended; they get no call';
COMMENT ON COLUMN awty_http.stat.lateness_sum IS 'Sum of start minus due time, of calls that were made and not caught up';
COMMENT ON COLUMN awty_http.stat.lateness_min IS 'Smallest lateness';
COMMENT ON COLUMN awty_http.stat.lateness_max IS 'Largest lateness';
COMMENT ON COLUMN awty_http.stat.lateness_steps IS '24 counts of lateness: below 1 ms, below 2 ms, below 4 ms and so on; the last step counts the rest';
COMMENT ON COLUMN awty_http.stat.duration_sum IS 'Sum of the durations, of calls that were made';
COMMENT ON COLUMN awty_http.stat.duration_min IS 'Smallest duration';
COMMENT ON COLUMN awty_http.stat.duration_max IS 'Largest duration';
COMMENT ON COLUMN awty_http.stat.duration_steps IS '24 counts of durations, like lateness_steps';
COMMENT ON COLUMN awty_http.stat.job IS 'Job of the tenant; equal to id in the sums of all its schedules';
COMMENT ON COLUMN awty_http.stat.caught_up_max IS 'Largest lateness of the calls that were caught up';

CREATE FUNCTION awty_http_internal.step(length interval) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 1 + width_bucket(length, '{1 ms,2 ms,4 ms,8 ms,16 ms,32 ms,64 ms,128 ms,256 ms,512 ms,1.024 s,2.048 s,4.096 s,8.192 s,16.384 s,32.768 s,65.536 s,131.072 s,262.144 s,524.288 s,1048.576 s,2097.152 s,4194.304 s}'::interval[]);
COMMENT ON FUNCTION awty_http_internal.step(interval) IS 'Step of a histogram that a length belongs to, 1 to 24';

CREATE FUNCTION awty_http_internal.count_step(steps bigint[], length interval) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step integer := awty_http_internal.step(length);
BEGIN
    IF step IS NOT NULL THEN
        steps[step] := steps[step] + 1;
    END IF;
    RETURN steps;
END
$$;
COMMENT ON FUNCTION awty_http_internal.count_step(bigint[], interval) IS 'Counts one length in a histogram of 24 steps';

CREATE FUNCTION awty_http_internal.add_steps(steps bigint[], more bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sums CONSTANT bigint[] := ARRAY[
        steps[1] + more[1], steps[2] + more[2], steps[3] + more[3], steps[4] + more[4], steps[5] + more[5], steps[6] + more[6],
        steps[7] + more[7], steps[8] + more[8], steps[9] + more[9], steps[10] + more[10], steps[11] + more[11], steps[12] + more[12],
        steps[13] + more[13], steps[14] + more[14], steps[15] + more[15], steps[16] + more[16], steps[17] + more[17], steps[18] + more[18],
        steps[19] + more[19], steps[20] + more[20], steps[21] + more[21], steps[22] + more[22], steps[23] + more[23], steps[24] + more[24]];
BEGIN
    RETURN sums;
END
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

CREATE FUNCTION awty_http_internal.seconds(value jsonb) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN
        CASE WHEN abs(value::numeric) < 1e9
            THEN make_interval(secs => round(value::numeric, 6)::float8) END END;
COMMENT ON FUNCTION awty_http_internal.seconds(jsonb) IS 'A JSON number of seconds as an interval, to the microsecond; NULL: it is not a usable number';

CREATE FUNCTION awty_http_internal.dropped(ok boolean, message text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN NOT dropped.ok AND coalesce(dropped.message, '') ^@ 'dropped: ';
COMMENT ON FUNCTION awty_http_internal.dropped(boolean, text) IS 'Was the call dropped, because it was too late for the occurrence?';

-- Uses the times of the lease if the gateway did not measure lateness and duration.
CREATE FUNCTION awty_http_internal.cleaned(ok boolean, message text, result jsonb, lateness interval, took interval, every interval)
    RETURNS TABLE (dropped boolean, caught_up boolean, implausible integer, lateness interval, duration interval, caught_up_by interval)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT c.dropped, c.caught_up,
        CASE WHEN c.dropped THEN 0 ELSE (c.lateness IS NULL)::int4 + (c.duration IS NULL)::int4 END,
        CASE WHEN NOT c.dropped AND NOT c.caught_up THEN c.lateness END,
        CASE WHEN NOT c.dropped THEN c.duration END,
        CASE WHEN NOT c.dropped AND c.caught_up THEN c.lateness END
    FROM (
        SELECT awty_http_internal.dropped(cleaned.ok, cleaned.message) AS dropped,
            said.lateness > greatest('10 s', cleaned.every)
                AND said.lateness <= said.latest AS caught_up,
            CASE WHEN said.lateness >= '0' AND said.lateness <= said.latest THEN said.lateness END AS lateness,
            CASE WHEN said.duration >= '0' AND said.duration <= said.longest THEN said.duration END AS duration
        FROM (
            SELECT coalesce(awty_http_internal.seconds(cleaned.result -> 'lateness'), cleaned.lateness) AS lateness,
                coalesce(awty_http_internal.seconds(cleaned.result -> 'duration'), cleaned.took) AS duration,
                -- Allows one second more than the lease, because clocks differ.
                least('366 days', cleaned.lateness + cleaned.took + '1 s'::interval) AS latest,
                least('1 day', cleaned.took + '1 s'::interval) AS longest
            OFFSET 0 -- computes each value once
        ) AS said
    ) AS c;
END;
COMMENT ON FUNCTION awty_http_internal.cleaned(boolean, text, jsonb, interval, interval, interval) IS 'Lateness and duration of a call, without values that no clock can explain; caught_up_by is the lateness of a call that was caught up';

-- Each slot counts for only one attempt, because a retry is due before the next slot of the plan.
CREATE FUNCTION awty_http_internal.left_out(endpoint awty_http_internal.endpoint, slot timestamptz, due timestamptz, ended timestamptz) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL RESTRICTED
    RETURN CASE
        WHEN endpoint.every IS NULL AND endpoint.cron IS NULL THEN 0
        WHEN ended - endpoint.catch_up <= due THEN 0
        WHEN date_part('day', endpoint.every) = 0 AND date_part('month', endpoint.every) = 0 AND date_part('year', endpoint.every) = 0
        THEN floor(date_part('epoch', ended - endpoint.catch_up - slot) / date_part('epoch', endpoint.every))
            - floor(date_part('epoch', due - slot) / date_part('epoch', endpoint.every))
        ELSE (SELECT count(*) FROM awty_http_internal.coming(endpoint.every, endpoint.cron, coalesce(endpoint.zone, 'UTC'), due, 1000, endpoint.starts,
                ended - endpoint.catch_up) AS o (at)
              WHERE o.at <= ended - endpoint.catch_up)
    END;
COMMENT ON FUNCTION awty_http_internal.left_out(awty_http_internal.endpoint, timestamptz, timestamptz, timestamptz) IS 'Number of slots that passed between the time at which an attempt was due and its end, and that are not made up for';
