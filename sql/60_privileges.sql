-- awty, part 8: who may read what. Nobody may write: every change goes through the functions.
--
-- USAGE on the schema is granted by the administrator: GRANT USAGE ON SCHEMA awty TO app.

REVOKE ALL ON awty.job, awty.future_job, awty.future_job_history, awty_internal.future_job_history_default,
    awty_internal.check_stat, awty_internal.in_flight, awty_internal.origin, awty.status FROM PUBLIC;
REVOKE ALL ON SEQUENCE awty.future_job_id_seq, awty_internal.identity FROM PUBLIC;
REVOKE ALL ON SCHEMA awty, awty_internal FROM PUBLIC;

-- ALTER DEFAULT PRIVILEGES may have given rights to other roles by now. TRIGGER on one of these tables would be a way to run
-- code as their owner.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('REVOKE ALL ON TABLE %s FROM %s', c.oid::pg_catalog.regclass, a.grantee::pg_catalog.regrole)
        FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.relnamespace OPERATOR(pg_catalog.=) ANY ('{awty,awty_internal}'::pg_catalog.regnamespace[])
          AND a.grantee OPERATOR(pg_catalog.<>) c.relowner
        UNION
        SELECT pg_catalog.format('REVOKE ALL ON SCHEMA %I FROM %s', n.nspname, a.grantee::pg_catalog.regrole)
        FROM pg_catalog.pg_namespace AS n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) AS a
        WHERE n.nspname OPERATOR(pg_catalog.=) ANY ('{awty,awty_internal}') AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

GRANT SELECT ON awty.job, awty.future_job, awty.future_job_history, awty.status TO PUBLIC;

ALTER TABLE awty.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.future_job ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.future_job_history ENABLE ROW LEVEL SECURITY;

-- No policy on these: pg_read_all_data and pg_write_all_data would otherwise pass by those above.
ALTER TABLE awty_internal.future_job_history_default ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.check_stat ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.in_flight ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.origin ENABLE ROW LEVEL SECURITY;

-- A role sees the jobs that it may become. From PostgreSQL 16 on, where a membership may come without SET, that is a
-- privilege of its own; which one to ask for is decided in the query and not here, because pg_upgrade carries policies
-- along.
CREATE POLICY own_jobs ON awty.job FOR SELECT TO PUBLIC USING (
    pg_catalog.pg_has_role(role, (SELECT CASE
        WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.>=) 160000
        THEN 'SET' ELSE 'MEMBER' END))
);

-- A role sees the checks of jobs that it may become (awty.job shows it no others), and those that it scheduled.
CREATE POLICY own_checks ON awty.future_job FOR SELECT TO PUBLIC USING (
    pg_catalog.pg_has_role(scheduled_by, (SELECT CASE
        WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.>=) 160000
        THEN 'SET' ELSE 'MEMBER' END))
    OR job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT j.name FROM awty.job AS j))
);

CREATE POLICY own_history ON awty.future_job_history FOR SELECT TO PUBLIC USING (
    pg_catalog.pg_has_role(scheduled_by, (SELECT CASE
        WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.>=) 160000
        THEN 'SET' ELSE 'MEMBER' END))
    OR pg_catalog.pg_has_role(role, (SELECT CASE
        WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.>=) 160000
        THEN 'SET' ELSE 'MEMBER' END))
);

GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awty TO PUBLIC;
-- A view asks for the right to what it calls.
GRANT EXECUTE ON FUNCTION awty_internal.runtime() TO PUBLIC;
REVOKE ALL ON FUNCTION awty_internal.job_changed() FROM PUBLIC;

CREATE TRIGGER job_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.job
    FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();
-- Also where session_replication_role is replica.
ALTER TABLE awty.job ENABLE ALWAYS TRIGGER job_changed;

-- EXPLAIN estimates by the statistics of a table, whatever rows it may show: there are none on names and keys.
ALTER TABLE awty.job ALTER name SET STATISTICS 0;
ALTER TABLE awty.future_job ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0,
    ALTER args SET STATISTICS 0;
ALTER TABLE awty.future_job_history ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0,
    ALTER entity_key SET STATISTICS 0, ALTER args SET STATISTICS 0, ALTER message SET STATISTICS 0;
