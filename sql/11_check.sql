-- Pending checks: the table, what awty notes about each check, and the functions that schedule, cancel, hold and release them.

-- What is pending, and nothing else. One row per check.
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
    -- In this order the index also finds all checks of an entity, for awty.cancel() without a job. The name comes first because
    -- PostgreSQL then fills pages better with keys that count up.
    CONSTRAINT future_job_one_per_job_and_entity UNIQUE (entity_name, entity_key, job)
    -- No CHECK here: PostgreSQL would read its expression again for each row that is written, and only awty writes, whose functions
    -- refuse what is too long.
) WITH (
    -- Rows come and go all day, so vacuum early and without pauses.
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_vacuum_cost_delay = 0
);

-- What is due, job by job: the order in which workers read.
CREATE INDEX future_job_due_idx ON awty.future_job (job, next_check_at, id) WHERE NOT held;

-- What is held: next to nothing, and found at once.
CREATE INDEX future_job_held_idx ON awty.future_job (id) WHERE held;

COMMENT ON TABLE awty.future_job IS 'What is pending, and nothing else: one row per check; a job function is given its row';
COMMENT ON COLUMN awty.future_job.id IS 'Number of the check, never used again, also not by the check that replaces this one';
COMMENT ON COLUMN awty.future_job.job IS 'Name of the job that asks';
COMMENT ON COLUMN awty.future_job.entity_name IS 'What is asked about, usually a table; 1 to 255 bytes';
COMMENT ON COLUMN awty.future_job.entity_key IS 'Which one, usually its primary key as text; 1 to 1024 bytes';
COMMENT ON COLUMN awty.future_job.args IS 'Passed through to the function; at most 1 MB';
COMMENT ON COLUMN awty.future_job.first_check_at IS 'The first slot; awty.check_now() changes it only where the slot of a repetition is still ahead';
COMMENT ON COLUMN awty.future_job.next_check_at IS 'The slot at which the check is due, or the moment that awty.check_now() asked for';
COMMENT ON COLUMN awty.future_job.check_count IS 'Checks done before this one';
COMMENT ON COLUMN awty.future_job.attempt IS 'Failed runs in a row';
COMMENT ON COLUMN awty.future_job.held IS 'Not run until awty.release(): somebody said awty.hold(), or it was running each time the server went down, awty.max_crashes times';
COMMENT ON COLUMN awty.future_job.scheduled_by IS 'Who scheduled it';
COMMENT ON COLUMN awty.future_job.scheduled_at IS 'When it was scheduled';
COMMENT ON SEQUENCE awty.future_job_id_seq IS 'Numbers of checks';

-- What a pending check has used so far. A row appears when a run did not end its check, and leaves with the check.
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

COMMENT ON TABLE awty_internal.check_stat IS 'What pending checks have used so far';
COMMENT ON COLUMN awty_internal.check_stat.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty_internal.check_stat.runs IS 'Runs in all, failed ones too';
COMMENT ON COLUMN awty_internal.check_stat.run_time IS 'Time of all its runs together';
COMMENT ON COLUMN awty_internal.check_stat.started_at IS 'Start of the last run';
COMMENT ON COLUMN awty_internal.check_stat.lateness IS 'Start of the last run minus its slot';
COMMENT ON COLUMN awty_internal.check_stat.crashes IS 'How often in a row the server went down while this check was about to run or running';
COMMENT ON COLUMN awty_internal.check_stat.exits IS 'How often in a row a run of this check ended its own process';
COMMENT ON COLUMN awty_internal.check_stat.sqlstate IS 'SQLSTATE of the last run, if it failed';
COMMENT ON COLUMN awty_internal.check_stat.message IS 'Message of that error, cut at 4096 bytes';
COMMENT ON COLUMN awty_internal.check_stat.context IS 'Where that error was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON COLUMN awty_internal.check_stat.failed_at IS 'When the last run failed; NULL: it did not';
COMMENT ON COLUMN awty_internal.check_stat.used_before IS 'Of a repetition: slots of the plan before this one are used up, and not as the first slot says';
COMMENT ON COLUMN awty_internal.check_stat.used_through IS 'Of a repetition: moments that come by then are used up, and not as the first slot says';

-- Checks that run alone, because the server or a process went down with them.
CREATE INDEX check_stat_suspects_idx ON awty_internal.check_stat (check_id) WHERE crashes > 0 OR exits > 0;

-- Checks whose last run failed.
CREATE INDEX check_stat_failing_idx ON awty_internal.check_stat (check_id) WHERE failed_at IS NOT NULL;

