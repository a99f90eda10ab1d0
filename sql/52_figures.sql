-- awty, part 11: what fails, what runs, and how much of it.

-- Pending checks whose last run failed. Who may see a check may see its error.
CREATE VIEW awty.failing WITH (security_invoker = true, security_barrier = true) AS
SELECT f.id, f.job, f.entity_name, f.entity_key, f.attempt, j.max_attempts, f.next_check_at,
       s.sqlstate, s.message, s.context, s.failed_at
FROM awty_internal.check_stat AS s
JOIN awty.future_job AS f ON f.id = s.check_id
LEFT JOIN awty.job AS j ON j.job = f.job
WHERE s.failed_at IS NOT NULL;

COMMENT ON VIEW awty.failing IS 'Pending checks whose last run failed, with that error';
COMMENT ON COLUMN awty.failing.id IS 'Number of the check';
COMMENT ON COLUMN awty.failing.job IS 'Name of its job';
COMMENT ON COLUMN awty.failing.entity_name IS 'What is asked about';
COMMENT ON COLUMN awty.failing.entity_key IS 'Which one';
COMMENT ON COLUMN awty.failing.attempt IS 'Failed runs in a row';
COMMENT ON COLUMN awty.failing.max_attempts IS 'So many end the check; NULL for who may not see the job';
COMMENT ON COLUMN awty.failing.next_check_at IS 'The slot of the next try';
COMMENT ON COLUMN awty.failing.sqlstate IS 'SQLSTATE of the error';
COMMENT ON COLUMN awty.failing.message IS 'Message of the error, cut at 4096 bytes';
COMMENT ON COLUMN awty.failing.context IS 'Where it was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON COLUMN awty.failing.failed_at IS 'When that run was over';

-- Runs under way. A row is for who may see the check, for members of the role that it runs as, and for monitoring roles; the check is
-- named to who may see it.
CREATE VIEW awty.running WITH (security_invoker = true, security_barrier = true) AS
SELECT w.pid, w.role::regrole AS role, f.job, f.entity_name, f.entity_key, f.id, f.next_check_at AS slot, w.started_at,
       clock_timestamp() - w.started_at AS runs_for, w.timeout,
       cardinality(w.check_ids) AS set_size
FROM awty_internal.worker() AS w
LEFT JOIN LATERAL (
    SELECT c.job, c.entity_name, c.entity_key, c.id, c.next_check_at FROM awty.future_job AS c
    WHERE c.id = ANY (w.check_ids) ORDER BY c.id LIMIT 1
) AS f ON true
WHERE w.started_at IS NOT NULL
  AND (f.id IS NOT NULL OR awty_internal.can_become(w.role::regrole)
       OR pg_has_role('pg_monitor', 'USAGE'))
UNION ALL
SELECT NULL, j.role, l.job, l.entity_name, l.entity_key, l.id, l.next_check_at, l.leased_at,
       clock_timestamp() - l.leased_at, l.deadline - l.leased_at, 1
FROM awty.lease AS l LEFT JOIN awty.job AS j ON j.job = l.job
WHERE l.deadline > clock_timestamp();

COMMENT ON VIEW awty.running IS 'Runs under way in this database';
COMMENT ON COLUMN awty.running.pid IS 'Process that runs it; NULL: a worker outside, see awty.lease';
COMMENT ON COLUMN awty.running.role IS 'Role that it runs as';
COMMENT ON COLUMN awty.running.job IS 'Name of the job; NULL for who may not see the check';
COMMENT ON COLUMN awty.running.entity_name IS 'What is asked about; of a set, its first check that the caller may see';
COMMENT ON COLUMN awty.running.entity_key IS 'Which one';
COMMENT ON COLUMN awty.running.id IS 'Number of that check';
COMMENT ON COLUMN awty.running.slot IS 'The slot at which it was due';
COMMENT ON COLUMN awty.running.started_at IS 'When the run began';
COMMENT ON COLUMN awty.running.runs_for IS 'How long it has been running';
COMMENT ON COLUMN awty.running.timeout IS 'After so long it is cancelled';
COMMENT ON COLUMN awty.running.set_size IS 'How many checks the run is about';

CREATE FUNCTION awty_internal.job_pending(
    OUT job text, OUT pending bigint, OUT overdue bigint, OUT oldest_overdue timestamptz, OUT failing bigint, OUT held bigint,
    OUT next_slot timestamptz
) RETURNS SETOF record ROWS 100 LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_pending_wrapper';

COMMENT ON FUNCTION awty_internal.job_pending() IS 'What is pending of each job that the caller may read';

