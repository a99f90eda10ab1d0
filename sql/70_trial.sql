-- Trying a job without effect: awty.dry_run() and awty.travel().

-- A row of awty.dry_run(), whose columns have the names of its arguments.
CREATE TYPE awty_internal.tried AS (
    id bigint,
    job text,
    entity_name text,
    entity_key text,
    slot timestamptz,
    outcome text,
    next_check_at timestamptz,
    sqlstate text,
    message text
);

CREATE FUNCTION awty.dry_run(entity_name text, entity_key text, job text, args jsonb DEFAULT NULL) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'dry_run_wrapper';

CREATE FUNCTION awty.dry_run(entity_name text, entity_key anynonarray, job text, args jsonb DEFAULT NULL) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'dry_run_wrapper';

COMMENT ON FUNCTION awty.dry_run(text, text, text, jsonb)
    IS 'Runs the function of a job for an entity, says what would become of the check, and undoes it all; args are for an entity without a pending check; for the job''s role itself';
COMMENT ON FUNCTION awty.dry_run(text, anynonarray, text, jsonb) IS 'The same for a key of another type than text';

-- Behind awty.status: what the processes know about this database. Shows no job, entity or error text.
-- Drops what awty's processes remember of jobs in each session, after any change of the table.
CREATE FUNCTION awty.travel(ahead interval, max integer DEFAULT 1000) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'travel_wrapper';

COMMENT ON FUNCTION awty.travel(interval, integer) IS 'For tests, where awty.time_travel is on: moves the clock of this transaction ahead and runs what falls due for the caller''s jobs; the transaction cannot commit any more';

CREATE FUNCTION awty.now() RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'now_wrapper';

COMMENT ON FUNCTION awty.now() IS 'now(), or the travelled clock in a transaction that has called awty.travel()';
