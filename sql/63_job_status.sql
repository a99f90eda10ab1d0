-- Workers count runs in shared memory, and the maintainer stores the counts here once a minute.
CREATE TABLE awty_internal.job_stat (
    job             text COLLATE "C" NOT NULL,
    runs            bigint NOT NULL,
    done            bigint NOT NULL,
    failed          bigint NOT NULL,
    timed_out       bigint NOT NULL,
    retries         bigint NOT NULL,
    other           bigint NOT NULL,
    met             bigint NOT NULL,
    late            bigint NOT NULL,
    run_time        interval NOT NULL,
    max_run_time    interval NOT NULL,
    last_run_at     timestamptz,
    last_end_at     timestamptz,
    last_outcome    text COLLATE "C",
    last_success_at timestamptz,
    last_failure_at timestamptz,
    late_10ms       bigint NOT NULL,
    late_100ms      bigint NOT NULL,
    late_1s         bigint NOT NULL,
    late_10s        bigint NOT NULL,
    late_1min       bigint NOT NULL,
    later           bigint NOT NULL,
    stats_since     timestamptz NOT NULL,
    CONSTRAINT job_stat_pkey PRIMARY KEY (job)
) WITH (fillfactor = 50);

COMMENT ON TABLE awty_internal.job_stat IS 'Counts of the runs of each job, as last stored; see awty.job_status';
COMMENT ON COLUMN awty_internal.job_stat.job IS 'Name of the job; empty for the other jobs';
COMMENT ON COLUMN awty_internal.job_stat.runs IS 'Runs';
COMMENT ON COLUMN awty_internal.job_stat.done IS 'Checks that ended as done';
COMMENT ON COLUMN awty_internal.job_stat.failed IS 'Checks that ended as failed';
COMMENT ON COLUMN awty_internal.job_stat.timed_out IS 'Checks that ended as timed_out';
COMMENT ON COLUMN awty_internal.job_stat.retries IS 'Failed runs that are retried';
COMMENT ON COLUMN awty_internal.job_stat.other IS 'Checks that a run ended in another way';
COMMENT ON COLUMN awty_internal.job_stat.met IS 'Rows that met a rule in time';
COMMENT ON COLUMN awty_internal.job_stat.late IS 'Rows whose alert reached level 1';
COMMENT ON COLUMN awty_internal.job_stat.run_time IS 'Total time of all runs';
COMMENT ON COLUMN awty_internal.job_stat.max_run_time IS 'Time of the longest run';
COMMENT ON COLUMN awty_internal.job_stat.last_run_at IS 'Start of the last run';
COMMENT ON COLUMN awty_internal.job_stat.last_end_at IS 'Time at which a run last ended a check';
COMMENT ON COLUMN awty_internal.job_stat.last_outcome IS 'Outcome of that check';
COMMENT ON COLUMN awty_internal.job_stat.last_success_at IS 'End of the last run that did not fail';
COMMENT ON COLUMN awty_internal.job_stat.last_failure_at IS 'End of the last run that failed or ended its check with a problem';
COMMENT ON COLUMN awty_internal.job_stat.late_10ms IS 'Runs that started up to 10 ms after their slot';
COMMENT ON COLUMN awty_internal.job_stat.late_100ms IS 'Runs that started more than 10 ms and up to 100 ms late';
COMMENT ON COLUMN awty_internal.job_stat.late_1s IS 'Runs that started more than 100 ms and up to 1 s late';
COMMENT ON COLUMN awty_internal.job_stat.late_10s IS 'Runs that started more than 1 s and up to 10 s late';
COMMENT ON COLUMN awty_internal.job_stat.late_1min IS 'Runs that started more than 10 s and up to 1 min late';
COMMENT ON COLUMN awty_internal.job_stat.later IS 'Runs that started more than 1 min late';
COMMENT ON COLUMN awty_internal.job_stat.stats_since IS 'Time at which counting began';