CREATE FUNCTION awty_internal.job_counter(
    OUT job text, OUT runs bigint, OUT done bigint, OUT failed bigint, OUT timed_out bigint, OUT retries bigint, OUT other bigint,
    OUT run_time interval, OUT max_run_time interval, OUT last_run_at timestamptz, OUT last_outcome text,
    OUT last_success_at timestamptz, OUT last_failure_at timestamptz, OUT late_10ms bigint, OUT late_100ms bigint, OUT late_1s bigint,
    OUT late_10s bigint, OUT late_1min bigint, OUT later bigint, OUT stats_since timestamptz
) RETURNS SETOF record ROWS 100 LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_counter_wrapper';

COMMENT ON FUNCTION awty_internal.job_counter() IS 'What the runs of each job that the caller may read have come to; without a name, of the other jobs';

-- One row per job that the caller may read. The functions count for monitoring roles, too, which see no check.
CREATE VIEW awty.job_status WITH (security_invoker = true, security_barrier = true) AS
SELECT j.job, j.role, j.paused, j.paused_note,
       coalesce(p.pending, 0) AS pending, coalesce(p.overdue, 0) AS overdue, p.oldest_overdue, coalesce(p.failing, 0) AS failing,
       coalesce(p.held, 0) AS held, p.next_slot,
       coalesce(c.runs, 0) AS runs, coalesce(c.done, 0) AS done, coalesce(c.failed, 0) AS failed, coalesce(c.timed_out, 0) AS timed_out,
       coalesce(c.retries, 0) AS retries, coalesce(c.other, 0) AS other, coalesce(c.run_time, '0') AS run_time, c.max_run_time,
       c.last_run_at, c.last_outcome, c.last_success_at, c.last_failure_at, awty_internal.last_claim(j.job) AS last_claim_at,
       coalesce(c.late_10ms, 0) AS late_10ms, coalesce(c.late_100ms, 0) AS late_100ms, coalesce(c.late_1s, 0) AS late_1s,
       coalesce(c.late_10s, 0) AS late_10s, coalesce(c.late_1min, 0) AS late_1min, coalesce(c.later, 0) AS later, c.stats_since
FROM awty.job AS j
LEFT JOIN awty_internal.job_pending() AS p ON p.job = j.job
LEFT JOIN awty_internal.job_counter() AS c ON c.job = j.job
UNION ALL
SELECT 'other jobs', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       c.runs, c.done, c.failed, c.timed_out, c.retries, c.other, c.run_time, c.max_run_time,
       c.last_run_at, c.last_outcome, c.last_success_at, c.last_failure_at, NULL,
       c.late_10ms, c.late_100ms, c.late_1s, c.late_10s, c.late_1min, c.later, c.stats_since
FROM awty_internal.job_counter() AS c WHERE c.job IS NULL;

COMMENT ON VIEW awty.job_status IS 'One row per job: its state, then what its runs have come to; counted in memory and stored once a minute, so the end of the server loses up to a minute of it';
COMMENT ON COLUMN awty.job_status.job IS 'Name of the job; "other jobs" for those that made room for others: of 2048 jobs of the server each has a row of its own, and the one that has not run for longest gives way';
COMMENT ON COLUMN awty.job_status.role IS 'Role that it runs as';
COMMENT ON COLUMN awty.job_status.paused IS 'No runs until awty.resume()';
COMMENT ON COLUMN awty.job_status.paused_note IS 'Why, in the words of awty.pause()';
COMMENT ON COLUMN awty.job_status.pending IS 'Checks that wait, held ones too; counted up to 100000, beyond that estimated';
COMMENT ON COLUMN awty.job_status.overdue IS 'Checks whose slot has come, up to 100001; none while the job is paused';
COMMENT ON COLUMN awty.job_status.oldest_overdue IS 'The first slot of those';
COMMENT ON COLUMN awty.job_status.failing IS 'Checks whose last run failed, as far as they are among the first 100000 of all jobs; see awty.failing';
COMMENT ON COLUMN awty.job_status.held IS 'Checks that await awty.release(), as far as they are among the first 100000 of all jobs';
COMMENT ON COLUMN awty.job_status.next_slot IS 'The next slot at which a check is due';
COMMENT ON COLUMN awty.job_status.runs IS 'Runs of checks; each check of a set counts';
COMMENT ON COLUMN awty.job_status.done IS 'Checks that ended as done';
COMMENT ON COLUMN awty.job_status.failed IS 'Checks that ended as failed';
COMMENT ON COLUMN awty.job_status.timed_out IS 'Checks that ended as timed_out';
COMMENT ON COLUMN awty.job_status.retries IS 'Failed runs that are tried again';
COMMENT ON COLUMN awty.job_status.other IS 'Checks that a run ended otherwise: exhausted, past or beyond_horizon';
COMMENT ON COLUMN awty.job_status.run_time IS 'Time of all runs together; a set counts once';
COMMENT ON COLUMN awty.job_status.max_run_time IS 'Time of the longest run';
COMMENT ON COLUMN awty.job_status.last_run_at IS 'Start of the last run';
COMMENT ON COLUMN awty.job_status.last_outcome IS 'Outcome of the check that was last ended by a run';
COMMENT ON COLUMN awty.job_status.last_success_at IS 'End of the last run that did not fail';
COMMENT ON COLUMN awty.job_status.last_failure_at IS 'End of the last run that failed or ended its check with a problem';
COMMENT ON COLUMN awty.job_status.last_claim_at IS 'When a worker outside last asked for checks of it; NULL: not since the server started, or it has a function';
COMMENT ON COLUMN awty.job_status.late_10ms IS 'Runs that started up to 10 ms after their slot';
COMMENT ON COLUMN awty.job_status.late_100ms IS 'Later, up to 100 ms';
COMMENT ON COLUMN awty.job_status.late_1s IS 'Later, up to 1 s';
COMMENT ON COLUMN awty.job_status.late_10s IS 'Later, up to 10 s';
COMMENT ON COLUMN awty.job_status.late_1min IS 'Later, up to 1 min';
COMMENT ON COLUMN awty.job_status.later IS 'Later than that';
COMMENT ON COLUMN awty.job_status.stats_since IS 'Since when runs are counted; NULL: there was none';

