-- No role may write to tables, because all changes go through functions.
--
-- The administrator grants USAGE on the schema: GRANT USAGE ON SCHEMA awty TO app.

REVOKE ALL ON awty.job, awty.future_job, awty.future_job_history, awty_internal.future_job_history_default,
    awty.repetition, awty.rule, awty.alert, awty.calendar, awty_internal.repetition, awty_internal.check_stat, awty_internal.hold, awty_internal.stop, awty_internal.in_flight, awty_internal.origin, awty.status FROM PUBLIC;
REVOKE ALL ON SEQUENCE awty.future_job_id_seq, awty_internal.identity FROM PUBLIC;
REVOKE ALL ON SCHEMA awty, awty_internal FROM PUBLIC;

-- Revokes rights that ALTER DEFAULT PRIVILEGES has granted, because a role with TRIGGER could run code as the table's
-- owner.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('REVOKE ALL ON TABLE %s FROM %s', c.oid::regclass,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[])
          AND a.grantee <> c.relowner
        UNION
        SELECT format('REVOKE ALL ON SCHEMA %I FROM %s', n.nspname,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
        FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
        WHERE n.nspname = ANY ('{awty,awty_internal}') AND a.grantee <> n.nspowner
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

GRANT SELECT ON awty.job, awty.future_job, awty.future_job_history, awty.repetition, awty.rule, awty.alert, awty.late, awty.calendar, awty.status TO PUBLIC;
GRANT SELECT ON awty_internal.repetition, awty_internal.stop TO PUBLIC;

ALTER TABLE awty.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.future_job ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.future_job_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.repetition ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.rule ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.rule_function ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.stop ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.alert ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty.calendar ENABLE ROW LEVEL SECURITY;

-- With row security, members of pg_write_all_data cannot write to these tables, because no policy allows writes.
ALTER TABLE awty_internal.future_job_history_default ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.check_stat ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.hold ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.in_flight ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.origin ENABLE ROW LEVEL SECURITY;

-- Each policy reads the list of readable jobs once, because a lookup per job takes seconds with thousands of jobs.
CREATE POLICY own_jobs ON awty.job FOR SELECT TO PUBLIC USING (
    job = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);
CREATE POLICY monitored ON awty.job FOR SELECT TO pg_monitor USING (true);

-- Unlike awty.job, checks and history have no policy for pg_monitor, because a monitoring role must not read them.
CREATE POLICY own_checks ON awty.future_job FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(scheduled_by)
    OR job = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);

CREATE POLICY own_repetitions ON awty_internal.repetition FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(repeated_by)
    OR job = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);

CREATE POLICY own_rules ON awty.rule FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(role)
    OR rule = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);
CREATE POLICY own_alerts ON awty.alert FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(role)
    OR (rule, role::oid) = ANY (SELECT r.job, r.role FROM awty_internal.readable() AS r)
);

-- ARRAY() lets PostgreSQL find the stops by index. With a plain subquery, PostgreSQL would read all stops.
CREATE POLICY own_stops ON awty_internal.stop FOR SELECT TO PUBLIC USING (
    rule = ANY (ARRAY(SELECT r.job FROM awty_internal.readable() AS r))
);

CREATE POLICY own_calendars ON awty.calendar FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(role)
    OR role::oid = (SELECT d.datdba FROM pg_database AS d WHERE d.datname = current_database())
);

-- The policy also compares the role, because another role may now have a job of the same name.
CREATE POLICY own_history ON awty.future_job_history FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(scheduled_by)
    OR awty_internal.can_become(role)
    OR (job, role::oid) = ANY (SELECT r.job, r.role FROM awty_internal.readable() AS r)
);

-- Lets the database's owner and pg_read_all_data read all rows, because a backup must contain the rows of all roles.
GRANT USAGE ON SCHEMA awty, awty_internal TO pg_database_owner;
GRANT SELECT ON awty_internal.future_job_history_default, awty_internal.check_stat, awty_internal.hold,
    awty_internal.origin, awty_internal.rule_function TO pg_database_owner;
