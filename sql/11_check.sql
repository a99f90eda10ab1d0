CREATE TABLE awty.future_job (
    id              bigint GENERATED ALWAYS AS IDENTITY,
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    args            jsonb,
    first_check_at  timestamptz NOT NULL,
    next_check_at   timestamptz NOT NULL,
    check_count     integer NOT NULL DEFAULT 0,
    attempt         integer NOT NULL DEFAULT 0,
    held            boolean NOT NULL DEFAULT false,
    scheduled_by    regrole NOT NULL,
    scheduled_at    timestamptz NOT NULL,
    CONSTRAINT future_job_pkey PRIMARY KEY (id),
    -- entity_name comes first, because ascending keys then fill the index pages better. The index also lets
    -- awty.cancel() find all checks of an entity.
    CONSTRAINT future_job_one_per_job_and_entity UNIQUE (entity_name, entity_key, job)
    -- The table has no CHECK constraints, because PostgreSQL would parse their expressions for each written row.
) WITH (
    -- Autovacuum starts early and makes no pauses, because the table changes constantly.
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX future_job_due_idx ON awty.future_job (job, next_check_at, id) WHERE NOT held;

CREATE INDEX future_job_held_idx ON awty.future_job (job, id) WHERE held;
CREATE INDEX future_job_failing_idx ON awty.future_job (job, id) WHERE attempt > 0;

COMMENT ON TABLE awty.future_job IS 'Pending checks, one row each; a job function gets the row of its check as argument';
COMMENT ON COLUMN awty.future_job.id IS 'Number of the check; no other check ever has it, and a check that replaces this one gets a new number';
COMMENT ON COLUMN awty.future_job.job IS 'Name of the job that is run';
COMMENT ON COLUMN awty.future_job.entity_name IS 'Kind of thing that is checked, usually the name of a table; 1 to 255 bytes';
COMMENT ON COLUMN awty.future_job.entity_key IS 'Key of the thing, usually a primary key as text; 1 to 1024 bytes';
COMMENT ON COLUMN awty.future_job.args IS 'Arguments for the job function; at most 1 MB';
COMMENT ON COLUMN awty.future_job.first_check_at IS 'First slot of the check; awty.check_now() changes it only if it is a slot of a repetition that is still ahead';
COMMENT ON COLUMN awty.future_job.next_check_at IS 'Slot at which the check is due, or the time of awty.check_now()';
COMMENT ON COLUMN awty.future_job.check_count IS 'Completed runs of this check before this one';
COMMENT ON COLUMN awty.future_job.attempt IS 'Failed runs in a row';
COMMENT ON COLUMN awty.future_job.held IS 'True if the check does not run until awty.release(), because of awty.hold(), which may have an end, or because the server went down awty.max_crashes times while the check ran';
COMMENT ON COLUMN awty.future_job.scheduled_by IS 'Role that scheduled the check; if awty.watch() has given the rule of the check to another role since, that role';
COMMENT ON COLUMN awty.future_job.scheduled_at IS 'Time of awty.schedule()';
COMMENT ON SEQUENCE awty.future_job_id_seq IS 'Numbers of checks';

CREATE TABLE awty_internal.check_stat (
    check_id        bigint NOT NULL,
    runs            integer NOT NULL DEFAULT 0,
    run_time        interval NOT NULL DEFAULT '0',
    started_at      timestamptz,
    lateness        interval,
    crashes         integer NOT NULL DEFAULT 0,
    exits           integer NOT NULL DEFAULT 0,
    sqlstate        text COLLATE "C",
    message         text,
    context         text,
    failed_at       timestamptz,
    used_before     timestamptz,
    used_through    timestamptz,
    CONSTRAINT check_stat_pkey PRIMARY KEY (check_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE awty_internal.check_stat IS 'Runs so far of pending checks';
COMMENT ON COLUMN awty_internal.check_stat.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty_internal.check_stat.runs IS 'Runs in all, including failed ones';
COMMENT ON COLUMN awty_internal.check_stat.run_time IS 'Total time of all runs';
COMMENT ON COLUMN awty_internal.check_stat.started_at IS 'Start of the last run';
COMMENT ON COLUMN awty_internal.check_stat.lateness IS 'Start of the last run minus its slot';
COMMENT ON COLUMN awty_internal.check_stat.crashes IS 'How often in a row the server went down while this check was running or about to run';
COMMENT ON COLUMN awty_internal.check_stat.exits IS 'How often in a row a run of this check ended its own process';
COMMENT ON COLUMN awty_internal.check_stat.sqlstate IS 'SQLSTATE of the last run, if it failed';
COMMENT ON COLUMN awty_internal.check_stat.message IS 'Message of that error, cut at 4096 bytes';
COMMENT ON COLUMN awty_internal.check_stat.context IS 'Place where that error was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON COLUMN awty_internal.check_stat.failed_at IS 'Time at which the last run failed; NULL: it did not fail';
COMMENT ON COLUMN awty_internal.check_stat.used_before IS 'For a repetition: slots of the plan before this one are used up, whatever the first slot says';
COMMENT ON COLUMN awty_internal.check_stat.used_through IS 'For a repetition: occurrences up to this time are used up, whatever the first slot says';

-- This index finds checks whose run was interrupted by the end of the server or of the worker's process.
CREATE INDEX check_stat_suspects_idx ON awty_internal.check_stat (check_id) WHERE crashes > 0 OR exits > 0;

-- Holds that clients set on checks. A check that awty itself holds after crashes has no row in this table.
CREATE TABLE awty_internal.hold (
    check_id        bigint NOT NULL,
    job             text COLLATE "C" NOT NULL,
    held_by         regrole NOT NULL,
    held_at         timestamptz NOT NULL,
    note            text,
    repetition_id   bigint,
    silent          boolean NOT NULL DEFAULT false,
    held_until      timestamptz,
    changed_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT hold_pkey PRIMARY KEY (check_id)
);

CREATE INDEX hold_until_idx ON awty_internal.hold (job, held_until, check_id) WHERE held_until IS NOT NULL;
CREATE INDEX hold_repetition_idx ON awty_internal.hold (repetition_id) WHERE repetition_id IS NOT NULL;

COMMENT ON TABLE awty_internal.hold IS 'Checks that a role holds; see awty.hold()';
COMMENT ON COLUMN awty_internal.hold.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty_internal.hold.job IS 'Job of the check, because holds are ended job by job';
COMMENT ON COLUMN awty_internal.hold.held_by IS 'Role that called awty.hold()';
COMMENT ON COLUMN awty_internal.hold.held_at IS 'Time of the first awty.hold()';
COMMENT ON COLUMN awty_internal.hold.changed_at IS 'Time of the last awty.hold(). If the check runs meanwhile, the last one is that of the next occurrence';
COMMENT ON COLUMN awty_internal.hold.held_until IS 'Time at which the hold ends; NULL: awty.release() ends it';
COMMENT ON COLUMN awty_internal.hold.note IS 'Note that was given to awty.hold()';
COMMENT ON COLUMN awty_internal.hold.silent IS 'True if awty.cancel() has silenced the row of a watched table';
COMMENT ON COLUMN awty_internal.hold.repetition_id IS 'Repetition of a check that was running when it was held. Its next occurrence may be pending when awty.hold() commits, and must be held as well';

-- A worker writes and flushes its row before it runs the checks, so that after a crash the row names the checks that
-- may have caused it.
CREATE TABLE awty_internal.in_flight (
    worker          integer NOT NULL,
    check_ids       bigint[] NOT NULL,
    CONSTRAINT in_flight_pkey PRIMARY KEY (worker)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_cost_delay = 0,
    -- Avoids compressing the array, because compression takes longer than many runs.
    toast_tuple_target = 8160
);

COMMENT ON TABLE awty_internal.in_flight IS 'Checks that each worker is about to run; a row that outlives a crash of the server names the suspects';
COMMENT ON COLUMN awty_internal.in_flight.worker IS 'Number of the worker''s entry in shared memory';
COMMENT ON COLUMN awty_internal.in_flight.check_ids IS 'Numbers of the checks, as in awty.future_job';

SELECT pg_extension_config_dump('awty.future_job', '');
SELECT pg_extension_config_dump('awty.future_job_id_seq', '');

SELECT pg_extension_config_dump('awty_internal.check_stat', '');
SELECT pg_extension_config_dump('awty_internal.hold', '');

CREATE FUNCTION awty.schedule(
    entity_name text,
    entity_key text,
    job text,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_wrapper';

CREATE FUNCTION awty.schedule(
    entity_name text,
    entity_key anynonarray,
    job text,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_wrapper';

COMMENT ON FUNCTION awty.schedule(text, anynonarray, text, timestamptz, interval, jsonb, text)
    IS 'Schedules one check of an entity whose key is of another type than text, such as a number or a uuid; returns the number of the check';
COMMENT ON FUNCTION awty.schedule(text, text, text, timestamptz, interval, jsonb, text)
    IS 'Schedules one check of an entity, at a time or after an interval from now(), rounded up to a slot; returns the number of the check. If a check of that entity and job is pending, on_conflict decides: replace, keep, earliest, latest or error';

CREATE FUNCTION awty.cancel(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

CREATE FUNCTION awty.cancel(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

COMMENT ON FUNCTION awty.cancel(text, anynonarray, text) IS 'Cancels the checks of an entity whose key is of another type than text, such as a number or a uuid; returns the number of cancelled checks';
COMMENT ON FUNCTION awty.cancel(text, text, text) IS 'Cancels the pending check of an entity and job, or without a job all checks of the entity that the caller may schedule; returns the number of cancelled checks';

CREATE FUNCTION awty.schedule_many(
    entity_name text,
    entity_keys text[],
    job text,
    at timestamptz[] DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb[] DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_many_wrapper';

COMMENT ON FUNCTION awty.schedule_many(text, text[], text, timestamptz[], interval, jsonb[], text)
    IS 'Schedules one check for each of many entities, all or none; returns the number of checks written, without those that on_conflict kept';

CREATE FUNCTION awty.cancel_many(entity_name text, entity_keys text[], job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_many_wrapper';

COMMENT ON FUNCTION awty.cancel_many(text, text[], text) IS 'Cancels the pending checks of many entities, of one job or of all jobs that the caller may schedule; returns the number of cancelled checks';

CREATE FUNCTION awty.key(VARIADIC "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_wrapper';

COMMENT ON FUNCTION awty.key("any") IS 'Returns the key of one or several values, the same in every session: of one value its text, of several a JSON array of texts';

-- The function is PARALLEL RESTRICTED, because parallel workers do not know the clock of awty.travel().
CREATE FUNCTION awty.next_slot(t timestamptz, job text DEFAULT NULL) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'next_slot_wrapper';

COMMENT ON FUNCTION awty.next_slot(timestamptz, text) IS 'Returns the slot that a time is rounded up to, of a job or of the server; for a past time, the next slot from now';

CREATE FUNCTION awty.check_now(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'check_now_wrapper';

CREATE FUNCTION awty.check_now(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'check_now_wrapper';

COMMENT ON FUNCTION awty.check_now(text, text, text) IS 'Makes the check of an entity due now instead of at its slot; returns the number of the check; the job may be left out if the entity has one check';
COMMENT ON FUNCTION awty.check_now(text, anynonarray, text) IS 'Makes the check due now, of an entity whose key is of another type than text, such as a number or a uuid; returns the number of the check';

CREATE FUNCTION awty.hold(entity_name text, entity_key text, job text DEFAULT NULL, note text DEFAULT NULL, held_until timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'hold_wrapper';

CREATE FUNCTION awty.hold(entity_name text, entity_key anynonarray, job text DEFAULT NULL, note text DEFAULT NULL, held_until timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'hold_wrapper';

COMMENT ON FUNCTION awty.hold(text, text, text, text, timestamptz) IS 'Holds the pending check of an entity until awty.release() or until a time, with a note that says why; a run that has begun finishes; the last call replaces role, note and end. Of a watched row, the alert is held: it rises and is not told';
COMMENT ON FUNCTION awty.hold(text, anynonarray, text, text, timestamptz) IS 'Holds the check of an entity whose key is of another type than text, such as a number or a uuid';

CREATE FUNCTION awty.release(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

CREATE FUNCTION awty.release(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

COMMENT ON FUNCTION awty.release(text, text, text) IS 'Lets a held check run again, or has a held alert told again if its row is still late; a check that fell due meanwhile follows the on_missed of its job; the job may be left out if the entity has one check';
COMMENT ON FUNCTION awty.release(text, anynonarray, text) IS 'Releases the check of an entity whose key is of another type than text, such as a number or a uuid';
