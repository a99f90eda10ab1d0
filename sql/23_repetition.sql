-- awty, part 5: repetitions.

-- When a job is asked about one entity again and again. One row per repetition; runs never update it. What is pending for it is an
-- ordinary row of awty.future_job.
CREATE TABLE awty_internal.repetition (
    -- Numbers of checks: a sequence of its own would be one more relation to lock.
    id              bigint NOT NULL DEFAULT nextval('awty.future_job_id_seq'::regclass),
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    every           interval,
    cron            text COLLATE "C",
    zone            text COLLATE "C" NOT NULL,
    starts          timestamptz,
    ends            timestamptz,
    jitter          interval NOT NULL,
    catch_up        interval NOT NULL,
    args            jsonb,
    repeated_by     regrole NOT NULL,
    repeated_at     timestamptz NOT NULL,
    CONSTRAINT repetition_pkey PRIMARY KEY (id),
    CONSTRAINT repetition_one_per_job_and_entity UNIQUE (entity_name, entity_key, job),
    CONSTRAINT repetition_has_every_or_cron CHECK ((every IS NULL) <> (cron IS NULL)),
    CONSTRAINT repetition_entity_name_is_1_to_255_bytes CHECK (octet_length(entity_name) BETWEEN 1 AND 255),
    CONSTRAINT repetition_entity_key_is_1_to_1024_bytes CHECK (octet_length(entity_key) BETWEEN 1 AND 1024)
);

COMMENT ON TABLE awty_internal.repetition IS 'What stands behind awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.id IS 'Number of the repetition, which no check has';
COMMENT ON COLUMN awty_internal.repetition.job IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.entity_name IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.entity_key IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.every IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.cron IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.zone IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.starts IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.ends IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.jitter IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.catch_up IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.args IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.repeated_by IS 'As in awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.repeated_at IS 'As in awty.repetition';

-- With the time of the check that is pending. A row is shown to whom its tables show it.
CREATE VIEW awty.repetition WITH (security_invoker = true) AS
SELECT r.job, r.entity_name, r.entity_key, f.next_check_at, r.every, r.cron, r.zone, r.starts, r.ends, r.jitter, r.catch_up,
       r.args, r.repeated_by, r.repeated_at
FROM awty_internal.repetition AS r
LEFT JOIN awty.future_job AS f ON f.entity_name = r.entity_name
    AND f.entity_key = r.entity_key AND f.job = r.job;

COMMENT ON VIEW awty.repetition IS 'What repeats: one row per repetition; awty.repeat() writes it, awty.cancel() ends it';
COMMENT ON COLUMN awty.repetition.job IS 'Name of the job that asks';
COMMENT ON COLUMN awty.repetition.entity_name IS 'What is asked about, usually a table; "job" where a job is repeated as such';
COMMENT ON COLUMN awty.repetition.entity_key IS 'Which one, usually its primary key as text';
COMMENT ON COLUMN awty.repetition.next_check_at IS 'When the pending occurrence is due; NULL: none is pending, because its time zone is gone';
COMMENT ON COLUMN awty.repetition.every IS 'The distance between its moments; NULL: see cron';
COMMENT ON COLUMN awty.repetition.cron IS 'The cron expression that gives its moments; NULL: see every';
COMMENT ON COLUMN awty.repetition.zone IS 'The time zone of its moments, as PostgreSQL spells it';
COMMENT ON COLUMN awty.repetition.starts IS 'No moment is before this one, from which every counts; NULL: since ever';
COMMENT ON COLUMN awty.repetition.ends IS 'No moment is after this one; NULL: for ever';
COMMENT ON COLUMN awty.repetition.jitter IS 'Each entity is asked about a fixed part of this later';
COMMENT ON COLUMN awty.repetition.catch_up IS 'How far back slots are made up for that passed while nothing could run';
COMMENT ON COLUMN awty.repetition.args IS 'Passed through to the function';
COMMENT ON COLUMN awty.repetition.repeated_by IS 'Who last called awty.repeat() for it';
COMMENT ON COLUMN awty.repetition.repeated_at IS 'When that was';