CREATE FUNCTION awty_internal.job_pending(
    name text, OUT job text, OUT pending bigint, OUT overdue bigint, OUT oldest_overdue timestamptz, OUT failing bigint, OUT held bigint,
    OUT next_slot timestamptz
) RETURNS SETOF record ROWS 1 LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_pending_wrapper';

COMMENT ON FUNCTION awty_internal.job_pending(text) IS 'Counts of pending checks of a job that the caller may read';

CREATE FUNCTION awty_internal.job_counter(
    OUT job text, OUT runs bigint, OUT done bigint, OUT failed bigint, OUT timed_out bigint, OUT retries bigint, OUT other bigint,
    OUT met bigint, OUT late bigint,
    OUT run_time interval, OUT max_run_time interval, OUT last_run_at timestamptz, OUT last_outcome text,
    OUT last_success_at timestamptz, OUT last_failure_at timestamptz, OUT late_10ms bigint, OUT late_100ms bigint, OUT late_1s bigint,
    OUT late_10s bigint, OUT late_1min bigint, OUT later bigint, OUT stats_since timestamptz
) RETURNS SETOF record ROWS 100 LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_counter_wrapper';

COMMENT ON FUNCTION awty_internal.job_counter() IS 'Counts of runs, for each job that the caller may read; the row without a name is for all other jobs';

-- A monitoring role sees how many checks a job has, but not the checks.
CREATE VIEW awty.job_status WITH (security_invoker = true, security_barrier = true) AS
SELECT coalesce(j.job, 'other jobs') AS job, pg_get_userbyid(j.role) AS role, j.paused, CASE WHEN j.paused THEN j.paused_note END AS paused_note,
       CASE WHEN j.paused THEN j.paused_until END AS paused_until,
       CASE WHEN j.job IS NOT NULL THEN coalesce(p.pending, 0) END AS pending, CASE WHEN j.job IS NOT NULL THEN coalesce(p.overdue, 0) END AS overdue,
       p.oldest_overdue, CASE WHEN j.job IS NOT NULL THEN coalesce(p.failing, 0) END AS failing,
       CASE WHEN j.job IS NOT NULL THEN coalesce(p.held, 0) END AS held, p.next_slot,
       coalesce(c.runs, 0) AS runs, coalesce(c.done, 0) AS done, coalesce(c.failed, 0) AS failed, coalesce(c.timed_out, 0) AS timed_out,
       coalesce(c.retries, 0) AS retries, coalesce(c.other, 0) AS other,
       coalesce(c.met, 0) AS met, coalesce(c.late, 0) AS late, coalesce(c.run_time, '0') AS run_time, c.max_run_time,
       c.last_run_at, c.last_outcome, c.last_success_at, c.last_failure_at, CASE WHEN j.job IS NOT NULL THEN awty_internal.last_claim(j.job) END AS last_claim_at,
       coalesce(c.late_10ms, 0) AS late_10ms, coalesce(c.late_100ms, 0) AS late_100ms, coalesce(c.late_1s, 0) AS late_1s,
       coalesce(c.late_10s, 0) AS late_10s, coalesce(c.late_1min, 0) AS late_1min, coalesce(c.later, 0) AS later, c.stats_since
FROM (SELECT k.job, k.role, k.paused AND awty_internal.lasts(k.paused_until) AS paused, k.paused_note, k.paused_until FROM awty.job AS k) AS j
FULL JOIN awty_internal.job_counter() AS c ON c.job = j.job
-- DISTINCT ON lets the planner omit this slow join if a query uses none of its columns. LATERAL lets a query of some
-- jobs count only the checks of its jobs.
LEFT JOIN LATERAL (SELECT DISTINCT ON (q.job) q.* FROM awty_internal.job_pending(j.job) AS q ORDER BY q.job) AS p ON p.job = j.job
-- Omits the counts of jobs that the caller may not read, but keeps the row `other jobs`.
WHERE j.job IS NOT NULL OR c.job IS NULL;

