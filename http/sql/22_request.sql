-- The gateway calls the same code, so that it accepts the same requests as the library.
CREATE FUNCTION awty_http_internal.is_method(method text) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT AS 'MODULE_PATHNAME', 'is_http_method_wrapper';
COMMENT ON FUNCTION awty_http_internal.is_method(text) IS 'Can a call have this method?';

CREATE FUNCTION awty_http_internal.is_status_list(statuses text) RETURNS boolean
    LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT AS 'MODULE_PATHNAME', 'is_status_list_wrapper';
COMMENT ON FUNCTION awty_http_internal.is_status_list(text) IS 'Is this a list of statuses and ranges, such as 200-299,404?';

CREATE FUNCTION awty_http_internal.header_refusal(name text) RETURNS text
    LANGUAGE c IMMUTABLE PARALLEL SAFE STRICT AS 'MODULE_PATHNAME', 'header_refusal_wrapper';
COMMENT ON FUNCTION awty_http_internal.header_refusal(text) IS 'Why a user cannot set a header of this name; NULL: a user can';

CREATE FUNCTION awty_http_internal.check_headers(headers jsonb) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bad record;
BEGIN
    -- Uses strict mode, because lax mode would test the elements of an array instead of the array.
    IF jsonb_typeof(headers) <> 'object' OR jsonb_path_exists(headers, 'strict $.* ? (@.type() <> "string")', '{}', true) THEN
        PERFORM awty_http_internal.refuse('22023', '"headers" must be an object of texts', 'headers => ''{"X-From": "shop"}''');
    END IF;
    IF octet_length(headers::text) > 65536 THEN
        PERFORM awty_http_internal.refuse('54000', '"headers" are larger than 64 KiB', 'Send large values in the body.');
    END IF;
    -- A schedule could have 6,240 short headers in 64 KiB, and a list of schedules would need 14 times their size in memory.
    IF (SELECT count(*) FROM jsonb_object_keys(headers)) > 1000 THEN
        PERFORM awty_http_internal.refuse('54000', '"headers" has more than 1000 headers', 'Send fewer headers.');
    END IF;
    SELECT h.name, coalesce(awty_http_internal.header_refusal(h.name),
        CASE WHEN h.value ~ '[\x01-\x08\x0a-\x1f\x7f]' THEN 'whose value has a control character' END) AS trouble
    INTO bad FROM jsonb_each_text(headers) AS h (name, value) ORDER BY 2 NULLS LAST, 1 LIMIT 1;
    IF bad.trouble IS NOT NULL THEN
        PERFORM awty_http_internal.refuse('22023', format('"headers" has "%s", %s', left(bad.name, 100), bad.trouble),
            'headers => ''{"X-From": "shop"}''');
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.check_headers(jsonb) IS 'Raises an error for headers with which no call can be made';

CREATE FUNCTION awty_http_internal.length(length interval) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN l.ms % 1000 = 0 THEN l.ms / 1000 || ' s' ELSE l.ms || ' ms' END
    FROM (SELECT greatest((extract(epoch FROM length.length) * 1000)::bigint, 1) AS ms) AS l
$$;
COMMENT ON FUNCTION awty_http_internal.length(interval) IS 'Returns a length of time as the gateway reads it, in milliseconds or whole seconds';

-- Returns header values and the body apart from the request, so that the request reveals only the headers' names.
CREATE FUNCTION awty_http_internal.request(
    method text, headers jsonb, body jsonb, body_text text, body_base64 text, timeout interval, connect_timeout interval, retries jsonb,
    max_lateness interval, success text, sign boolean, keep_response boolean, OUT request jsonb, OUT content jsonb)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    method CONSTANT text := upper(coalesce(request.method, 'POST'));
    headers CONSTANT jsonb := coalesce(request.headers, '{}');
    success CONSTANT text := coalesce(request.success, '200-299');
    retries CONSTANT jsonb := coalesce(request.retries, '{}');
    retries_hint CONSTANT text := 'retries => ''{"max_attempts": 3, "first_delay": "10 s", "max_delay": "10 min"}''';
    unknown text;
    max_attempts integer;
    first_delay interval;
    max_delay interval;
    -- Compares seconds, because an interval with parts of both signs may be within limits that its stored seconds exceed.
    first_seconds numeric;
    max_seconds numeric;
