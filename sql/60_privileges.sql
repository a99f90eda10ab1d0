-- awty, part 6: who may read what. Nobody may write: every change goes through the functions.
--
-- USAGE on the schema is granted by the administrator: GRANT USAGE ON SCHEMA awty TO app.

REVOKE ALL ON awty.job, awty.future_job, awty.future_job_history, awty.future_job_history_default,
    awty.tally, awty.intent, awty.origin, awty.status FROM PUBLIC;
REVOKE ALL ON SEQUENCE awty.future_job_id_seq, awty.identity FROM PUBLIC;

GRANT SELECT ON awty.job, awty.future_job, awty.future_job_history, awty.status TO PUBLIC;

ALTER TABLE awty.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.future_job ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.future_job_history ENABLE ROW LEVEL SECURITY;

-- A role sees the jobs that it may become.
CREATE POLICY own_jobs ON awty.job FOR SELECT TO PUBLIC USING (pg_catalog.pg_has_role(role, 'MEMBER'));

-- A role sees the checks of jobs that it may become, and those that it scheduled.
CREATE POLICY own_checks ON awty.future_job FOR SELECT TO PUBLIC USING (
    pg_catalog.pg_has_role(scheduled_by, 'MEMBER')
    OR job OPERATOR(pg_catalog.=) ANY (ARRAY(
        SELECT j.name FROM awty.job AS j WHERE pg_catalog.pg_has_role(j.role, 'MEMBER')))
);

CREATE POLICY own_history ON awty.future_job_history FOR SELECT TO PUBLIC USING (
    pg_catalog.pg_has_role(scheduled_by, 'MEMBER') OR pg_catalog.pg_has_role(role, 'MEMBER')
);

REVOKE ALL ON FUNCTION awty.job_changed() FROM PUBLIC;

CREATE TRIGGER job_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.job
    FOR EACH STATEMENT EXECUTE FUNCTION awty.job_changed();
