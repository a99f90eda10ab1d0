-- awty, part 14: who may read targets.

REVOKE ALL ON awty.target, awty_internal.target, awty_internal.bucket, awty_internal.breaker FROM PUBLIC;
GRANT SELECT ON awty.target TO PUBLIC;
-- The view reads them with the rights of who asks.
GRANT SELECT ON awty_internal.target, awty_internal.bucket, awty_internal.breaker TO PUBLIC;

ALTER TABLE awty_internal.target ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.bucket ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.breaker ENABLE ROW LEVEL SECURITY;

-- A target goes with its job.
CREATE POLICY own_targets ON awty_internal.target FOR SELECT TO PUBLIC USING (
    job = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);
CREATE POLICY own_targets ON awty_internal.bucket FOR SELECT TO PUBLIC USING (
    job = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);
CREATE POLICY own_targets ON awty_internal.breaker FOR SELECT TO PUBLIC USING (
    job = ANY (SELECT r.job FROM awty_internal.readable() AS r)
);

-- The database's owner may dump what people want of targets.
CREATE POLICY dumped ON awty_internal.target FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);

ALTER TABLE awty_internal.target ALTER job SET STATISTICS 0, ALTER target SET STATISTICS 0, ALTER note SET STATISTICS 0;
ALTER TABLE awty_internal.bucket ALTER job SET STATISTICS 0, ALTER target SET STATISTICS 0;
ALTER TABLE awty_internal.breaker ALTER job SET STATISTICS 0, ALTER target SET STATISTICS 0, ALTER message SET STATISTICS 0;
