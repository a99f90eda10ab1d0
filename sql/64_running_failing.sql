-- JIT is off, because the planner overestimates the cost of row security and would compile for seconds.
CREATE FUNCTION awty_internal.failed(OUT id bigint, OUT job text, OUT entity_name text, OUT entity_key text, OUT attempt integer,
    OUT max_attempts integer, OUT next_check_at timestamptz, OUT sqlstate text, OUT message text, OUT context text, OUT failed_at timestamptz)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE SET jit = off
BEGIN ATOMIC
    SELECT f.id, f.job, f.entity_name, f.entity_key, f.attempt, j.max_attempts, f.next_check_at,
           s.sqlstate, s.message, s.context, s.failed_at
    FROM awty.future_job AS f
    JOIN awty_internal.check_stat AS s ON s.check_id = f.id
    LEFT JOIN awty.job AS j ON j.job = f.job
    WHERE f.attempt > 0 AND s.failed_at IS NOT NULL;
END;

COMMENT ON FUNCTION awty_internal.failed() IS 'The rows of awty.failing';

CREATE VIEW awty.failing AS
SELECT f.id, f.job COLLATE "C" AS job, f.entity_name COLLATE "C" AS entity_name, f.entity_key COLLATE "C" AS entity_key,
       f.attempt, f.max_attempts, f.next_check_at, f.sqlstate COLLATE "C" AS sqlstate, f.message, f.context, f.failed_at
FROM awty_internal.failed() AS f;

COMMENT ON VIEW awty.failing IS 'Pending checks whose last run failed, with the error';
COMMENT ON COLUMN awty.failing.id IS 'Number of the check';
COMMENT ON COLUMN awty.failing.job IS 'Name of the job';
COMMENT ON COLUMN awty.failing.entity_name IS 'Kind of thing that is checked';
COMMENT ON COLUMN awty.failing.entity_key IS 'Key of the thing';
COMMENT ON COLUMN awty.failing.attempt IS 'Failed runs in a row';
COMMENT ON COLUMN awty.failing.max_attempts IS 'Failed runs in a row that end the check; NULL if the caller may not read the job';
COMMENT ON COLUMN awty.failing.next_check_at IS 'Slot of the next attempt';
COMMENT ON COLUMN awty.failing.sqlstate IS 'SQLSTATE of the error';
COMMENT ON COLUMN awty.failing.message IS 'Message of the error, cut at 4096 bytes';
COMMENT ON COLUMN awty.failing.context IS 'Place where the error was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON COLUMN awty.failing.failed_at IS 'End of the failed run';

-- Shows a run with its job and entity to callers that may read its check. Members of the run's role and monitoring
-- roles also see other runs, without job and entity.
CREATE VIEW awty.running WITH (security_invoker = true, security_barrier = true) AS
SELECT w.pid, pg_get_userbyid(w.role) AS role, f.job, f.entity_name, f.entity_key, f.id, f.next_check_at AS slot, w.started_at,
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
SELECT NULL, pg_get_userbyid(j.role), l.job, l.entity_name, l.entity_key, l.id, l.next_check_at, l.leased_at,
       clock_timestamp() - l.leased_at, l.deadline - l.leased_at, 1
FROM awty.lease AS l LEFT JOIN awty.job AS j ON j.job = l.job
WHERE l.deadline > clock_timestamp();

COMMENT ON VIEW awty.running IS 'Runs in progress in this database';
COMMENT ON COLUMN awty.running.pid IS 'Process that runs the check; NULL: an external worker, see awty.lease';
COMMENT ON COLUMN awty.running.role IS 'Role that runs the check';
COMMENT ON COLUMN awty.running.job IS 'Name of the job; NULL if the caller may not read the check';
COMMENT ON COLUMN awty.running.entity_name IS 'Kind of thing that is checked; for a set, of its first check that the caller may read';
COMMENT ON COLUMN awty.running.entity_key IS 'Key of the thing';
COMMENT ON COLUMN awty.running.id IS 'Number of that check';
COMMENT ON COLUMN awty.running.slot IS 'Slot at which the check was due';
COMMENT ON COLUMN awty.running.started_at IS 'Start of the run';
COMMENT ON COLUMN awty.running.runs_for IS 'Time since the start of the run';
COMMENT ON COLUMN awty.running.timeout IS 'Time after which the run is cancelled';
COMMENT ON COLUMN awty.running.set_size IS 'Number of checks in the run';
