-- awty, part 13: who may read leases and attempts.

REVOKE ALL ON awty.lease, awty.attempt, awty_internal.lease, awty_internal.attempt, awty_internal.attempt_default FROM PUBLIC;
GRANT SELECT ON awty.lease, awty.attempt TO PUBLIC;
-- The views read them with the rights of who asks.
GRANT SELECT ON awty_internal.lease, awty_internal.attempt TO PUBLIC;

ALTER TABLE awty_internal.lease ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.attempt ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.attempt_default ENABLE ROW LEVEL SECURITY;

-- A lease is seen with its check.
CREATE POLICY own_checks ON awty_internal.lease FOR SELECT TO PUBLIC USING (
    EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = lease.id)
);

-- As the history.
CREATE POLICY own_attempts ON awty_internal.attempt FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(scheduled_by)
    OR awty_internal.can_become(role)
    OR (job, role::oid) = ANY (SELECT r.job, r.role FROM awty_internal.readable() AS r)
);

-- The database's owner and members of pg_read_all_data may dump attempts. Leases are not dumped: where a dump is restored, the checks are handed out again.
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