GRANT SELECT ON SEQUENCE awty.future_job_id_seq TO pg_database_owner;
CREATE POLICY dumped ON awty.job FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty.future_job FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty.future_job_history FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.future_job_history_default FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.check_stat FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.hold FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.origin FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.rule_function FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.stop FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty.rule FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty.calendar FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty.alert FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.repetition FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);

GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awty TO PUBLIC;
-- All roles need these rights, because awty's public views, policies and functions use these internal objects. A role
-- without USAGE on the schema still cannot name the internal objects.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awty_internal TO PUBLIC;
GRANT SELECT ON awty_internal.here, awty_internal.standing, awty_internal.first_overdue, awty_internal.overdue, awty_internal.recent, awty_internal.stray,
    awty_internal.standstill, awty_internal.untold, awty_internal.reason TO PUBLIC;
REVOKE ALL ON FUNCTION awty_internal.job_changed(), awty_internal.refuse_drop() FROM PUBLIC;

-- Columns with users' data have no statistics, because EXPLAIN's estimates would reveal values of other roles' rows.
ALTER TABLE awty.job ALTER job SET STATISTICS 0, ALTER function_schema SET STATISTICS 0, ALTER function_name SET STATISTICS 0,
    ALTER notify SET STATISTICS 0, ALTER paused_note SET STATISTICS 0;
ALTER TABLE awty.future_job ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0,
    ALTER args SET STATISTICS 0;
ALTER TABLE awty.alert ALTER rule SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0, ALTER note SET STATISTICS 0;
ALTER TABLE awty_internal.repetition ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0,
    ALTER entity_key SET STATISTICS 0, ALTER args SET STATISTICS 0, ALTER cron SET STATISTICS 0, ALTER zone SET STATISTICS 0,
    ALTER calendar SET STATISTICS 0;
ALTER TABLE awty.rule ALTER rule SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER since SET STATISTICS 0,
    ALTER due SET STATISTICS 0, ALTER stopped SET STATISTICS 0, ALTER calendar SET STATISTICS 0, ALTER until SET STATISTICS 0, ALTER call_schema SET STATISTICS 0, ALTER call_name SET STATISTICS 0,
    ALTER cleared_schema SET STATISTICS 0, ALTER cleared_name SET STATISTICS 0,
    ALTER notify SET STATISTICS 0, ALTER walked_to SET STATISTICS 0, ALTER swept_to SET STATISTICS 0;
ALTER TABLE awty_internal.rule_function ALTER rule SET STATISTICS 0, ALTER argument SET STATISTICS 0, ALTER columns SET STATISTICS 0;
ALTER TABLE awty_internal.stop ALTER rule SET STATISTICS 0, ALTER key SET STATISTICS 0;
ALTER TABLE awty.calendar ALTER calendar SET STATISTICS 0, ALTER zone SET STATISTICS 0, ALTER hours SET STATISTICS 0,
    ALTER closed SET STATISTICS 0;
ALTER TABLE awty_internal.hold ALTER job SET STATISTICS 0, ALTER note SET STATISTICS 0;
ALTER TABLE awty.future_job_history ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0,
    ALTER entity_key SET STATISTICS 0, ALTER args SET STATISTICS 0, ALTER message SET STATISTICS 0,
    ALTER context SET STATISTICS 0, ALTER sqlstate SET STATISTICS 0;
ALTER TABLE awty_internal.check_stat ALTER sqlstate SET STATISTICS 0, ALTER message SET STATISTICS 0, ALTER context SET STATISTICS 0;

GRANT SELECT ON awty.failing, awty.running, awty.job_status TO PUBLIC;

-- The table has no policy, because users read its content only in awty.job_status, which calls a function instead of
-- reading the table.
ALTER TABLE awty_internal.job_stat ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.job_stat ALTER job SET STATISTICS 0;

