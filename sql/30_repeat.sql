-- Repetitions.

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

SELECT pg_extension_config_dump('awty_internal.repetition', '');

CREATE FUNCTION awty.repeat(
    job text,
    every interval DEFAULT NULL,
    cron text DEFAULT NULL,
    zone text DEFAULT NULL,
    entity_name text DEFAULT 'job',
    entity_key text DEFAULT NULL,
    starts timestamptz DEFAULT NULL,
    ends timestamptz DEFAULT NULL,
    jitter interval DEFAULT '0',
    catch_up interval DEFAULT '0',
    args jsonb DEFAULT NULL
) RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'repeat_wrapper';

COMMENT ON FUNCTION awty.repeat(text, interval, text, text, text, text, timestamptz, timestamptz, interval, interval, jsonb)
    IS 'Asks a job again and again, at the moments of every or cron in a time zone; returns the next slot; awty.cancel() ends it';

CREATE FUNCTION awty.occurrences(
    every interval DEFAULT NULL,
    cron text DEFAULT NULL,
    zone text DEFAULT NULL,
    after timestamptz DEFAULT now(),
    max integer DEFAULT 10,
    starts timestamptz DEFAULT NULL
) RETURNS SETOF timestamptz LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'occurrences_wrapper';

COMMENT ON FUNCTION awty.occurrences(interval, text, text, timestamptz, integer, timestamptz)
    IS 'The next moments of every or cron in a time zone after a time, as awty.repeat() would take them';

-- As awty.occurrences(), for what is stored: its zone may be gone, and then there are none.
CREATE FUNCTION awty_internal.coming(every interval, cron text, zone text, after timestamptz, max integer, starts timestamptz)
    RETURNS SETOF timestamptz LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'coming_wrapper';

COMMENT ON FUNCTION awty_internal.coming(interval, text, text, timestamptz, integer, timestamptz) IS 'The next moments of a stored plan; none where PostgreSQL does not know its time zone';

CREATE FUNCTION awty_internal.knows_zone(zone text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'knows_zone_wrapper';

COMMENT ON FUNCTION awty_internal.knows_zone(text) IS 'Does PostgreSQL know this time zone?';

-- The repetitions that do not go on.
CREATE VIEW awty_internal.standstill WITH (security_invoker = true) AS
SELECT r.job, r.entity_name, r.entity_key, r.next_check_at,
    CASE WHEN known.is_known THEN 'its next check is about to be made'
        ELSE format('its time zone "%s" is not known to PostgreSQL any more', r.zone) END AS why,
    CASE WHEN NOT known.is_known THEN
        format('SELECT awty.repeat(%L, %s, zone => …, entity_name => %L, entity_key => %L);', r.job,
            coalesce('every => ' || quote_literal(r.every::text), 'cron => ' || quote_literal(r.cron)),
            r.entity_name, r.entity_key) END AS mend
FROM awty.repetition AS r
CROSS JOIN LATERAL (
    SELECT awty_internal.knows_zone(r.zone) AS is_known
) AS known
WHERE r.next_check_at IS NULL OR NOT known.is_known;

COMMENT ON VIEW awty_internal.standstill IS 'Repetitions without a check, or whose pending check is the last one, because their time zone is gone; as far as the caller may read them';
