-- awty, part 13: who may read what fails, runs and is counted.

GRANT SELECT ON awty.failing, awty.running, awty.job_status TO PUBLIC;

-- No policy: what is in it is shown by awty.job_status.
ALTER TABLE awty_internal.job_stat ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_internal.job_stat ALTER job SET STATISTICS 0;

-- The view reads it with the rights of the role that asks. Nobody has USAGE on its schema, so it cannot be named. A role that gets at it all
-- the same sees only what belongs to checks that the policy of awty.future_job shows.
GRANT SELECT ON awty_internal.check_stat, awty_internal.hold TO PUBLIC;
CREATE POLICY own_checks ON awty_internal.hold FOR SELECT TO PUBLIC USING (
    EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = check_id)
);
CREATE POLICY own_checks ON awty_internal.check_stat FOR SELECT TO PUBLIC USING (
    EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = check_id)
);
