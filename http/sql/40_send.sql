-- A row keeps the key of a send while the call is pending, and afterwards as long as awty.attempt has the call.
CREATE TABLE awty_http_internal.sent (
    job             text COLLATE "C" NOT NULL,
    key             text COLLATE "C" NOT NULL,
    check_id        bigint,
    digest          bytea NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    sent_by         regrole NOT NULL,
    sent_at         timestamptz NOT NULL DEFAULT now(),
    due_at          timestamptz NOT NULL,
    cancelled_at    timestamptz,
    CONSTRAINT sent_pkey PRIMARY KEY (job, sent_by, key)
);

COMMENT ON TABLE awty_http_internal.sent IS 'Keys of sends, so that each is sent once; a key belongs to the role that sent it';
COMMENT ON COLUMN awty_http_internal.sent.job IS 'Job of the check';
COMMENT ON COLUMN awty_http_internal.sent.key IS 'Key that the caller gave';
COMMENT ON COLUMN awty_http_internal.sent.check_id IS 'Number of the check';
COMMENT ON COLUMN awty_http_internal.sent.digest IS 'SHA-256 of the URI and the content';
COMMENT ON COLUMN awty_http_internal.sent.entity_name IS 'Entity name of the check';
COMMENT ON COLUMN awty_http_internal.sent.entity_key IS 'Entity key of the check: path and query, #, the sender, / and the key';
COMMENT ON COLUMN awty_http_internal.sent.sent_by IS 'Role that called awty_http.send()';
COMMENT ON COLUMN awty_http_internal.sent.sent_at IS 'Time of that call';
COMMENT ON COLUMN awty_http_internal.sent.due_at IS 'Time for which the call was scheduled';
COMMENT ON COLUMN awty_http_internal.sent.cancelled_at IS 'Time of awty_http_internal.cancel_send(); NULL: the call was not cancelled by its key';