COMMENT ON VIEW awty.job_status IS 'State and counts of each job, one row each; runs are counted in memory and stored once a minute, so that a crash loses up to a minute of them';
COMMENT ON COLUMN awty.job_status.job IS 'Name of the job. The server counts 2048 jobs by name; a further job replaces the one that has not run for longest, whose counts are added to the row "other jobs"';
COMMENT ON COLUMN awty.job_status.role IS 'Role of the job';
COMMENT ON COLUMN awty.job_status.paused IS 'True if the job is paused: none of its checks runs until awty.resume() or until paused_until';
COMMENT ON COLUMN awty.job_status.paused_note IS 'Note that was given to awty.pause()';
COMMENT ON COLUMN awty.job_status.paused_until IS 'Time at which the pause ends; NULL: awty.resume() ends it';
COMMENT ON COLUMN awty.job_status.pending IS 'Pending checks, including held ones; counted up to 100000, estimated beyond';
COMMENT ON COLUMN awty.job_status.overdue IS 'Checks whose slot has passed, up to 100001; 0 while the job is paused';
COMMENT ON COLUMN awty.job_status.oldest_overdue IS 'Earliest slot of the overdue checks';
COMMENT ON COLUMN awty.job_status.failing IS 'Checks whose last run failed, up to 100001; see awty.failing';
COMMENT ON COLUMN awty.job_status.held IS 'Checks that wait for awty.release() or for the end of their hold, up to 100001';
COMMENT ON COLUMN awty.job_status.next_slot IS 'Next slot at which a check is due';
COMMENT ON COLUMN awty.job_status.runs IS 'Runs; a run of a set counts once for each of its checks';
COMMENT ON COLUMN awty.job_status.done IS 'Checks that ended as done';
COMMENT ON COLUMN awty.job_status.failed IS 'Checks that ended as failed';
COMMENT ON COLUMN awty.job_status.timed_out IS 'Checks that ended as timed_out';
COMMENT ON COLUMN awty.job_status.retries IS 'Failed runs that are retried';
COMMENT ON COLUMN awty.job_status.other IS 'Checks that a run ended in another way: exhausted, past or beyond_horizon';
COMMENT ON COLUMN awty.job_status.met IS 'Rows that met the rule in time: their alert did not reach level 1';
COMMENT ON COLUMN awty.job_status.late IS 'Rows that did not meet the rule in time: their alert reached level 1';
COMMENT ON COLUMN awty.job_status.run_time IS 'Total time of all runs; a run of a set counts once';
COMMENT ON COLUMN awty.job_status.max_run_time IS 'Time of the longest run';
COMMENT ON COLUMN awty.job_status.last_run_at IS 'Start of the last run';
COMMENT ON COLUMN awty.job_status.last_outcome IS 'Outcome of the check that a run last ended';
COMMENT ON COLUMN awty.job_status.last_success_at IS 'End of the last run that did not fail';
COMMENT ON COLUMN awty.job_status.last_failure_at IS 'End of the last run that failed or ended its check with a problem';
COMMENT ON COLUMN awty.job_status.last_claim_at IS 'Time at which an external worker last called awty.claim() for this job; NULL: not since the server started, or the job has a function';
COMMENT ON COLUMN awty.job_status.late_10ms IS 'Runs that started up to 10 ms after their slot';
COMMENT ON COLUMN awty.job_status.late_100ms IS 'Runs that started more than 10 ms and up to 100 ms late';
COMMENT ON COLUMN awty.job_status.late_1s IS 'Runs that started more than 100 ms and up to 1 s late';
COMMENT ON COLUMN awty.job_status.late_10s IS 'Runs that started more than 1 s and up to 10 s late';
COMMENT ON COLUMN awty.job_status.late_1min IS 'Runs that started more than 10 s and up to 1 min late';
COMMENT ON COLUMN awty.job_status.later IS 'Runs that started more than 1 min late';
COMMENT ON COLUMN awty.job_status.stats_since IS 'Time at which counting began; NULL: no run has been counted';
