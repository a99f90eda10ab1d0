-- URIs: the one spelling of each, and the ids of schedules.

-- An address has several spellings: 127.1 and 0x7f.0.0.1 are 127.0.0.1, and [::0:1] is [::1]. A host whose last label is a number is an
-- address (https://url.spec.whatwg.org/#ends-in-a-number-checker).
CREATE FUNCTION awty_http_internal.address_trouble(host text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    usual text;
BEGIN
    IF host ~ '(^|[.])([0-9]+|0x[0-9a-f]*)[.]?$' AND host !~ '^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])([.](?!$)|$)){4}$' THEN
        RETURN 'its host ends in a number but is not an IPv4 address like 192.0.2.1';
    ELSIF host ~ '^\[' THEN
        usual := host(btrim(host, '[]')::inet);
        RETURN CASE WHEN strpos(usual, '.') > 0 THEN 'its IPv6 address contains an IPv4 address; write the IPv4 address'
            WHEN host <> '[' || usual || ']' THEN 'its IPv6 address must be written as [' || usual || ']' END;
    END IF;
    RETURN NULL;
EXCEPTION WHEN invalid_text_representation THEN
    RETURN 'its host is not an IPv6 address';
END
$$;
COMMENT ON FUNCTION awty_http_internal.address_trouble(text) IS 'Why a host that is an address is refused; NULL: the address is fine, or the host is a name';

-- The function refuses a URI that has a plainer spelling, so that no URI is stored twice.
CREATE FUNCTION awty_http_internal.place(INOUT uri text, OUT entity_name text, OUT entity_key text)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts text[] := regexp_match(place.uri, '^(https?)://([^/?#\\]*)([^#]*)(#.*)?$', 'i');
    host text;
    port text;
    trouble text;
    encoded text;
BEGIN
    IF place.uri IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22004', MESSAGE = 'argument "uri" must not be NULL',
            HINT = 'uri => ''https://api.example.com/tick''';
    END IF;
    IF parts IS NULL THEN
        trouble := 'it does not begin with http:// or https://';
    ELSIF parts[4] IS NOT NULL THEN
        trouble := 'it has a fragment; leave out # and the text after it';
    ELSIF strpos(parts[2], '@') > 0 THEN
        trouble := 'it has a user name or password; send them in a header';
    ELSIF place.uri ~ '[^\x21-\x7e]' THEN
        trouble := 'it has a space or a character outside ASCII; write the host in punycode and percent-encode the rest';
    ELSIF strpos(place.uri, chr(92)) > 0 THEN
        trouble := 'it has a backslash; percent-encode it';
    -- The gateway encodes these characters. A URI with one of them would have another id there.
    ELSIF split_part(parts[3], '?', 1) ~ '["<>`{}]' OR parts[3] ~ '\?.*["<>'']' THEN
        trouble := 'it has a character that must be percent-encoded';
        encoded := split_part(parts[3], '?', 1);
        SELECT string_agg(CASE WHEN c ~ CASE WHEN n <= length(encoded) THEN '["<>`{}]' ELSE '["<>'']' END
            THEN '%' || upper(encode(convert_to(c, 'UTF8'), 'hex')) ELSE c END, '' ORDER BY n)
        INTO encoded FROM regexp_split_to_table(parts[3], '') WITH ORDINALITY AS r (c, n);
    ELSIF split_part(parts[3], '?', 1) ~* '/(\.|%2e){1,2}(/|$)' THEN
        trouble := 'its path has a segment "." or ".."; leave it out';
    ELSE
        host := lower((regexp_match(parts[2], '^(\[[0-9a-f:.]+\]|[^]:[%^|"<>`{}]+)(:[0-9]*)?$', 'i'))[1]);
        port := ltrim(coalesce((regexp_match(parts[2], ':([0-9]*)$'))[1], ''), '0');
        IF host IS NULL OR parts[2] ~ ':0+$' THEN
            trouble := 'its host or port cannot be read';
        ELSIF length(port) > 5 OR port <> '' AND port::integer > 65535 THEN
            trouble := 'its port is above 65535';
        ELSE
            trouble := awty_http_internal.address_trouble(host);
        END IF;
    END IF;
    IF trouble IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('invalid URI "%s"', left(place.uri, 200)),
            DETAIL = 'The reason: ' || trouble || '.', HINT = format('Write it as %L.',
                coalesce(left(parts[1] || '://' || parts[2] || encoded, 1500), 'https://api.example.com/tick?from=awty'));
    END IF;
    IF (lower(parts[1]), port) IN (('http', '80'), ('https', '443')) THEN
        port := '';
    END IF;
    entity_name := lower(parts[1]) || '://' || host || CASE WHEN port <> '' THEN ':' || port ELSE '' END;
    entity_key := CASE WHEN parts[3] ~ '^/' THEN parts[3] ELSE '/' || parts[3] END;
    IF octet_length(entity_name) > 255 OR octet_length(entity_key) > 1024 THEN
        RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = format('URI "%s…" is too long', left(place.uri, 200)),
            HINT = 'Scheme, host and port have at most 255 bytes, path and query at most 1024.';
    END IF;
    uri := entity_name || entity_key;
END
$$;
COMMENT ON FUNCTION awty_http_internal.place(text) IS 'Returns the one spelling of a URI, its origin, and its path with the query';

-- The hash includes the tenant's number, because two tenants may have the same URI.
CREATE FUNCTION awty_http_internal.id(number bigint, uri text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT 's_' || left(translate(encode(sha256(convert_to(number || chr(10) || uri, 'UTF8')), 'base64'), '+/', '-_'), 22)
$$;
COMMENT ON FUNCTION awty_http_internal.id(bigint, text) IS 'Returns the id of a schedule, which is always the same for the same tenant and URI';
