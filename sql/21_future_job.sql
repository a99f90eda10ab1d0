-- awty, part 3: checks.

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