-- Who said that a check stands still, and why. A check that awty itself holds after crashes has no row here. The run of a check may
-- still be under way; what it leaves pending is held then.
CREATE TABLE awty_internal.hold (
    check_id        bigint NOT NULL,
    held_by         regrole NOT NULL,
    held_at         timestamptz NOT NULL,
    note            text,
    repetition_id   bigint,
    CONSTRAINT hold_pkey PRIMARY KEY (check_id)
);

CREATE INDEX hold_repetition_idx ON awty_internal.hold (repetition_id) WHERE repetition_id IS NOT NULL;

COMMENT ON TABLE awty_internal.hold IS 'Who said that a check stands still; see awty.hold()';
COMMENT ON COLUMN awty_internal.hold.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty_internal.hold.held_by IS 'Who said so';
COMMENT ON COLUMN awty_internal.hold.held_at IS 'Since when it is held';
COMMENT ON COLUMN awty_internal.hold.note IS 'Why, in that role''s words';
COMMENT ON COLUMN awty_internal.hold.repetition_id IS 'Whose occurrence it was, where its run was under way: the next one may be pending by the commit of awty.hold()';

-- The checks that a worker is about to run, written and flushed before it runs them. A row that is still there after a
-- crash names the suspects.
CREATE TABLE awty_internal.in_flight (
    worker          integer NOT NULL,
    check_ids       bigint[] NOT NULL,
    CONSTRAINT in_flight_pkey PRIMARY KEY (worker)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_cost_delay = 0,
    -- Written for each turn of a worker: to compress it would take longer than many a run.
    toast_tuple_target = 8160
);

COMMENT ON TABLE awty_internal.in_flight IS 'The checks that each worker is about to run; a row that outlives a crash names the suspects';
COMMENT ON COLUMN awty_internal.in_flight.worker IS 'The number of the worker''s entry in shared memory';
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

-- One overload for keys that are numbers, uuids and the like; literals and parameters without a type are text.
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
    IS 'The same for a key of another type than text';
COMMENT ON FUNCTION awty.schedule(text, text, text, timestamptz, interval, jsonb, text)
    IS 'Schedules one check of an entity, at a time or after an interval from now(), rounded up to a slot; returns its id; on_conflict is replace, keep, earliest, latest or error';

CREATE FUNCTION awty.cancel(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

CREATE FUNCTION awty.cancel(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

COMMENT ON FUNCTION awty.cancel(text, anynonarray, text) IS 'The same for a key of another type than text';
COMMENT ON FUNCTION awty.cancel(text, text, text) IS 'Cancels the pending checks of an entity, of one job or of all that the caller may schedule; returns how many';

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
    IS 'Schedules one check of each of many entities, all or none; returns how many were written, without those that on_conflict kept';

CREATE FUNCTION awty.cancel_many(entity_name text, entity_keys text[], job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_many_wrapper';

COMMENT ON FUNCTION awty.cancel_many(text, text[], text) IS 'Cancels the pending checks of many entities, of one job or of all that the caller may schedule; returns how many';

CREATE FUNCTION awty.key(VARIADIC "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_wrapper';

COMMENT ON FUNCTION awty.key("any") IS 'One key of several columns: a JSON array of texts, the same in every session';

CREATE FUNCTION awty.next_slot(t timestamptz, job text DEFAULT NULL) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'next_slot_wrapper';

COMMENT ON FUNCTION awty.next_slot(timestamptz, text) IS 'The slot that a time rounds up to, of a job or of the server; of a past time, the next slot from now';

CREATE FUNCTION awty.check_now(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'check_now_wrapper';

CREATE FUNCTION awty.check_now(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'check_now_wrapper';

COMMENT ON FUNCTION awty.check_now(text, text, text) IS 'Asks about an entity now instead of at its slot; returns the id of the check; the job may be left out where the entity has one check';
COMMENT ON FUNCTION awty.check_now(text, anynonarray, text) IS 'The same for a key of another type than text';

CREATE FUNCTION awty.hold(entity_name text, entity_key text, job text DEFAULT NULL, note text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'hold_wrapper';

CREATE FUNCTION awty.hold(entity_name text, entity_key anynonarray, job text DEFAULT NULL, note text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'hold_wrapper';

COMMENT ON FUNCTION awty.hold(text, text, text, text) IS 'Keeps the pending check of an entity from running until awty.release(), with a note that says why; a run under way ends as it would';
COMMENT ON FUNCTION awty.hold(text, anynonarray, text, text) IS 'The same for a key of another type than text';

CREATE FUNCTION awty.release(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

CREATE FUNCTION awty.release(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

COMMENT ON FUNCTION awty.release(text, text, text) IS 'Lets a held check run again; what fell due meanwhile follows the on_missed of its job; the job may be left out where the entity has one check';
COMMENT ON FUNCTION awty.release(text, anynonarray, text) IS 'The same for a key of another type than text';
