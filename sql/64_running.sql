-- Checks that fail and checks that run.

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
