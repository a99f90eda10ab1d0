-- Trying a job without effect: awty.dry_run() and awty.travel().

-- A type, because RETURNS TABLE refuses columns with the names of the function's arguments.
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
    IS 'Runs the function of a job for one entity, returns what would become of the check, and undoes everything; args is for an entity without a pending check; for the job''s role only';
COMMENT ON FUNCTION awty.dry_run(text, anynonarray, text, jsonb) IS 'The same for a key of another type than text';

CREATE FUNCTION awty.travel(ahead interval, max integer DEFAULT 1000) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'travel_wrapper';

COMMENT ON FUNCTION awty.travel(interval, integer) IS 'For tests, with awty.time_travel on: moves the clock of this transaction ahead and runs the checks of the caller''s jobs that fall due; the transaction can no longer commit';

CREATE FUNCTION awty.now() RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'now_wrapper';

COMMENT ON FUNCTION awty.now() IS 'Returns now(), or the moved clock in a transaction that has called awty.travel()';
