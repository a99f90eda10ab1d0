-- The gateway calls the same code, so that the gateway and the library normalise a URI in the same way.

CREATE FUNCTION awty_http_internal.normal_uri(uri text) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'normal_uri_wrapper';
COMMENT ON FUNCTION awty_http_internal.normal_uri(text) IS 'Returns the normal spelling of a URI, and refuses a URI that is written differently';

CREATE FUNCTION awty_http_internal.place(INOUT uri text, OUT entity_name text, OUT entity_key text)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT u.parts[1] || u.parts[2], u.parts[1], u.parts[2]
    FROM regexp_match(awty_http_internal.normal_uri(place.uri), '^([^/]+//[^/]+)(.*)$') AS u (parts)
$$;
COMMENT ON FUNCTION awty_http_internal.place(text) IS 'Returns the normal spelling of a URI, its origin, and its path with the query';

-- The hash includes the tenant's number, because two tenants may have the same URI.
CREATE FUNCTION awty_http_internal.id(number bigint, uri text) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT AS 'MODULE_PATHNAME', 'schedule_id_wrapper';
COMMENT ON FUNCTION awty_http_internal.id(bigint, text) IS 'Returns the id of a schedule, which is always the same for the same tenant and URI';