CREATE FUNCTION awty_http.send(
    uri text,
    body jsonb DEFAULT NULL,
    key text DEFAULT NULL,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    method text DEFAULT 'POST'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';

COMMENT ON FUNCTION awty_http.send(text, jsonb, text, timestamptz, interval, jsonb, text)
    IS 'Calls a URI once, if this transaction commits; a call with the same key and content is sent only once; returns the number of the check';

-- The entity key contains the sender, so that equal keys of two roles are two checks.
CREATE FUNCTION awty_http_internal.send_key(path text, caller oid, key text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT send_key.path || '#' || replace(replace(pg_get_userbyid(send_key.caller), '%', '%25'), '/', '%2F') || '/' || send_key.key
$$;
COMMENT ON FUNCTION awty_http_internal.send_key(text, oid, text) IS 'Entity key of a send: path and query, #, the sender, / and the key';

CREATE FUNCTION awty_http_internal.key_of(entity_key text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT substr(k.after, strpos(k.after, '/') + 1)
    FROM (SELECT substr(key_of.entity_key, nullif(strpos(key_of.entity_key, '#'), 0) + 1) AS after) AS k
$$;
COMMENT ON FUNCTION awty_http_internal.key_of(text) IS 'Key of a send, from its entity key; NULL: the check is not a send';

CREATE FUNCTION awty_http_internal.send_as(
    caller oid, uri text, body jsonb, key text, at timestamptz, after interval, headers jsonb, method text
) RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    place record := awty_http_internal.place(send_as.uri);
    the_job text := awty_http_internal.keep_job_to_schedule(send_as.caller);
    moment timestamptz := coalesce(send_as.at, now() + coalesce(send_as.after, '0'));
    the_key text := coalesce(send_as.key, gen_random_uuid()::text);
    content jsonb := jsonb_build_object('method', upper(send_as.method));
    digest bytea;
    sent awty_http_internal.sent;
    state text;
BEGIN
    IF send_as.at IS NOT NULL AND send_as.after IS NOT NULL THEN
        PERFORM awty_http_internal.refuse('22023', 'only one of "at" and "after" can be given',
            format('SELECT awty_http.send(%L, after => ''10 min'');', place.uri));
    END IF;
    IF NOT isfinite(moment) THEN
        PERFORM awty_http_internal.refuse('22023', '"at" and "after" must be finite',
            format('SELECT awty_http.send(%L, after => ''10 min'');', place.uri));
    END IF;
    IF awty_http_internal.is_method(upper(send_as.method)) IS NOT TRUE THEN
        PERFORM awty_http_internal.refuse('22023', format('method "%s" is not known', send_as.method),
            'Use GET, HEAD, POST, PUT, PATCH or DELETE.');
    END IF;
    PERFORM awty_http_internal.check_headers(send_as.headers);
    IF octet_length(send_as.body::text) > 262144 THEN
        PERFORM awty_http_internal.refuse('54000', 'the body is larger than 256 KiB', 'Send the address of the content, and let the endpoint fetch it.');
    END IF;
    place.entity_key := awty_http_internal.send_key(place.entity_key, send_as.caller, the_key);
    IF octet_length(send_as.key) NOT BETWEEN 1 AND 255 OR octet_length(place.entity_key) > 1024 THEN
        PERFORM awty_http_internal.refuse('22023', 'the key must have 1 to 255 bytes, and fewer if the path is long',
            'Path, query, the name of the role and the key can have at most 1022 bytes together.');
    END IF;
    IF send_as.headers <> '{}' THEN
        content := content || jsonb_build_object('headers', send_as.headers);
    END IF;
    IF send_as.body IS NOT NULL THEN
        content := content || jsonb_build_object('body', send_as.body);
    END IF;
    PERFORM awty_http_internal.check_encoding(send_as.key, content::text);
    IF send_as.key IS NOT NULL THEN
        digest := sha256(convert_to(place.uri || chr(10) || content::text, 'UTF8'));
        -- Waits for another transaction of this role that sends with the same key.
        INSERT INTO awty_http_internal.sent (job, key, digest, entity_name, entity_key, sent_by, due_at)
        VALUES (the_job, the_key, digest, place.entity_name, place.entity_key, send_as.caller, moment)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            SELECT s.* INTO sent FROM awty_http_internal.sent AS s
            WHERE s.job = the_job AND s.sent_by::oid = send_as.caller AND s.key = the_key;
            IF sent.digest IS DISTINCT FROM digest THEN
                PERFORM awty_http_internal.refuse('42710', format('key "%s" was already used for another call', send_as.key),
                    'Use a new key for each call, and the same key only to send the same call again.');
            END IF;
            SELECT s.state INTO state FROM awty_http_internal.send_status AS s
            WHERE s.job = the_job AND s.sent_by::oid = send_as.caller AND s.key = the_key;
            IF state = 'cancelled' THEN
                RAISE NOTICE USING MESSAGE = format('the call with key "%s" was cancelled and is not made', send_as.key),
                    HINT = 'Use a new key to make the call.';
            END IF;
            RETURN sent.check_id;
        END IF;
    END IF;
    sent.check_id := awty.schedule(place.entity_name, place.entity_key, the_job, at => moment, on_conflict => 'error');
    PERFORM awty_http_internal.set_content(the_job, place.entity_name, place.entity_key, content);
    IF send_as.key IS NOT NULL THEN
        UPDATE awty_http_internal.sent AS s SET check_id = sent.check_id
        WHERE s.job = the_job AND s.sent_by::oid = send_as.caller AND s.key = the_key;
    END IF;
    RETURN sent.check_id;
END
$$;
COMMENT ON FUNCTION awty_http_internal.send_as(oid, text, jsonb, text, timestamptz, interval, jsonb, text) IS 'awty_http.send for a caller';

CREATE FUNCTION awty_http_internal.cancel_send(key text) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.cancel_send(text) IS 'Cancels the send with that key and keeps the key; returns whether the send was pending';

CREATE FUNCTION awty_http_internal.cancel_send_as(caller oid, key text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sent awty_http_internal.sent;
BEGIN
    SELECT s.* INTO sent FROM awty_http_internal.sent AS s
    WHERE s.job = awty_http_internal.job(cancel_send_as.caller) AND s.sent_by::oid = cancel_send_as.caller AND s.key = cancel_send_as.key;
    IF NOT awty_http_internal.keep_right(cancel_send_as.caller, sent.job, 'schedule') THEN
        RETURN false;
    END IF;
    IF awty.cancel(sent.entity_name, sent.entity_key, sent.job) = 0 THEN
        RETURN false;
    END IF;
    UPDATE awty_http_internal.sent AS s SET cancelled_at = now()
    WHERE s.job = sent.job AND s.sent_by = sent.sent_by AND s.key = sent.key;
    RETURN true;
END
$$;
COMMENT ON FUNCTION awty_http_internal.cancel_send_as(oid, text) IS 'awty_http_internal.cancel_send for a caller';

-- If a send is neither pending nor in the history, its call was done or cancelled.
CREATE VIEW awty_http_internal.send_status WITH (security_invoker = true) AS
SELECT s.key, s.job, s.check_id, s.entity_name, s.entity_key,
    concat(s.entity_name, split_part(s.entity_key, '#', 1)) AS uri,
    s.sent_by, s.sent_at, s.due_at,
    CASE WHEN f.held THEN 'held'
        WHEN f.id IS NOT NULL AND EXISTS (SELECT FROM awty.lease AS l WHERE l.id = f.id AND l.expires_at > statement_timestamp()) THEN 'in_flight'
        WHEN f.id IS NOT NULL THEN 'pending'
        WHEN s.cancelled_at IS NOT NULL THEN 'cancelled'
        WHEN last.ok THEN 'done'
        WHEN ended.outcome IS NOT NULL THEN ended.outcome
        WHEN (SELECT j.keep_attempts FROM awty.job AS j WHERE j.job = s.job) <> 'all' OR last.ended_at IS NULL AND kept.kept > '0'
            AND greatest(s.due_at, s.sent_at) < (statement_timestamp() - kept.kept) THEN 'forgotten'
        ELSE 'cancelled' END AS state,
    CASE WHEN NOT f.held THEN f.next_check_at END AS next_slot,
    ended.finished_at,
    last.attempt, last.leased_at, last.ended_at, last.ok, last.message, last.result, s.cancelled_at
FROM awty_http_internal.sent AS s
CROSS JOIN (SELECT current_setting('awty.attempt_retention')::interval AS kept) AS kept
LEFT JOIN LATERAL (
    SELECT p.id, p.held, p.next_check_at FROM awty.future_job AS p WHERE p.id = s.check_id OFFSET 0
) AS f ON true
LEFT JOIN LATERAL (
    SELECT h.outcome, h.finished_at FROM awty.future_job_history AS h
    WHERE f.id IS NULL AND h.id = s.check_id ORDER BY h.finished_at DESC LIMIT 1
) AS ended ON true
LEFT JOIN LATERAL (
    SELECT a.attempt, a.leased_at, a.ended_at, a.ok, a.message, a.result FROM awty.attempt AS a
    WHERE a.id = s.check_id ORDER BY a.ended_at DESC LIMIT 1
) AS last ON true;

COMMENT ON VIEW awty_http_internal.send_status IS 'State of each send whose key is kept: pending, in_flight, held, done, cancelled, forgotten, or an outcome of awty; with its last attempt';
