CREATE TABLE awty_internal.repetition (
    -- Repetitions take their numbers from the sequence of checks, because a separate sequence would be one more
    -- relation to lock.
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
    calendar        text COLLATE "C",
    CONSTRAINT repetition_pkey PRIMARY KEY (id),
    CONSTRAINT repetition_one_per_job_and_entity UNIQUE (entity_name, entity_key, job),
    CONSTRAINT repetition_has_every_or_cron CHECK ((every IS NULL) <> (cron IS NULL)),
    CONSTRAINT repetition_entity_name_is_1_to_255_bytes CHECK (octet_length(entity_name) BETWEEN 1 AND 255),
    CONSTRAINT repetition_entity_key_is_1_to_1024_bytes CHECK (octet_length(entity_key) BETWEEN 1 AND 1024)
);

CREATE INDEX repetition_calendar_idx ON awty_internal.repetition (calendar) WHERE calendar IS NOT NULL;

COMMENT ON TABLE awty_internal.repetition IS 'The table behind awty.repetition';
COMMENT ON COLUMN awty_internal.repetition.id IS 'Number of the repetition; no check has the same number';
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
COMMENT ON COLUMN awty_internal.repetition.calendar IS 'As in awty.repetition';

CREATE VIEW awty.repetition WITH (security_invoker = true) AS
SELECT r.job, r.entity_name, r.entity_key, f.next_check_at, r.every, r.cron, r.zone, r.starts, r.ends, r.jitter, r.catch_up,
       r.args, r.repeated_by, r.repeated_at, r.calendar
FROM awty_internal.repetition AS r
LEFT JOIN awty.future_job AS f ON f.entity_name = r.entity_name
    AND f.entity_key = r.entity_key AND f.job = r.job;

COMMENT ON VIEW awty.repetition IS 'Repetitions, one row each; awty.repeat() writes them, awty.cancel() ends them';
COMMENT ON COLUMN awty.repetition.job IS 'Name of the job';
COMMENT ON COLUMN awty.repetition.entity_name IS 'Kind of thing that is checked, usually the name of a table; "job" if the job repeats without an entity';
COMMENT ON COLUMN awty.repetition.entity_key IS 'Key of the thing, usually a primary key as text';
COMMENT ON COLUMN awty.repetition.next_check_at IS 'Slot of the pending occurrence; NULL: none is pending, because PostgreSQL does not know the time zone any more, or the calendar leaves no moment';
COMMENT ON COLUMN awty.repetition.every IS 'Interval between occurrences; NULL: see cron';
COMMENT ON COLUMN awty.repetition.cron IS 'Cron expression of the occurrences; NULL: see every';
COMMENT ON COLUMN awty.repetition.zone IS 'Time zone of the occurrences, as PostgreSQL spells it';
COMMENT ON COLUMN awty.repetition.starts IS 'No occurrence is before this time, from which every counts; NULL: no limit';
COMMENT ON COLUMN awty.repetition.ends IS 'No occurrence is after this time; NULL: no limit';
COMMENT ON COLUMN awty.repetition.jitter IS 'Upper bound of the delay of each occurrence, which also ends before the next moment; the delay of one entity is always the same';
COMMENT ON COLUMN awty.repetition.catch_up IS 'How far back the slots that passed while nothing could run are made up for';
COMMENT ON COLUMN awty.repetition.args IS 'Arguments for the job function';
COMMENT ON COLUMN awty.repetition.repeated_by IS 'Role that last called awty.repeat() for this repetition';
COMMENT ON COLUMN awty.repetition.repeated_at IS 'Time of that call';
COMMENT ON COLUMN awty.repetition.calendar IS 'Calendar whose closed time is left out; NULL: none';

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
    args jsonb DEFAULT NULL,
    calendar text DEFAULT NULL
) RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'repeat_wrapper';

COMMENT ON FUNCTION awty.repeat(text, interval, text, text, text, text, timestamptz, timestamptz, interval, interval, jsonb, text)
    IS 'Repeats a job at an interval (every) or by a cron expression, in a time zone, without the moments in closed time of a calendar; returns the next slot; awty.cancel() ends the repetition';

CREATE FUNCTION awty.occurrences(
    every interval DEFAULT NULL,
    cron text DEFAULT NULL,
    zone text DEFAULT NULL,
    after timestamptz DEFAULT now(),
    max integer DEFAULT 10,
    starts timestamptz DEFAULT NULL,
    calendar text DEFAULT NULL
) RETURNS SETOF timestamptz LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'occurrences_wrapper';

COMMENT ON FUNCTION awty.occurrences(interval, text, text, timestamptz, integer, timestamptz, text)
    IS 'Returns the next occurrences of an interval (every) or a cron expression after a time, in a time zone, as awty.repeat() would plan them';

CREATE FUNCTION awty_internal.coming(every interval, cron text, zone text, after timestamptz, max integer, starts timestamptz, calendar text DEFAULT NULL, until timestamptz DEFAULT NULL)
    RETURNS SETOF timestamptz LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'coming_wrapper';

COMMENT ON FUNCTION awty_internal.coming(interval, text, text, timestamptz, integer, timestamptz, text, timestamptz) IS 'The next occurrences of a stored plan, until a time; none if PostgreSQL does not know its time zone';

CREATE FUNCTION awty_internal.knows_zone(zone text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'knows_zone_wrapper';

COMMENT ON FUNCTION awty_internal.knows_zone(text) IS 'Does PostgreSQL know this time zone?';

CREATE VIEW awty_internal.standstill WITH (security_invoker = true) AS
SELECT r.job, r.entity_name, r.entity_key, r.next_check_at,
    CASE WHEN NOT known.is_known THEN format('PostgreSQL no longer knows its time zone "%s"', r.zone)
        WHEN shut.is_shut THEN format('calendar "%s" is closed at all its moments', r.calendar)
        ELSE 'its next check is about to be made' END AS why,
    CASE WHEN NOT known.is_known OR shut.is_shut THEN
        format('SELECT awty.repeat(%L, %s, zone => %s%s, entity_name => %L, entity_key => %L);', r.job,
            coalesce('every => ' || quote_literal(r.every::text), 'cron => ' || quote_literal(r.cron)),
            CASE WHEN known.is_known THEN quote_literal(r.zone) ELSE '…' END,
            coalesce(', calendar => ' || CASE WHEN shut.is_shut THEN '…' ELSE quote_literal(r.calendar) END, ''),
            r.entity_name, r.entity_key) END AS mend
FROM awty.repetition AS r
CROSS JOIN LATERAL (
    SELECT awty_internal.knows_zone(r.zone) AS is_known
) AS known
CROSS JOIN LATERAL (
    SELECT r.calendar IS NOT NULL AND r.next_check_at IS NULL AND known.is_known AND NOT EXISTS (
        SELECT FROM awty_internal.coming(r.every, r.cron, r.zone, clock_timestamp(), 1, r.starts, r.calendar)
    ) AS is_shut
) AS shut
WHERE r.next_check_at IS NULL OR NOT known.is_known;

COMMENT ON VIEW awty_internal.standstill IS 'Repetitions that end because PostgreSQL does not know their time zone any more, or because their calendar leaves no moment: without a pending check, or with the last one; those that the caller may read';
