CREATE TABLE awty_http.token (
    id              bigint GENERATED ALWAYS AS IDENTITY,
    hash            bytea NOT NULL,
    role            regrole NOT NULL,
    scope           text COLLATE "C" NOT NULL,
    expires_at      timestamptz NOT NULL,
    created_by      regrole NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_used_at    timestamptz,
    CONSTRAINT token_pkey PRIMARY KEY (id),
    CONSTRAINT token_hash_is_one_of_a_kind UNIQUE (hash)
);

COMMENT ON TABLE awty_http.token IS 'Tokens of the HTTP API, one row each; only a hash of each token is stored';
COMMENT ON COLUMN awty_http.token.id IS 'Number of the token';
COMMENT ON COLUMN awty_http.token.hash IS 'SHA-256 of the token';
COMMENT ON COLUMN awty_http.token.role IS 'Role whose rights the requests with this token have';
COMMENT ON COLUMN awty_http.token.scope IS 'read, write or admin; each includes the one before';
COMMENT ON COLUMN awty_http.token.expires_at IS 'Time until which the token is valid';
COMMENT ON COLUMN awty_http.token.created_by IS 'Role that created the token';
COMMENT ON COLUMN awty_http.token.created_at IS 'Time at which the token was created';
COMMENT ON COLUMN awty_http.token.last_used_at IS 'Time of the last use, to the minute; NULL: never used';
COMMENT ON SEQUENCE awty_http.token_id_seq IS 'Numbers of tokens';

CREATE INDEX token_role_idx ON awty_http.token (role);

CREATE FUNCTION awty_http.create_token(role name, scope text, expires interval) RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http.create_token(name, text, interval) IS 'Creates a token for a role and returns it; it cannot be read again; scope is read, write or admin; for members of the role';

CREATE FUNCTION awty_http_internal.create_token_as(caller oid, role name, scope text, expires interval) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- Three UUIDs have 366 strong random bits, which the hash reduces to 256 bits.
    bits CONSTANT bytea := sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
    token CONSTANT text := 'awty_' || rtrim(translate(encode(bits, 'base64'), '+/', '-_'), '=');
    owner oid := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = create_token_as.role);
    most CONSTANT integer := 1000;
BEGIN
    IF owner IS NULL THEN
        PERFORM awty_http_internal.refuse('42704', format('role "%s" does not exist', create_token_as.role),
            'To list the roles, run: SELECT rolname FROM pg_roles;');
    END IF;
    IF NOT awty_http_internal.can_become(create_token_as.caller, owner) THEN
        PERFORM awty_http_internal.refuse('42501', format('must be able to SET ROLE "%s"', create_token_as.role),
            format('GRANT %I TO %I;', create_token_as.role, pg_get_userbyid(create_token_as.caller)));
    END IF;
    IF create_token_as.scope <> ALL ('{read,write,admin}'::text[]) OR create_token_as.scope IS NULL THEN
        PERFORM awty_http_internal.refuse('22023', format('scope "%s" is not known', create_token_as.scope), 'Use read, write or admin.');
    END IF;
    -- Compares times, because an interval with parts of both signs has another length for the comparison of intervals.
    IF (CASE WHEN create_token_as.expires BETWEEN '-3660 days' AND '3660 days' THEN
        now() + create_token_as.expires > now() AND now() + create_token_as.expires <= now() + '3660 days' END) IS NOT TRUE THEN
        PERFORM awty_http_internal.refuse('22023', '"expires" must be greater than 0 and at most 3660 days',
            format('SELECT awty_http.create_token(%L, %L, ''90 days'');', create_token_as.role, create_token_as.scope));
    END IF;
    IF (SELECT count(*) FROM awty_http.token AS t WHERE t.role::oid = owner) >= most THEN
        PERFORM awty_http_internal.refuse('54000', format('role "%s" already has %s tokens', create_token_as.role, most),
            'To drop expired tokens, run: SELECT awty_http.drop_token(id) FROM awty_http.token WHERE expires_at < now();');
    END IF;
    INSERT INTO awty_http.token (hash, role, scope, expires_at, created_by)
    VALUES (sha256(convert_to(token, 'UTF8')), owner, create_token_as.scope, now() + create_token_as.expires, create_token_as.caller);
    RETURN token;
END
$$;
COMMENT ON FUNCTION awty_http_internal.create_token_as(oid, name, text, interval) IS 'awty_http.create_token for a caller';

CREATE FUNCTION awty_http.drop_token(id bigint) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http.drop_token(bigint) IS 'Drops a token, so that it is no longer valid; for members of its role';

CREATE FUNCTION awty_http_internal.drop_token_as(caller oid, id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM awty_http.token AS t
    WHERE t.id = drop_token_as.id AND awty_http_internal.can_become(drop_token_as.caller, t.role::oid);
    IF NOT FOUND THEN
        PERFORM awty_http_internal.refuse('42704', format('token %s does not exist', drop_token_as.id),
            'To list the tokens, run: SELECT id, role, scope FROM awty_http.token;');
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.drop_token_as(oid, bigint) IS 'awty_http.drop_token for a caller';

-- SECURITY DEFINER, so that the gateway can find a token by its hash, but cannot read other tokens.
CREATE FUNCTION awty_http_internal.token_of(hash bytea, OUT id bigint, OUT role name, OUT scope text, OUT expires_at timestamptz)
    RETURNS SETOF record ROWS 1 LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Does not store the time of use on a standby, because a standby cannot write.
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
COMMENT ON FUNCTION awty_http_internal.token_of(bytea) IS 'Role, scope and expiry of the token with that SHA-256; records its use';
