CREATE EXTENSION awty;
CREATE SCHEMA garbage;
GRANT USAGE ON SCHEMA garbage TO PUBLIC;
GRANT USAGE ON SCHEMA awty TO garbage_owner, garbage_user, garbage_stranger;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_get_backend_memory_contexts() TO PUBLIC;
GRANT SELECT ON pg_catalog.pg_backend_memory_contexts TO PUBLIC;

CREATE SEQUENCE garbage.runs;
GRANT USAGE ON SEQUENCE garbage.runs TO PUBLIC;

CREATE FUNCTION garbage.try(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
BEGIN
    EXECUTE call;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    RETURN state || ' ' || message;
END $$;

-- Ends early if the call is slow, because the session has a statement_timeout.
CREATE FUNCTION garbage.many_times(call text, times integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ends timestamptz := clock_timestamp() + interval '10 s';
BEGIN
    FOR i IN 1..times LOOP
        EXIT WHEN clock_timestamp() > ends;
        BEGIN
            EXECUTE call;
            RAISE EXCEPTION 'undone';
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
END $$;

CREATE TABLE garbage.inbox (call text, answer text);
GRANT ALL ON garbage.inbox TO PUBLIC;
CREATE FUNCTION garbage.on_inbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.answer := garbage.try(NEW.call);
    RETURN NEW;
END $$;
CREATE TRIGGER try BEFORE INSERT ON garbage.inbox FOR EACH ROW EXECUTE FUNCTION garbage.on_inbox();

CREATE FUNCTION garbage.obey() RETURNS text LANGUAGE sql RETURN garbage.try(current_setting('garbage.call'));
CREATE MATERIALIZED VIEW garbage.by_postgres AS SELECT garbage.obey() AS answer WITH NO DATA;
CREATE MATERIALIZED VIEW garbage.by_garbage_owner AS SELECT garbage.obey() AS answer WITH NO DATA;
CREATE MATERIALIZED VIEW garbage.by_garbage_user AS SELECT garbage.obey() AS answer WITH NO DATA;
CREATE MATERIALIZED VIEW garbage.by_garbage_stranger AS SELECT garbage.obey() AS answer WITH NO DATA;
CREATE MATERIALIZED VIEW garbage.by_garbage_nobody AS SELECT garbage.obey() AS answer WITH NO DATA;
GRANT CREATE ON SCHEMA garbage TO garbage_owner, garbage_user, garbage_stranger, garbage_nobody;
ALTER MATERIALIZED VIEW garbage.by_garbage_owner OWNER TO garbage_owner;
ALTER MATERIALIZED VIEW garbage.by_garbage_user OWNER TO garbage_user;
ALTER MATERIALIZED VIEW garbage.by_garbage_stranger OWNER TO garbage_stranger;
ALTER MATERIALIZED VIEW garbage.by_garbage_nobody OWNER TO garbage_nobody;

CREATE FUNCTION garbage.ok(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('garbage.runs');
    RETURN NULL;
END $$;
CREATE FUNCTION garbage.again(j awty.future_job) RETURNS timestamptz LANGUAGE sql
    AS $$ SELECT clock_timestamp() + nextval('garbage.runs') * interval '0' $$;
CREATE FUNCTION garbage.all_of_them(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('garbage.runs');
    RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]);
END $$;
CREATE FUNCTION garbage.too_few(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS $$ SELECT '{}'::timestamptz[] $$;
CREATE FUNCTION garbage.never(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz 'infinity' $$;
CREATE FUNCTION garbage.fails(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION USING MESSAGE = coalesce(j.args::text, ''), ERRCODE = 'division_by_zero'; END $$;
CREATE FUNCTION garbage.obeys(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('garbage.runs');
    EXECUTE coalesce(j.args->>'call', 'SELECT');
    RETURN NULL;
END $$;
CREATE FUNCTION garbage."Odd "".f()"(j awty.future_job) RETURNS timestamptz STRICT SECURITY DEFINER SET search_path = ''
    LANGUAGE sql AS $$ SELECT NULL::pg_catalog.timestamptz $$;
CREATE FUNCTION garbage.lesser(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS $$ SELECT NULL::timestamptz $$;
ALTER FUNCTION garbage.lesser OWNER TO garbage_user;

CREATE FUNCTION garbage.set_of(j awty.future_job) RETURNS SETOF timestamptz LANGUAGE sql AS $$ SELECT now() $$;
CREATE FUNCTION garbage.of_text(j text) RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() $$;
CREATE FUNCTION garbage.to_text(j awty.future_job) RETURNS text LANGUAGE sql AS $$ SELECT 'now' $$;
CREATE FUNCTION garbage.both(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() $$;
CREATE FUNCTION garbage.both(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS $$ SELECT ARRAY[now()] $$;
CREATE PROCEDURE garbage.procedure(j awty.future_job) LANGUAGE sql AS $$ SELECT now() $$;
CREATE FUNCTION garbage.forbidden(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() $$;
REVOKE ALL ON FUNCTION garbage.forbidden FROM PUBLIC;
