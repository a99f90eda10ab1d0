-- awty_http, part 5: single calls and tokens.

CREATE FUNCTION awty_http.send(
    uri text,
    body jsonb DEFAULT NULL,
    key text DEFAULT NULL,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    headers jsonb DEFAULT NULL,
    method text DEFAULT 'POST'
) RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET row_security = on -- what awty.watch() calls runs with off
AS $$
DECLARE
    place record := awty_http_internal.place(send.uri);
    the_job text := awty_http_internal.job_to_schedule();
    moment timestamptz := coalesce(send.at, now() + coalesce(send.after, '0'));
    request jsonb := jsonb_strip_nulls(jsonb_build_object('method', upper(send.method), 'headers', nullif(send.headers, '{}')));
    digest bytea;
    sent awty_http_internal.sent;
BEGIN
    IF send.at IS NOT NULL AND send.after IS NOT NULL THEN
        PERFORM awty_http_internal.refuse('22023', 'only one of "at" and "after" can be given',
            format('SELECT awty_http.send(%L, after => ''10 min'');', place.uri));
    END IF;
    IF NOT isfinite(moment) THEN
        PERFORM awty_http_internal.refuse('22023', '"at" and "after" must be finite',
            format('SELECT awty_http.send(%L, after => ''10 min'');', place.uri));
    END IF;
    IF upper(send.method) <> ALL ('{GET,HEAD,POST,PUT,PATCH,DELETE}'::text[]) OR send.method IS NULL THEN
        PERFORM awty_http_internal.refuse('22023', format('method "%s" is not known', send.method),
            'Use GET, HEAD, POST, PUT, PATCH or DELETE.');
    END IF;
    PERFORM awty_http_internal.check_headers(send.headers);
    IF octet_length(send.body::text) > 262144 THEN
        PERFORM awty_http_internal.refuse('54000', 'the body is larger than 256 KiB', 'Send where the content is, and let the endpoint fetch it.');
    END IF;
    IF octet_length(send.key) NOT BETWEEN 1 AND 255 OR octet_length(place.entity_key) + 1 + coalesce(octet_length(send.key), 36) > 1024 THEN
        PERFORM awty_http_internal.refuse('22023', 'the key has more than 255 bytes, or none, or more than its path leaves room for',
            'Path, query and key have at most 1023 bytes together.');
    END IF;
    -- JSON null is a body.
    IF send.body IS NOT NULL THEN
        request := request || jsonb_build_object('body', send.body);
    END IF;
    IF send.key IS NULL THEN
        RETURN awty.schedule(place.entity_name, place.entity_key || '#' || gen_random_uuid(), the_job, at => moment, args => request,
            on_conflict => 'error');
    END IF;
    digest := sha256(convert_to(place.uri || chr(10) || request::text, 'UTF8'));
    -- Waits for another transaction that sends the same.
    INSERT INTO awty_http_internal.sent (job, key, content, entity_name, entity_key, sent_by, due_at)
    VALUES (the_job, send.key, digest, place.entity_name, place.entity_key || '#' || send.key,
        awty_http_internal.me(), moment)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        SELECT s.* INTO sent FROM awty_http_internal.sent AS s WHERE s.job = the_job AND s.key = send.key;
        IF sent.content IS DISTINCT FROM digest THEN
            PERFORM awty_http_internal.refuse('42710', format('key "%s" has been used for another call', send.key),
                'Use a new key for each call, and the same one only to repeat it.');
        END IF;
        RETURN sent.check_id;
    END IF;
    sent.check_id := awty.schedule(place.entity_name, place.entity_key || '#' || send.key, the_job, at => moment, args => request,
        on_conflict => 'error');
    UPDATE awty_http_internal.sent AS s SET check_id = sent.check_id WHERE s.job = the_job AND s.key = send.key;
    RETURN sent.check_id;
END
$$;

COMMENT ON FUNCTION awty_http.send(text, jsonb, text, timestamptz, interval, jsonb, text)
    IS 'Has a URI called once, if this transaction commits; the same key with the same content is sent once only; returns the id of the check';

CREATE TABLE awty_http.token (
    id              bigint GENERATED ALWAYS AS IDENTITY,
    hash            bytea NOT NULL,
    role            regrole NOT NULL,
    scope           text COLLATE "C" NOT NULL,
    expires_at      timestamptz NOT NULL,
    created_by      regrole NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT pg_catalog.now(),
    last_used_at    timestamptz,
    CONSTRAINT token_pkey PRIMARY KEY (id),
    CONSTRAINT token_hash_is_one_of_a_kind UNIQUE (hash),
    CONSTRAINT token_hash_is_a_sha_256 CHECK (pg_catalog.octet_length(hash) OPERATOR(pg_catalog.=) 32),
    CONSTRAINT token_ends CHECK (pg_catalog.isfinite(expires_at)),
    CONSTRAINT token_scope_is_known CHECK (scope OPERATOR(pg_catalog.=) ANY ('{read,write,admin}'))
);

