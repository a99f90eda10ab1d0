-- awty, part 9: what fails, what runs, and how much of it.

-- Pending checks whose last run failed. Who may see a check may see its error.
CREATE VIEW awty.failing WITH (security_invoker = true, security_barrier = true) AS
SELECT f.id, f.job, f.entity_name, f.entity_key, f.attempt, j.max_attempts, f.next_check_at,
       s.sqlstate, s.message, s.context, s.failed_at
FROM awty_internal.check_stat AS s
JOIN awty.future_job AS f ON f.id OPERATOR(pg_catalog.=) s.check_id
LEFT JOIN awty.job AS j ON j.name OPERATOR(pg_catalog.=) f.job
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

-- What ALTER DEFAULT PRIVILEGES has given to everybody by now; the next file sees to other roles.
REVOKE ALL ON awty.failing FROM PUBLIC;
