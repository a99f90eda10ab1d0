\echo Use "ALTER EXTENSION awty_http UPDATE" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

ALTER TABLE awty_http_internal.endpoint ADD COLUMN team text COLLATE "C";
ALTER TABLE awty_http_internal.endpoint ADD CONSTRAINT endpoint_team_is_not_empty CHECK (team <> '');
COMMENT ON COLUMN awty_http_internal.endpoint.team IS 'Whose it is';
ALTER TABLE awty_http_internal.endpoint ALTER team SET STATISTICS 0;
CREATE INDEX endpoint_team_idx ON awty_http_internal.endpoint (team) WHERE deleted_at IS NULL;

CREATE FUNCTION awty_http.teams() RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS 'SELECT DISTINCT e.team FROM awty_http_internal.endpoint AS e';
COMMENT ON FUNCTION awty_http.teams() IS 'Who has schedules';
GRANT EXECUTE ON FUNCTION awty_http.teams() TO PUBLIC;

-- The previous version already has this function. CREATE OR REPLACE keeps its rights and its comment.
CREATE OR REPLACE FUNCTION awty_http_internal.counted_until(id text) RETURNS timestamptz
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT coalesce(max(s.bucket) + '1 hour'::interval, '-infinity') FROM awty_http.stat AS s
            WHERE s.id = counted_until.id AND s.width = '1 hour' AND s.bucket < clock_timestamp());
END
$$;
