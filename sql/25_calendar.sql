CREATE TABLE awty.calendar (
    calendar        text COLLATE "C" NOT NULL,
    zone            text COLLATE "C" NOT NULL,
    hours           text[] COLLATE "C" NOT NULL,
    closed          date[] NOT NULL,
    role            regrole NOT NULL,
    changed_by      regrole NOT NULL,
    changed_at      timestamptz NOT NULL,
    zone_hash       bigint,
    hashed_at       timestamptz,
    CONSTRAINT calendar_pkey PRIMARY KEY (calendar),
    CONSTRAINT calendar_name_is_1_to_63_bytes CHECK (octet_length(calendar) BETWEEN 1 AND 63)
);

COMMENT ON TABLE awty.calendar IS 'Calendars, one row each; awty.create_calendar() writes them, awty.drop_calendar() removes them';
COMMENT ON COLUMN awty.calendar.calendar IS 'Name of the calendar, 1 to 63 bytes';
COMMENT ON COLUMN awty.calendar.zone IS 'Time zone of the hours and the closed days, as PostgreSQL spells it';
COMMENT ON COLUMN awty.calendar.hours IS 'Weekly open hours in local time: the union of the given ranges. A range includes its start and excludes its end';
COMMENT ON COLUMN awty.calendar.closed IS 'Local days without open time, in order';
COMMENT ON COLUMN awty.calendar.role IS 'Role that created the calendar; its members may use, replace and drop the calendar. If the role is the owner of the database, every role may use the calendar';
COMMENT ON COLUMN awty.calendar.changed_by IS 'Role that last created or replaced the calendar';
COMMENT ON COLUMN awty.calendar.changed_at IS 'Time of that call';
COMMENT ON COLUMN awty.calendar.zone_hash IS 'Hash of the changes of the zone''s offset in the ten years after hashed_at. If another hash is found at a start, because PostgreSQL has new zone data, the calendar counts as replaced';
COMMENT ON COLUMN awty.calendar.hashed_at IS 'Time at which those ten years begin';

SELECT pg_extension_config_dump('awty.calendar', '');

CREATE TRIGGER calendar_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.calendar
    FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();

ALTER TABLE awty.calendar ENABLE ALWAYS TRIGGER calendar_changed;

CREATE FUNCTION awty.create_calendar(
    calendar text,
    hours text[],
    zone text,
    closed date[] DEFAULT '{}',
    replace boolean DEFAULT false
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'create_calendar_wrapper';

COMMENT ON FUNCTION awty.create_calendar(text, text[], text, date[], boolean)
    IS 'Creates a calendar of weekly hours such as mon-fri 09:00-17:00, in a time zone, without the closed local days. It belongs to the caller. The same definition again changes nothing';

CREATE FUNCTION awty.drop_calendar(calendar text) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'drop_calendar_wrapper';

COMMENT ON FUNCTION awty.drop_calendar(text) IS 'Removes a calendar; for members of its role and the owner of the database';

CREATE FUNCTION awty.due(since timestamptz, within interval, calendar text) RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'due_wrapper';

COMMENT ON FUNCTION awty.due(timestamptz, interval, text)
    IS 'Returns when a length of open time has passed. Hours and smaller units: the first moment at which the open time since then reaches the length. Days: on the n-th open day afterwards, at the same local time or the next opening or last closing of that day. NULL for NULL';

CREATE FUNCTION awty.open_time(since timestamptz, at timestamptz, calendar text) RETURNS interval
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'open_time_wrapper';

COMMENT ON FUNCTION awty.open_time(timestamptz, timestamptz, text)
    IS 'Returns the open time between two times, in hours, minutes and seconds; zero if the second is not after the first; NULL for NULL';
