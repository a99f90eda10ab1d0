-- awty, part 2: the three tables that users read.
--
-- Names are text COLLATE "C": their order then depends on no locale, so that no upgrade of the operating system can
-- corrupt an index. Roles are regrole, which follows a renamed role and which pg_upgrade keeps; there is no column of
-- type regproc or regprocedure, which would stop pg_upgrade. There are no foreign keys between the tables: a check is
-- scheduled without touching the row of its job, so that two sessions never meet there.

-- What is registered. One row per job.
--
-- Columns:
--   name             the job's name, 1 to 63 bytes
--   function_schema, function_name
--                    the function; looked up again, with its exact signature, at each run
--   role             runs as this role
--   set_based        the function takes an array of checks
--   slot             a coarser slot for this job; NULL: awty.slot
--   timeout, max_checks, max_horizon, max_attempts, retry_after, on_missed, max_lateness, keep_history
--                    the options of awty.register()
--   allowed          roles that may schedule it, besides members of its role
--   paused           no runs until awty.resume()
--   resumed_at       when it was last resumed: slots before that were missed
CREATE TABLE awty.job (
    name            text COLLATE "C" NOT NULL,
    function_schema text COLLATE "C" NOT NULL,
    function_name   text COLLATE "C" NOT NULL,
    role            regrole NOT NULL,
    set_based       boolean NOT NULL,
    slot            interval,
    timeout         interval NOT NULL,
    max_checks      integer NOT NULL,
    max_horizon     interval NOT NULL,
    max_attempts    integer NOT NULL,
    retry_after     interval NOT NULL,
    on_missed       text COLLATE "C" NOT NULL,
    max_lateness    interval,
    keep_history    text COLLATE "C" NOT NULL,
    allowed         regrole[] NOT NULL DEFAULT '{}',
    paused          boolean NOT NULL DEFAULT false,
    resumed_at      timestamptz,
    registered_by   regrole NOT NULL,
    registered_at   timestamptz NOT NULL,
    CONSTRAINT job_pkey PRIMARY KEY (name),
    CONSTRAINT job_name_is_1_to_63_bytes CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 63),
    CONSTRAINT job_on_missed_is_known CHECK (on_missed IN ('run', 'next_slot', 'skip')),
    CONSTRAINT job_keep_history_is_known CHECK (keep_history IN ('all', 'ran', 'none'))
);

-- The jobs of a role, for its workers.
CREATE INDEX job_role_idx ON awty.job (role);

-- What is pending, and nothing else. One row per check.
--
-- Columns:
--   id               never used again, also not by the check that replaces this one
--   job, entity_name, entity_key
--                    which job asks about which entity
--   args             passed through to the function
--   first_check_at   the first slot; never changes
--   next_check_at    the slot at which the check is due
--   check_count      checks done so far
--   attempt          failed runs in a row
--   held             not run until awty.release(): it took the server down too often
--   scheduled_by, scheduled_at
--                    who scheduled it, and when
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
    CONSTRAINT future_job_one_per_job_and_entity UNIQUE (entity_name, entity_key, job),
    CONSTRAINT future_job_entity_name_is_1_to_255_bytes CHECK (pg_catalog.octet_length(entity_name) BETWEEN 1 AND 255),
    CONSTRAINT future_job_entity_key_is_1_to_1024_bytes CHECK (pg_catalog.octet_length(entity_key) BETWEEN 1 AND 1024),
    CONSTRAINT future_job_next_is_not_before_first CHECK (next_check_at >= first_check_at),
    CONSTRAINT future_job_counts_are_not_negative CHECK (check_count >= 0 AND attempt >= 0)
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

-- What is finished. One row per check, written in the transaction that ends it.
--
-- Columns: those of awty.future_job that name the check, then
--   started_at, finished_at
--                    the last run; a check that ended without a run has no started_at, and finished_at is when it ended
--   run_time         of all its runs together
--   lateness         start of the last run minus its slot
--   check_count      checks done
--   attempts         runs in all, failed ones too
--   outcome          why it ended
--   sqlstate, message
--                    of the last error, where it ended by one; the message is cut at 4096 bytes
--   role             the job's role, which may read the row also when the job is gone
CREATE TABLE awty.future_job_history (
    id              bigint NOT NULL,
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    args            jsonb,
    first_check_at  timestamptz NOT NULL,
    next_check_at   timestamptz NOT NULL,
    scheduled_by    regrole NOT NULL,
    scheduled_at    timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    run_time        interval NOT NULL,
    lateness        interval,
    check_count     integer NOT NULL,
    attempts        integer NOT NULL,
    outcome         text COLLATE "C" NOT NULL,
    sqlstate        text COLLATE "C",
    message         text,
    role            regrole
    -- No CHECK here: PostgreSQL would read its expression anew for each row that is archived, and only awty writes.
) PARTITION BY RANGE (finished_at);

-- Takes what no daily partition is there for, so that nothing ever fails for want of one. awty makes the daily ones
-- ahead of time, with the same keys, so this one stays empty.
--
-- Each partition has its primary key and index, and the table as a whole has none. If it had, no dump could be restored:
-- pg_dump carries the daily partitions as ordinary tables with keys of their own, which would collide with those that a
-- partition gets from its parent when it is attached.
CREATE TABLE awty.future_job_history_default PARTITION OF awty.future_job_history (
    CONSTRAINT future_job_history_default_pkey PRIMARY KEY (id, finished_at)
) DEFAULT;

CREATE INDEX future_job_history_default_entity_idx ON awty.future_job_history_default (entity_name, entity_key);