BEGIN
    IF jsonb_typeof(retries) <> 'object' THEN
        PERFORM awty_http_internal.refuse('22023', '"retries" must be an object', retries_hint);
    END IF;
    SELECT k INTO unknown FROM jsonb_object_keys(retries) AS k
    WHERE k <> ALL ('{max_attempts,first_delay,max_delay}'::text[]) ORDER BY k LIMIT 1;
    IF unknown IS NOT NULL THEN
        PERFORM awty_http_internal.refuse('22023', format('"retries" has no field "%s"', unknown), retries_hint);
    END IF;
    max_attempts := coalesce((retries ->> 'max_attempts')::integer, 3);
    first_delay := coalesce((retries ->> 'first_delay')::interval, '10 s');
    max_delay := coalesce((retries ->> 'max_delay')::interval, greatest('10 min', first_delay));
    first_seconds := extract(epoch FROM first_delay);
    max_seconds := extract(epoch FROM max_delay);
    PERFORM awty_http_internal.check_headers(headers);
    PERFORM awty_http_internal.refuse_first(ARRAY[
        ROW (awty_http_internal.is_method(method), '"method" is not known', 'Use GET, HEAD, POST, PUT, PATCH or DELETE.'),
        ROW (num_nonnulls(body, body_text, body_base64) <= 1, 'a body can be given only once', 'Give only one of "body", "body_text" and "body_base64".'),
        ROW (octet_length(coalesce(body::text, body_text, '')) <= 262144 AND octet_length(coalesce(body_base64, '')) <= 360000
                AND (octet_length(decode(body_base64, 'base64')) <= 262144) IS NOT FALSE,
            'the body is larger than 256 KiB', 'Send the address of the content, and let the endpoint fetch it.'),
        ROW (extract(epoch FROM timeout) BETWEEN 0.1 AND 900, '"timeout" must be between 100 ms and 15 min', 'timeout => ''30 s'''),
        ROW (extract(epoch FROM connect_timeout) BETWEEN 0.1 AND 900, '"connect_timeout" must be between 100 ms and 15 min', 'connect_timeout => ''5 s'''),
        ROW (max_attempts BETWEEN 1 AND 1000, '"max_attempts" must be between 1 and 1000', 'retries => ''{"max_attempts": 3}'''),
        ROW (first_seconds BETWEEN 1 AND max_seconds AND max_seconds <= 86400,
            '"first_delay" must be at least 1 s and at most "max_delay", and "max_delay" at most 1 day', retries_hint),
        ROW (extract(epoch FROM max_lateness) > 0 AND extract(epoch FROM max_lateness) <= 36525 * 86400.0, '"max_lateness" must be greater than 0 and at most 36525 days',
            'max_lateness => ''1 min'''),
        ROW (awty_http_internal.is_status_list(success), '"success" must be a list of HTTP statuses', 'success => ''200-299,404'''),
        -- Encodes the value again and compares, because decode() accepts more spellings of base64 than the gateway
        -- does.
        ROW (translate(encode(decode(body_base64, 'base64'), 'base64'), chr(10), '')
                = translate(body_base64, concat(' ', chr(9), chr(10), chr(13)), ''),
            '"body_base64" must be base64 with its full padding', 'body_base64 => encode(''\x00ff'', ''base64'')')
    ]::awty_http_internal.rule[]);
    request := jsonb_strip_nulls(jsonb_build_object('method', method,
        'headers', (SELECT jsonb_object_agg(h, '•••') FROM jsonb_object_keys(headers) AS h),
        'timeout', awty_http_internal.length(timeout), 'connect_timeout', awty_http_internal.length(connect_timeout),
        'retries', jsonb_build_object('max_attempts', max_attempts, 'first_delay', awty_http_internal.length(first_delay),
            'max_delay', awty_http_internal.length(max_delay)),
        'max_lateness', awty_http_internal.length(max_lateness), 'success', success, 'sign', coalesce(sign, true),
        'keep_response', coalesce(keep_response, false)));
    content := jsonb_strip_nulls(jsonb_build_object('headers', nullif(headers, '{}'), 'body_text', body_text, 'body_base64', body_base64))
        -- JSON null is a body, but SQL NULL means that the call has no body.
        || CASE WHEN body IS NULL THEN '{}' ELSE jsonb_build_object('body', body) END;
    -- Each claim reads the content as JSON text, which has six bytes for each control character.
    IF octet_length(content::text) > 524288 THEN
        PERFORM awty_http_internal.refuse('54000', 'headers and body are larger than 512 KiB as JSON',
            'Send a body with many control characters or quotation marks as "body_base64".');
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.request(text, jsonb, jsonb, text, text, interval, interval, jsonb, interval, text, boolean, boolean)
    IS 'Returns how a call is made, and its content; raises an error for a wrong argument';

CREATE FUNCTION awty_http_internal.set_content(job text, entity_name text, entity_key text, content jsonb) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO awty_http_internal.content AS c (job, entity_name, entity_key, content)
    VALUES (set_content.job, set_content.entity_name, set_content.entity_key, set_content.content)
    ON CONFLICT ON CONSTRAINT content_pkey DO UPDATE SET content = excluded.content
$$;
COMMENT ON FUNCTION awty_http_internal.set_content(text, text, text, jsonb) IS 'Writes the content of a call';