CREATE FUNCTION awty_internal.as_ahead(ahead interval, step interval) RETURNS interval
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'as_ahead_wrapper';

COMMENT ON FUNCTION awty_internal.as_ahead(interval, interval) IS 'How far ahead awty.forecast() looks, if its arguments make sense';

-- Goes from one job to the next by index, and reads of each what is due by then.
CREATE FUNCTION awty.forecast(ahead interval DEFAULT '1 day', step interval DEFAULT NULL)
RETURNS TABLE (slot timestamptz, job text, checks bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off
BEGIN ATOMIC
    WITH RECURSIVE span AS MATERIALIZED (
        SELECT clock_timestamp() + awty_internal.as_ahead(forecast.ahead, forecast.step) AS until
    ), n (job) AS (
        (SELECT f.job FROM awty.future_job AS f WHERE NOT f.held ORDER BY f.job LIMIT 1)
        UNION ALL
        SELECT (SELECT f.job FROM awty.future_job AS f
                WHERE NOT f.held AND f.job > n.job ORDER BY f.job LIMIT 1)
        FROM n WHERE n.job IS NOT NULL
    ), counted AS (
        SELECT due.slot, n.job, count(*) AS checks
        FROM span
        CROSS JOIN n
        LEFT JOIN awty.job AS j ON j.job = n.job
        CROSS JOIN LATERAL (
            SELECT CASE WHEN forecast.step IS NULL THEN f.next_check_at
                ELSE date_bin(forecast.step, f.next_check_at, '2000-01-01 00:00:00+00'::timestamptz) END AS slot
            FROM awty.future_job AS f
            WHERE f.job = n.job AND NOT f.held AND f.next_check_at <= span.until
        ) AS due
        WHERE j.paused IS NOT TRUE
        GROUP BY due.slot, n.job
        UNION ALL
        -- What repeats, after the occurrences that are pending. Each plan is expanded once, however many entities follow it.
        SELECT due.slot, g.job, g.checks
        FROM span
        CROSS JOIN (
            SELECT r.job, r.every, r.cron, r.zone, r.starts, r.ends, max(f.next_check_at) AS after, count(*) AS checks
            FROM awty.repetition AS r
            JOIN awty.future_job AS f ON f.entity_name = r.entity_name
                AND f.entity_key = r.entity_key AND f.job = r.job
            LEFT JOIN awty.job AS j ON j.job = r.job
            WHERE j.paused IS NOT TRUE AND NOT f.held
            GROUP BY r.job, r.every, r.cron, r.zone, r.starts, r.ends
        ) AS g
        CROSS JOIN LATERAL (
            SELECT CASE WHEN forecast.step IS NULL THEN awty.next_slot(o.at, g.job)
                ELSE date_bin(forecast.step, awty.next_slot(o.at, g.job), '2000-01-01 00:00:00+00'::timestamptz) END AS slot
            FROM awty_internal.coming(g.every, g.cron, g.zone, g.after, 1000, g.starts) AS o (at)
            WHERE o.at <= span.until AND (g.ends IS NULL OR o.at <= g.ends)
        ) AS due
        UNION ALL
        -- The arguments are looked at also where nothing is pending.
        SELECT span.until, NULL, 0 FROM span WHERE span.until IS NULL
    )
    SELECT c.slot, c.job, sum(c.checks)::int8 FROM counted AS c GROUP BY c.slot, c.job ORDER BY c.slot, c.job;
END;

COMMENT ON FUNCTION awty.forecast(interval, interval) IS 'How many checks are pending by slot, or by step, and job, of those that the caller may see and that are neither held nor paused; up to 1000 further occurrences of each repetition; more may come, and some may be cancelled';