GRANT SELECT ON awty_internal.check_stat, awty_internal.hold TO PUBLIC;
CREATE POLICY own_checks ON awty_internal.hold FOR SELECT TO PUBLIC USING (
    EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = check_id)
);
CREATE POLICY own_checks ON awty_internal.check_stat FOR SELECT TO PUBLIC USING (
    EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = check_id)
);

REVOKE ALL ON awty.lease, awty.attempt, awty_internal.lease, awty_internal.attempt, awty_internal.attempt_default FROM PUBLIC;
GRANT SELECT ON awty.lease, awty.attempt TO PUBLIC;
GRANT SELECT ON awty_internal.lease, awty_internal.attempt TO PUBLIC;

ALTER TABLE awty_internal.lease ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.attempt ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.attempt_default ENABLE ROW LEVEL SECURITY;

-- The policy compares the lease's job and role first, so that the leases of other roles need no lookup.
CREATE POLICY own_checks ON awty_internal.lease FOR SELECT TO PUBLIC USING (
    (awty_internal.can_become(scheduled_by) OR job = ANY (SELECT r.job FROM awty_internal.readable() AS r))
    -- Without OFFSET 0, PostgreSQL would read the checks of all roles.
    AND EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = lease.id OFFSET 0)
);

CREATE POLICY own_attempts ON awty_internal.attempt FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(scheduled_by)
    OR awty_internal.can_become(role)
    OR (job, role::oid) = ANY (SELECT r.job, r.role FROM awty_internal.readable() AS r)
);

-- A dump omits leases, because external workers get new leases for the checks of a restored database.
GRANT SELECT ON awty_internal.attempt_default TO pg_database_owner;
CREATE POLICY dumped ON awty_internal.attempt FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_internal.attempt_default FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);

ALTER TABLE awty_internal.lease ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0,
    ALTER key SET STATISTICS 0, ALTER worker SET STATISTICS 0;
ALTER TABLE awty_internal.attempt ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0,
    ALTER key SET STATISTICS 0, ALTER worker SET STATISTICS 0, ALTER message SET STATISTICS 0, ALTER result SET STATISTICS 0,
    ALTER sqlstate SET STATISTICS 0;
ALTER TABLE awty_internal.attempt_default ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0,
    ALTER entity_key SET STATISTICS 0, ALTER key SET STATISTICS 0, ALTER worker SET STATISTICS 0, ALTER message SET STATISTICS 0,
    ALTER result SET STATISTICS 0, ALTER sqlstate SET STATISTICS 0;

REVOKE ALL ON awty.target, awty_internal.target, awty_internal.bucket, awty_internal.breaker FROM PUBLIC;
GRANT SELECT ON awty.target TO PUBLIC;
GRANT SELECT ON awty_internal.target, awty_internal.bucket, awty_internal.breaker TO PUBLIC;

ALTER TABLE awty_internal.target ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.bucket ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.breaker ENABLE ROW LEVEL SECURITY;

CREATE POLICY own_targets ON awty_internal.target FOR SELECT TO PUBLIC USING (
    job = ANY (ARRAY(SELECT r.job FROM awty_internal.readable() AS r))
);
CREATE POLICY own_targets ON awty_internal.bucket FOR SELECT TO PUBLIC USING (
    job = ANY (ARRAY(SELECT r.job FROM awty_internal.readable() AS r))
);
CREATE POLICY own_targets ON awty_internal.breaker FOR SELECT TO PUBLIC USING (
    job = ANY (ARRAY(SELECT r.job FROM awty_internal.readable() AS r))
);

CREATE POLICY dumped ON awty_internal.target FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);

ALTER TABLE awty_internal.target ALTER job SET STATISTICS 0, ALTER target SET STATISTICS 0, ALTER note SET STATISTICS 0;
ALTER TABLE awty_internal.bucket ALTER job SET STATISTICS 0, ALTER target SET STATISTICS 0;
ALTER TABLE awty_internal.breaker ALTER job SET STATISTICS 0, ALTER target SET STATISTICS 0, ALTER message SET STATISTICS 0;