COMMENT ON TABLE awty_http.token IS 'Tokens of the HTTP API; the tokens themselves are nowhere';
COMMENT ON COLUMN awty_http.token.id IS 'Number of the token';
COMMENT ON COLUMN awty_http.token.hash IS 'SHA-256 of the token';
COMMENT ON COLUMN awty_http.token.role IS 'With whose rights its requests run';
COMMENT ON COLUMN awty_http.token.scope IS 'What they may do: read, write or admin; each includes the one before';
COMMENT ON COLUMN awty_http.token.expires_at IS 'Until when it is good';
COMMENT ON COLUMN awty_http.token.created_by IS 'Who made it';
COMMENT ON COLUMN awty_http.token.created_at IS 'When that was';
COMMENT ON COLUMN awty_http.token.last_used_at IS 'When it was last used, to the minute; NULL: never';
COMMENT ON SEQUENCE awty_http.token_id_seq IS 'Numbers of tokens';

CREATE FUNCTION awty_http.create_token(role name, scope text, expires interval) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- 366 random bits of PostgreSQL's strong source, made 256.
    bits CONSTANT bytea := sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
    token CONSTANT text := 'awty_' || rtrim(translate(encode(bits, 'base64'), '+/', '-_'), '=');
    owner oid := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = create_token.role);
BEGIN
    IF owner IS NULL THEN
        PERFORM awty_http_internal.refuse('42704', format('role "%s" does not exist', create_token.role),
            'SELECT rolname FROM pg_roles; lists the roles.');
    END IF;
    IF NOT awty_http_internal.can_become(owner) THEN
        PERFORM awty_http_internal.refuse('42501', format('must be able to SET ROLE "%s"', create_token.role),
            format('GRANT %I TO %I;', create_token.role, current_user));
    END IF;
    IF create_token.scope <> ALL ('{read,write,admin}'::text[]) OR create_token.scope IS NULL THEN
        PERFORM awty_http_internal.refuse('22023', format('scope "%s" is not known', create_token.scope), 'Use read, write or admin.');
    END IF;
    IF create_token.expires > '0' IS NOT TRUE OR create_token.expires > '3660 days' THEN
        PERFORM awty_http_internal.refuse('22023', '"expires" must be a time from now, of 10 years at most',
            format('SELECT awty_http.create_token(%L, %L, ''90 days'');', create_token.role, create_token.scope));
    END IF;
    INSERT INTO awty_http.token (hash, role, scope, expires_at, created_by)
    VALUES (sha256(convert_to(token, 'UTF8')), owner, create_token.scope, now() + create_token.expires,
        awty_http_internal.me());
    RETURN token;
END
$$;

COMMENT ON FUNCTION awty_http.create_token(name, text, interval) IS 'Makes a token for a role and returns it, this once only; scope is read, write or admin; for members of the role';

CREATE FUNCTION awty_http.drop_token(id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE awty_http.token AS t SET expires_at = 'epoch' WHERE t.id = drop_token.id;
    IF NOT FOUND THEN
        PERFORM awty_http_internal.refuse('42704', format('token %s does not exist', drop_token.id),
            'SELECT id, role, scope FROM awty_http.token; lists the tokens.');
    END IF;
END
$$;

COMMENT ON FUNCTION awty_http.drop_token(bigint) IS 'Makes a token worthless; for members of its role';

-- Nobody has the right to delete, with which a role could lock the whole table. Who ends a token at the beginning of time drops it.
CREATE FUNCTION awty_http_internal.token_ends() RETURNS trigger
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> 'awty_http.token'::regclass THEN
        PERFORM awty_http_internal.refuse('42501', 'this function is a trigger of awty_http.token only',
            format('DROP TRIGGER %I ON %s;', TG_NAME, TG_RELID::regclass));
    END IF;
    DELETE FROM awty_http.token AS t WHERE t.id = NEW.id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION awty_http_internal.token_ends() IS 'Deletes a token that has been dropped';

CREATE TRIGGER token_ends AFTER UPDATE OF expires_at ON awty_http.token
    FOR EACH ROW WHEN (NEW.expires_at OPERATOR(pg_catalog.=) 'epoch')
    EXECUTE FUNCTION awty_http_internal.token_ends();

CREATE FUNCTION awty_http_internal.can_become(role oid) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN awty_internal.can_become(role::pg_catalog.regrole);
COMMENT ON FUNCTION awty_http_internal.can_become(oid) IS 'May the current user SET ROLE to that role?';

-- Who knows a token may ask whose it is. So the rights are those of the owner, and the question is one exact hash.
CREATE FUNCTION awty_http_internal.token_of(hash bytea, OUT id bigint, OUT role name, OUT scope text, OUT expires_at timestamptz)
    RETURNS SETOF record ROWS 1 LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A standby reads only. Another request that writes the same minute is not waited for.
    IF NOT current_setting('transaction_read_only')::boolean THEN
        UPDATE awty_http.token AS t SET last_used_at = date_trunc('minute', now())
        WHERE t.id = (SELECT u.id FROM awty_http.token AS u
                      WHERE u.hash = token_of.hash AND u.last_used_at IS DISTINCT FROM date_trunc('minute', now())
                      FOR UPDATE SKIP LOCKED);
    END IF;
    RETURN QUERY SELECT t.id, pg_get_userbyid(t.role), t.scope::text, t.expires_at FROM awty_http.token AS t
        WHERE t.hash = token_of.hash AND EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = t.role);
END
$$;
COMMENT ON FUNCTION awty_http_internal.token_of(bytea) IS 'Whose token has that SHA-256, and what it is good for; notes that it was used';
