-- Divides the counting among several runs, because a single run that counted 4 million calls delayed other calls by up
-- to 17 s.

-- Overwrites whole buckets, so that a second count of the same hour does no harm.
CREATE FUNCTION awty_http_internal.count_calls_of(ids text[], since timestamptz, until timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET jit = off
    SET plan_cache_mode = force_custom_plan -- because awty_http.stat grows while the function runs
AS $$
BEGIN
    INSERT INTO awty_http.stat AS s
    SELECT c.id, '1 hour', date_trunc('hour', c.ended_at), count(*), count(*) FILTER (WHERE c.ok), count(*) FILTER (WHERE c.dropped),
           count(*) FILTER (WHERE c.caught_up), sum(c.implausible), sum(c.left_out),
           coalesce(sum(c.lateness), '0'), min(c.lateness), max(c.lateness), ARRAY[
               count(*) FILTER (WHERE c.lateness_step = 1), count(*) FILTER (WHERE c.lateness_step = 2), count(*) FILTER (WHERE c.lateness_step = 3), count(*) FILTER (WHERE c.lateness_step = 4),
               count(*) FILTER (WHERE c.lateness_step = 5), count(*) FILTER (WHERE c.lateness_step = 6), count(*) FILTER (WHERE c.lateness_step = 7), count(*) FILTER (WHERE c.lateness_step = 8),
               count(*) FILTER (WHERE c.lateness_step = 9), count(*) FILTER (WHERE c.lateness_step = 10), count(*) FILTER (WHERE c.lateness_step = 11), count(*) FILTER (WHERE c.lateness_step = 12),
               count(*) FILTER (WHERE c.lateness_step = 13), count(*) FILTER (WHERE c.lateness_step = 14), count(*) FILTER (WHERE c.lateness_step = 15), count(*) FILTER (WHERE c.lateness_step = 16),
               count(*) FILTER (WHERE c.lateness_step = 17), count(*) FILTER (WHERE c.lateness_step = 18), count(*) FILTER (WHERE c.lateness_step = 19), count(*) FILTER (WHERE c.lateness_step = 20),
               count(*) FILTER (WHERE c.lateness_step = 21), count(*) FILTER (WHERE c.lateness_step = 22), count(*) FILTER (WHERE c.lateness_step = 23), count(*) FILTER (WHERE c.lateness_step = 24)],
           coalesce(sum(c.duration), '0'), min(c.duration), max(c.duration), ARRAY[
               count(*) FILTER (WHERE c.duration_step = 1), count(*) FILTER (WHERE c.duration_step = 2), count(*) FILTER (WHERE c.duration_step = 3), count(*) FILTER (WHERE c.duration_step = 4),
               count(*) FILTER (WHERE c.duration_step = 5), count(*) FILTER (WHERE c.duration_step = 6), count(*) FILTER (WHERE c.duration_step = 7), count(*) FILTER (WHERE c.duration_step = 8),
               count(*) FILTER (WHERE c.duration_step = 9), count(*) FILTER (WHERE c.duration_step = 10), count(*) FILTER (WHERE c.duration_step = 11), count(*) FILTER (WHERE c.duration_step = 12),
               count(*) FILTER (WHERE c.duration_step = 13), count(*) FILTER (WHERE c.duration_step = 14), count(*) FILTER (WHERE c.duration_step = 15), count(*) FILTER (WHERE c.duration_step = 16),
               count(*) FILTER (WHERE c.duration_step = 17), count(*) FILTER (WHERE c.duration_step = 18), count(*) FILTER (WHERE c.duration_step = 19), count(*) FILTER (WHERE c.duration_step = 20),
               count(*) FILTER (WHERE c.duration_step = 21), count(*) FILTER (WHERE c.duration_step = 22), count(*) FILTER (WHERE c.duration_step = 23), count(*) FILTER (WHERE c.duration_step = 24)], c.job, max(c.caught_up_by)
    FROM (
        SELECT e.id, e.job, a.ended_at, a.ok, c.*, awty_http_internal.step(c.lateness) AS lateness_step, awty_http_internal.step(c.duration) AS duration_step,
            awty_http_internal.left_out(e, a.first_check_at, a.next_check_at, a.ended_at) AS left_out
        FROM awty_http_internal.endpoint AS e
        JOIN awty_http.tenant AS t ON t.job = e.job
        CROSS JOIN LATERAL (
            -- Another role may have had a job of this name before.
            SELECT a.* FROM awty_internal.attempt AS a
            WHERE a.entity_name = e.entity_name AND a.entity_key = e.entity_key AND a.job = e.job AND a.role::oid = t.role::oid
              AND a.ended_at >= count_calls_of.since AND a.ended_at < count_calls_of.until
            OFFSET 0 -- uses the index on the entity
        ) AS a
        CROSS JOIN LATERAL awty_http_internal.cleaned(a.ok, a.message, a.result, a.lateness, a.ended_at - a.leased_at, e.every) AS c
        WHERE e.id = ANY (ids)
        OFFSET 0 -- computes each step once
    ) AS c
    GROUP BY c.id, c.job, date_trunc('hour', c.ended_at)
    ON CONFLICT ON CONSTRAINT stat_pkey DO UPDATE SET (count, ok, dropped, caught_up, implausible, left_out, lateness_sum,
        lateness_min, lateness_max, lateness_steps, duration_sum, duration_min, duration_max, duration_steps, caught_up_max)
        = ROW (excluded.count, excluded.ok, excluded.dropped, excluded.caught_up, excluded.implausible, excluded.left_out,
        excluded.lateness_sum, excluded.lateness_min, excluded.lateness_max, excluded.lateness_steps, excluded.duration_sum, excluded.duration_min,
        excluded.duration_max, excluded.duration_steps, excluded.caught_up_max);
    INSERT INTO awty_http.stat AS s
    -- An endpoint may have hours of two jobs, because awty_http.add_tenant() renames the job of a tenant.
    SELECT h.id, '24 hours', date_trunc('day', h.bucket), sum(h.count), sum(h.ok), sum(h.dropped), sum(h.caught_up), sum(h.implausible), sum(h.left_out),
           sum(h.lateness_sum), min(h.lateness_min), max(h.lateness_max), awty_http_internal.all_steps(h.lateness_steps),
           sum(h.duration_sum), min(h.duration_min), max(h.duration_max), awty_http_internal.all_steps(h.duration_steps), max(h.job), max(h.caught_up_max)
    FROM awty_http.stat AS h
    WHERE h.id = ANY (ids) AND h.width = '1 hour' AND h.bucket >= date_trunc('day', count_calls_of.since)
    GROUP BY h.id, date_trunc('day', h.bucket)
    ON CONFLICT ON CONSTRAINT stat_pkey DO UPDATE SET (count, ok, dropped, caught_up, implausible, left_out, lateness_sum,
        lateness_min, lateness_max, lateness_steps, duration_sum, duration_min, duration_max, duration_steps, caught_up_max)
        = ROW (excluded.count, excluded.ok, excluded.dropped, excluded.caught_up, excluded.implausible, excluded.left_out,
        excluded.lateness_sum, excluded.lateness_min, excluded.lateness_max, excluded.lateness_steps, excluded.duration_sum, excluded.duration_min,
        excluded.duration_max, excluded.duration_steps, excluded.caught_up_max);
    PERFORM awty_http_internal.forget_hours_of(ids, count_calls_of.until);
END
$$;
COMMENT ON FUNCTION awty_http_internal.count_calls_of(text[], timestamptz, timestamptz) IS 'Counts the calls of some endpoints, by hour and by day, and deletes hours that are too old';

CREATE FUNCTION awty_http_internal.count_calls(since timestamptz, until timestamptz, after text) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ids CONSTANT text[] := ARRAY(SELECT e.id FROM awty_http_internal.endpoint AS e WHERE e.id > count_calls.after ORDER BY e.id LIMIT 50);
    one text;
BEGIN
    BEGIN
        PERFORM awty_http_internal.count_calls_of(ids, count_calls.since, count_calls.until);
    EXCEPTION WHEN data_exception THEN
        FOREACH one IN ARRAY ids LOOP
            BEGIN
                PERFORM awty_http_internal.count_calls_of(ARRAY[one], count_calls.since, count_calls.until);
            EXCEPTION WHEN data_exception THEN
                RAISE WARNING USING MESSAGE = format('could not count the calls of schedule "%s": %s', one, SQLERRM);
            END;
        END LOOP;
    END;
    RETURN ids[cardinality(ids)];
END
$$;
COMMENT ON FUNCTION awty_http_internal.count_calls(timestamptz, timestamptz, text) IS 'Counts the calls of the next 50 endpoints in order, and returns the id of the last one; NULL: there are no more';

-- The sums of the job are written last, because their row marks the hour as counted.
CREATE FUNCTION awty_http_internal.count_job(job text, since timestamptz) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET jit = off AS $$
    INSERT INTO awty_http.stat AS s
    SELECT h.job, h.width, h.bucket, sum(h.count), sum(h.ok), sum(h.dropped), sum(h.caught_up), sum(h.implausible), sum(h.left_out),
           sum(h.lateness_sum), min(h.lateness_min), max(h.lateness_max), awty_http_internal.all_steps(h.lateness_steps),
           sum(h.duration_sum), min(h.duration_min), max(h.duration_max), awty_http_internal.all_steps(h.duration_steps), h.job, max(h.caught_up_max)
    FROM awty_http.stat AS h
    WHERE h.job = count_job.job AND h.id <> h.job AND ((h.width = '1 hour' AND h.bucket >= count_job.since) OR (h.width = '24 hours' AND h.bucket >= date_trunc('day', count_job.since)))
    GROUP BY h.job, h.width, h.bucket
    ON CONFLICT ON CONSTRAINT stat_pkey DO UPDATE SET (count, ok, dropped, caught_up, implausible, left_out, lateness_sum,
        lateness_min, lateness_max, lateness_steps, duration_sum, duration_min, duration_max, duration_steps, caught_up_max)
        = ROW (excluded.count, excluded.ok, excluded.dropped, excluded.caught_up, excluded.implausible, excluded.left_out,
        excluded.lateness_sum, excluded.lateness_min, excluded.lateness_max, excluded.lateness_steps, excluded.duration_sum, excluded.duration_min,
        excluded.duration_max, excluded.duration_steps, excluded.caught_up_max);
$$;
COMMENT ON FUNCTION awty_http_internal.count_job(text, timestamptz) IS 'Adds up the counts of the endpoints of a job, by hour and by day';

CREATE FUNCTION awty_http_internal.count_jobs(since timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    one text;
BEGIN
    FOR one IN SELECT t.job FROM awty_http.tenant AS t ORDER BY t.job LOOP
        BEGIN
            PERFORM awty_http_internal.count_job(one, count_jobs.since);
        EXCEPTION WHEN data_exception THEN
            RAISE WARNING USING MESSAGE = format('could not add up the calls of job "%s": %s', one, SQLERRM);
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION awty_http_internal.count_jobs(timestamptz) IS 'Adds up the counts of the endpoints of each job';

-- Counts only hours whose calls are all still in awty.attempt. After the time `work`, stops and returns the work that
-- is left.
CREATE FUNCTION awty_http_internal.roll_up(at timestamptz, work interval DEFAULT '100 years', rest jsonb DEFAULT NULL) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' AS $$
DECLARE
    pause CONSTANT timestamptz := clock_timestamp() + work;
    kept CONSTANT interval := nullif(current_setting('awty.attempt_retention')::interval, '0'); -- NULL: for ever
    since timestamptz := rest ->> 'since';
    until timestamptz := rest ->> 'until';
    after text := coalesce(rest ->> 'after', '');
BEGIN
    IF rest IS NULL THEN
        until := date_trunc('hour', roll_up.at);
        -- Counts the last counted hour again, because some of its calls may have been committed later. Ignores hours in
        -- the future, which a roll-up has written while the clock was ahead.
        since := greatest(coalesce(date_trunc('day', roll_up.at - kept), '-infinity'),
            (SELECT max(s.bucket) FROM awty_http.stat AS s WHERE s.width = '1 hour' AND s.id = s.job AND s.bucket < until));
    END IF;
    LOOP
        after := awty_http_internal.count_calls(since, until, after);
        EXIT WHEN after IS NULL;
        IF clock_timestamp() > pause THEN
            RETURN jsonb_build_object('since', since, 'until', until, 'after', after);
        END IF;
    END LOOP;
    PERFORM awty_http_internal.count_jobs(since);
    PERFORM awty_http_internal.forget(roll_up.at);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION awty_http_internal.roll_up(timestamptz, interval, jsonb) IS 'Counts the calls of the hours before a time, and deletes what is too old; returns the rest of the work when its time to work is over; NULL: no work is left';

-- Counts for a tenth of a slot, and schedules its own check again if hours are left.
CREATE FUNCTION awty_http_internal.roll_up(j awty.future_job) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    work CONSTANT interval := greatest('1 s', current_setting('awty.slot')::interval / 10);
    rest CONSTANT jsonb := awty_http_internal.roll_up(clock_timestamp(), work, j.args);
BEGIN
    IF rest IS NOT NULL THEN
        PERFORM awty.schedule(j.entity_name, j.entity_key, j.job, after => work * 9, args => rest);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.roll_up(awty.future_job) IS 'Counts the calls of the hours before now, a part in each run';

CREATE FUNCTION awty_http_internal.set_up() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
    PERFORM awty.register('awty_http.roll_up', 'awty_http_internal.roll_up', timeout => '1 hour', keep_history => 'problems',
        max_checks => 0);
    PERFORM awty.repeat('awty_http.roll_up', every => '1 hour');
END
$$;
COMMENT ON FUNCTION awty_http_internal.set_up() IS 'Registers the job of the roll-up';

-- Registers no job during a restore, because the dump already has the job's row. The scripts of pg_dump set xmloption,
-- so a session with this setting is restoring a dump. Each role may lock the view pg_settings, but not its function.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_show_all_settings() AS s
                   WHERE s.name = 'xmloption' AND s.source = 'session') THEN
        PERFORM awty_http_internal.set_up();
    END IF;
END
$$;
