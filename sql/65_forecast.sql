CREATE FUNCTION awty_internal.as_ahead(ahead interval, step interval) RETURNS interval
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'as_ahead_wrapper';

COMMENT ON FUNCTION awty_internal.as_ahead(interval, interval) IS 'Returns how far ahead awty.forecast() looks, or raises an error if the arguments make no sense';

CREATE FUNCTION awty_internal.planned(
    every interval, cron text, zone text, after timestamptz, until timestamptz, starts timestamptz, ends timestamptz, step interval, job text
) RETURNS TABLE (slot timestamptz, checks bigint)
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'planned_wrapper';

COMMENT ON FUNCTION awty_internal.planned(interval, text, text, timestamptz, timestamptz, timestamptz, timestamptz, interval, text)
    IS 'Number of occurrences of a stored plan by slot, or by step; none if PostgreSQL does not know its time zone';

CREATE FUNCTION awty.forecast(ahead interval DEFAULT '1 day', step interval DEFAULT NULL)
RETURNS TABLE (slot timestamptz, job text, checks bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off
BEGIN ATOMIC
    WITH span AS MATERIALIZED (
        SELECT clock_timestamp() + awty_internal.as_ahead(forecast.ahead, forecast.step) AS until
    ), n (job) AS (
        SELECT j.job FROM awty.job AS j
    ), counted AS (
        SELECT due.slot, n.job, count(*) AS checks
        FROM span
        CROSS JOIN n
        LEFT JOIN awty.job AS j ON j.job = n.job
        CROSS JOIN LATERAL (
            SELECT CASE WHEN forecast.step IS NULL THEN f.next_check_at
                ELSE date_bin(forecast.step, f.next_check_at, '2000-01-01 00:00:00+00'::timestamptz) END AS slot
            FROM awty.future_job AS f
            -- OFFSET 0 keeps the planner from flattening the subquery, so that the planner reads the checks by index.
            WHERE f.job = n.job AND NOT f.held AND f.next_check_at <= span.until OFFSET 0
        ) AS due
        WHERE j.paused IS NOT TRUE
        GROUP BY due.slot, n.job
        UNION ALL
        SELECT due.slot, g.job, g.checks * due.checks
        FROM span
        CROSS JOIN n
        LEFT JOIN awty.job AS j ON j.job = n.job
        CROSS JOIN LATERAL (
            SELECT n.job, r.every, r.cron, r.zone, r.starts, r.ends, r.calendar, max(f.next_check_at) AS after, count(*) AS checks
            FROM (SELECT f.entity_name, f.entity_key, f.next_check_at FROM awty.future_job AS f
                  WHERE f.job = n.job AND NOT f.held AND f.next_check_at <= span.until OFFSET 0) AS f
            CROSS JOIN LATERAL (
                SELECT r.every, r.cron, r.zone, r.starts, r.ends, r.calendar FROM awty_internal.repetition AS r
                WHERE r.entity_name = f.entity_name AND r.entity_key = f.entity_key AND r.job = n.job OFFSET 0
            ) AS r
            GROUP BY r.every, r.cron, r.zone, r.starts, r.ends, r.calendar
        ) AS g
        CROSS JOIN LATERAL (
            SELECT p.slot, p.checks
            FROM awty_internal.planned(g.every, g.cron, g.zone, g.after, span.until, g.starts, g.ends, forecast.step, g.job) AS p
            WHERE g.calendar IS NULL
            UNION ALL
            -- awty.next_slot() would raise an error for a job that the caller sees only as a reader of all data.
            SELECT CASE WHEN forecast.step IS NULL THEN s.slot ELSE date_bin(forecast.step, s.slot, '2000-01-01 00:00:00+00'::timestamptz) END, 1
            FROM awty_internal.coming(g.every, g.cron, g.zone, g.after, 10000, g.starts, g.calendar, least(span.until, g.ends)) AS o (at)
            CROSS JOIN LATERAL (
                SELECT coalesce(date_bin(w.slot, o.at + w.slot - interval '1 us', '2000-01-01 00:00:00+00'::timestamptz), o.at) AS slot
                FROM (SELECT make_interval(secs => extract(epoch FROM greatest(j.slot, current_setting('awty.slot', true)::interval))::float8) AS slot) AS w
            ) AS s
            WHERE g.calendar IS NOT NULL
        ) AS due
        WHERE j.paused IS NOT TRUE
        UNION ALL
        -- Evaluates the arguments even if no check is pending, so that invalid arguments always raise an error.
        SELECT span.until, NULL, 0 FROM span WHERE span.until IS NULL
    )
    SELECT c.slot, c.job, sum(c.checks)::int8 FROM counted AS c GROUP BY c.slot, c.job ORDER BY c.slot, c.job;
END;

COMMENT ON FUNCTION awty.forecast(interval, interval) IS 'Counts the checks that will be due, by job and by slot or step: pending checks of jobs that the caller may read, neither held nor paused, and the further occurrences of repetitions; up to 100000 rows of each plan';
