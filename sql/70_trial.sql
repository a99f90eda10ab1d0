-- The result has its own type, because RETURNS TABLE refuses columns with the names of arguments.
CREATE TYPE awty.tried AS (
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

COMMENT ON TYPE awty.tried IS 'What became of a check in awty.dry_run() or awty.travel()';
COMMENT ON COLUMN awty.tried.id IS 'Number of the check; NULL: no check was pending';
COMMENT ON COLUMN awty.tried.job IS 'Name of the job';
COMMENT ON COLUMN awty.tried.entity_name IS 'Kind of thing that was checked';
COMMENT ON COLUMN awty.tried.entity_key IS 'Key of the thing';
COMMENT ON COLUMN awty.tried.slot IS 'Slot of the run';
COMMENT ON COLUMN awty.tried.outcome IS 'Why the check ended; NULL: it is pending again';
COMMENT ON COLUMN awty.tried.next_check_at IS 'Next slot of the check; NULL: it has ended';
COMMENT ON COLUMN awty.tried.sqlstate IS 'SQLSTATE of the error; NULL: the run did not fail';
COMMENT ON COLUMN awty.tried.message IS 'Message of the error';

CREATE FUNCTION awty.dry_run(entity_name text, entity_key text, job text, args jsonb DEFAULT NULL) RETURNS SETOF awty.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'dry_run_wrapper';

CREATE FUNCTION awty.dry_run(entity_name text, entity_key anynonarray, job text, args jsonb DEFAULT NULL) RETURNS SETOF awty.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'dry_run_wrapper';

COMMENT ON FUNCTION awty.dry_run(text, text, text, jsonb)
    IS 'Runs the function of a job for one entity, returns what would become of the check, and undoes everything; args is for an entity without a pending check; for the job''s role only';
COMMENT ON FUNCTION awty.dry_run(text, anynonarray, text, jsonb) IS 'Shows what a check would do now, of an entity whose key is of another type than text, such as a number or a uuid';

CREATE FUNCTION awty.travel(ahead interval, max integer DEFAULT 1000) RETURNS SETOF awty.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'travel_wrapper';

COMMENT ON FUNCTION awty.travel(interval, integer) IS 'For tests, with awty.time_travel on: moves the clock of this transaction ahead and runs the checks of the caller''s jobs that fall due; the transaction can no longer commit';

CREATE FUNCTION awty.now() RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'now_wrapper';

COMMENT ON FUNCTION awty.now() IS 'Returns now(), or the moved clock in a transaction that has called awty.travel()';
