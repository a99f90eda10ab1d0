-- awty_http, part 3: endpoints.

-- One row for each URI of a tenant. A role that may schedule the job writes its rows, by the functions or by itself; what an answer changes,
-- a role that may claim writes as well. So there is nothing here that either could not do by awty's own functions.
CREATE TABLE awty_http.endpoint (
    id              text COLLATE "C" NOT NULL,
    job             text COLLATE "C" NOT NULL,
    uri             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    version         bigint NOT NULL DEFAULT 1,
    every           interval,
    rounded_from    interval,
    cron            text,
    zone            text,
    at              timestamptz,
    after           interval,
    starts          timestamptz,
    ends            timestamptz,
    jitter          interval NOT NULL DEFAULT '0',
    catch_up        interval NOT NULL DEFAULT '0',
    method          text COLLATE "C" NOT NULL DEFAULT 'POST',
    headers         jsonb NOT NULL DEFAULT '{}',
    body            jsonb,
    body_text       text,
    body_base64     text,
    timeout         interval,
    connect_timeout interval,
    max_attempts    integer NOT NULL DEFAULT 3,
    first_delay     interval NOT NULL DEFAULT '10 s',
    max_delay       interval NOT NULL DEFAULT '10 min',
    max_lateness    interval,
    success         text COLLATE "C" NOT NULL DEFAULT '200-299',
    sign            boolean NOT NULL DEFAULT true,
    keep_response   boolean NOT NULL DEFAULT false,
    labels          text[] COLLATE "C" NOT NULL DEFAULT '{}',
    description     text,
    paused          boolean NOT NULL DEFAULT false,
    paused_note     text,
    failing_since   timestamptz,
    verdict         text COLLATE "C",
    verdict_at      timestamptz,
    verdict_note    text,
    created_by      regrole NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT pg_catalog.now(),
    changed_at      timestamptz NOT NULL DEFAULT pg_catalog.now(),
    deleted_at      timestamptz,
    CONSTRAINT endpoint_pkey PRIMARY KEY (id),
    CONSTRAINT endpoint_one_per_uri UNIQUE (entity_name, entity_key, job),
    CONSTRAINT endpoint_uri_is_origin_and_path CHECK (uri OPERATOR(pg_catalog.=) (entity_name OPERATOR(pg_catalog.||) entity_key)),
    CONSTRAINT endpoint_method_is_known CHECK (method OPERATOR(pg_catalog.=) ANY ('{GET,HEAD,POST,PUT,PATCH,DELETE}')),
    CONSTRAINT endpoint_headers_are_texts CHECK (
        pg_catalog.jsonb_typeof(headers) OPERATOR(pg_catalog.=) 'object'
        AND NOT pg_catalog.jsonb_path_exists(headers, 'strict $.* ? (@.type() <> "string")', '{}', true)),
    CONSTRAINT endpoint_headers_are_64_kib CHECK (pg_catalog.octet_length(headers::pg_catalog.text) OPERATOR(pg_catalog.<=) 65536),
    CONSTRAINT endpoint_cron_is_1_kib CHECK (pg_catalog.octet_length(cron) OPERATOR(pg_catalog.<=) 1024),
    CONSTRAINT endpoint_zone_is_255_bytes CHECK (pg_catalog.octet_length(zone) OPERATOR(pg_catalog.<=) 255),
    -- One row with such a value, and no list that has it can be read. Lengths that are not here have bounds below.
    CONSTRAINT endpoint_lengths_are_finite CHECK (
        pg_catalog.isfinite(every) AND pg_catalog.isfinite(rounded_from) AND pg_catalog.isfinite(after)
        AND pg_catalog.isfinite(jitter) AND pg_catalog.isfinite(catch_up)),
    CONSTRAINT endpoint_times_are_finite CHECK (
        pg_catalog.isfinite(at) AND pg_catalog.isfinite(starts) AND pg_catalog.isfinite(ends)
        AND pg_catalog.isfinite(failing_since) AND pg_catalog.isfinite(verdict_at)
        AND pg_catalog.isfinite(created_at) AND pg_catalog.isfinite(changed_at) AND pg_catalog.isfinite(deleted_at)),
    CONSTRAINT endpoint_has_one_body CHECK (pg_catalog.num_nonnulls(body, body_text, body_base64) OPERATOR(pg_catalog.<=) 1),
    CONSTRAINT endpoint_body_is_256_kib CHECK (
        pg_catalog.octet_length(coalesce(body::pg_catalog.text, body_text, '')) OPERATOR(pg_catalog.<=) 262144
        AND pg_catalog.octet_length(coalesce(body_base64, '')) OPERATOR(pg_catalog.<=) 360000
        AND pg_catalog.octet_length(pg_catalog.decode(coalesce(body_base64, ''), 'base64')) OPERATOR(pg_catalog.<=) 262144),
    CONSTRAINT endpoint_timeout_is_100_ms_to_15_min CHECK (timeout OPERATOR(pg_catalog.>=) '100 ms' AND timeout OPERATOR(pg_catalog.<=) '15 min'),
    CONSTRAINT endpoint_connect_timeout_is_100_ms_to_15_min CHECK (connect_timeout OPERATOR(pg_catalog.>=) '100 ms' AND connect_timeout OPERATOR(pg_catalog.<=) '15 min'),
    CONSTRAINT endpoint_max_attempts_is_1_to_1000 CHECK (max_attempts OPERATOR(pg_catalog.>=) 1 AND max_attempts OPERATOR(pg_catalog.<=) 1000),
    CONSTRAINT endpoint_delays_are_1_s_to_1_day CHECK (first_delay OPERATOR(pg_catalog.>=) '1 s' AND first_delay OPERATOR(pg_catalog.<=) max_delay AND max_delay OPERATOR(pg_catalog.<=) '1 day'),
    CONSTRAINT endpoint_max_lateness_is_up_to_36525_days CHECK (max_lateness OPERATOR(pg_catalog.>) '0' AND max_lateness OPERATOR(pg_catalog.<=) '36525 days'),
    CONSTRAINT endpoint_success_is_a_list_of_statuses CHECK (
        success OPERATOR(pg_catalog.~) '^[1-5][0-9][0-9](-[1-5][0-9][0-9])?(,[1-5][0-9][0-9](-[1-5][0-9][0-9])?){0,19}$'),
    CONSTRAINT endpoint_has_at_most_20_labels CHECK (
        pg_catalog.cardinality(labels) OPERATOR(pg_catalog.<=) 20 AND pg_catalog.octet_length(labels::pg_catalog.text) OPERATOR(pg_catalog.<=) 2048),
    CONSTRAINT endpoint_description_is_1_kib CHECK (pg_catalog.octet_length(description) OPERATOR(pg_catalog.<=) 1024),
    CONSTRAINT endpoint_notes_are_1_kib CHECK (
        pg_catalog.octet_length(paused_note) OPERATOR(pg_catalog.<=) 1024 AND pg_catalog.octet_length(verdict_note) OPERATOR(pg_catalog.<=) 1024),
    CONSTRAINT endpoint_verdict_is_known CHECK (verdict OPERATOR(pg_catalog.=) ANY ('{hold,stop}'))
);

CREATE INDEX endpoint_failing_idx ON awty_http.endpoint (failing_since, id) WHERE failing_since IS NOT NULL;
CREATE INDEX endpoint_origin_idx ON awty_http.endpoint (entity_name, id);
CREATE INDEX endpoint_labels_idx ON awty_http.endpoint USING gin (labels) WHERE deleted_at IS NULL;
CREATE INDEX endpoint_deleted_idx ON awty_http.endpoint (deleted_at) WHERE deleted_at IS NOT NULL;

COMMENT ON TABLE awty_http.endpoint IS 'Which URIs are called when and how: one row for each URI of a tenant; a deleted one stays as long as its statistics';
COMMENT ON COLUMN awty_http.endpoint.id IS 'The same for the same tenant and URI for ever';
COMMENT ON COLUMN awty_http.endpoint.job IS 'The job of its checks: that of its tenant';
COMMENT ON COLUMN awty_http.endpoint.uri IS 'What is called, in its one spelling';
COMMENT ON COLUMN awty_http.endpoint.entity_name IS 'Scheme, host and port: the entity name of its checks, and its target';
COMMENT ON COLUMN awty_http.endpoint.entity_key IS 'Path and query: the entity key of its checks';
COMMENT ON COLUMN awty_http.endpoint.version IS 'One more with each change of the definition';
COMMENT ON COLUMN awty_http.endpoint.every IS 'How often, a multiple of a slot; NULL: see cron, or it is one call';
COMMENT ON COLUMN awty_http.endpoint.rounded_from IS 'What was asked for, where every was rounded up to a slot';
COMMENT ON COLUMN awty_http.endpoint.cron IS 'When, as a cron expression in zone';
COMMENT ON COLUMN awty_http.endpoint.zone IS 'Time zone of cron, or of an every of days and longer';
COMMENT ON COLUMN awty_http.endpoint.at IS 'When, of a single call';
COMMENT ON COLUMN awty_http.endpoint.after IS 'The wait that at was made of; NULL: none';
COMMENT ON COLUMN awty_http.endpoint.starts IS 'Not before';
COMMENT ON COLUMN awty_http.endpoint.ends IS 'Not after';
COMMENT ON COLUMN awty_http.endpoint.jitter IS 'Each slot is moved by a part of this, always the same one for this URI';
COMMENT ON COLUMN awty_http.endpoint.catch_up IS 'Slots that passed are called late, as far back as this';
COMMENT ON COLUMN awty_http.endpoint.method IS 'The HTTP method';
COMMENT ON COLUMN awty_http.endpoint.headers IS 'Headers that are sent, name by name; {{secret:NAME}} stands for what the gateway knows';
COMMENT ON COLUMN awty_http.endpoint.body IS 'Body as JSON';
COMMENT ON COLUMN awty_http.endpoint.body_text IS 'Body as text';
COMMENT ON COLUMN awty_http.endpoint.body_base64 IS 'Body as bytes in base64';
COMMENT ON COLUMN awty_http.endpoint.timeout IS 'Time of one call; NULL: as the gateway is configured';
COMMENT ON COLUMN awty_http.endpoint.connect_timeout IS 'Time of connecting; NULL: as the gateway has it';
COMMENT ON COLUMN awty_http.endpoint.max_attempts IS 'Calls of one occurrence, until it ends as failed';
COMMENT ON COLUMN awty_http.endpoint.first_delay IS 'Wait after the first failure, doubled each time';
COMMENT ON COLUMN awty_http.endpoint.max_delay IS 'The longest such wait';
COMMENT ON COLUMN awty_http.endpoint.max_lateness IS 'A call later than this is dropped; NULL: never';
COMMENT ON COLUMN awty_http.endpoint.success IS 'Which statuses are a success, such as 200-299,404';
COMMENT ON COLUMN awty_http.endpoint.sign IS 'Calls are signed';
COMMENT ON COLUMN awty_http.endpoint.keep_response IS 'Bodies of answers are kept also where the call went well';
COMMENT ON COLUMN awty_http.endpoint.labels IS 'Words to find it by';
COMMENT ON COLUMN awty_http.endpoint.description IS 'What it is for, in words';
COMMENT ON COLUMN awty_http.endpoint.paused IS 'A person has paused it';
COMMENT ON COLUMN awty_http.endpoint.paused_note IS 'Why, in that person''s words';
COMMENT ON COLUMN awty_http.endpoint.failing_since IS 'Since when no call has gone well; NULL: the last one did, or there was none';
COMMENT ON COLUMN awty_http.endpoint.verdict IS 'What the endpoint last asked for: hold, as it says that it is gone, or stop; NULL: nothing, or it was scheduled or resumed since';
COMMENT ON COLUMN awty_http.endpoint.verdict_at IS 'When it asked';
COMMENT ON COLUMN awty_http.endpoint.verdict_note IS 'Why, in the endpoint''s words';
COMMENT ON COLUMN awty_http.endpoint.created_by IS 'Who scheduled it first';
COMMENT ON COLUMN awty_http.endpoint.created_at IS 'When it was scheduled first, or again after it was deleted';
COMMENT ON COLUMN awty_http.endpoint.changed_at IS 'When its definition last changed';
COMMENT ON COLUMN awty_http.endpoint.deleted_at IS 'When it was unscheduled; NULL: it is there';

-- What nobody may change, and what an answer may. Runs with the rights of who writes.
CREATE FUNCTION awty_http_internal.endpoint_changes() RETURNS trigger
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of_answers CONSTANT text[] := '{failing_since,verdict,verdict_at,verdict_note}';
BEGIN
    IF pg_has_role((SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    IF (NEW.id, NEW.job, NEW.uri, NEW.entity_name, NEW.entity_key) IS DISTINCT FROM (OLD.id, OLD.job, OLD.uri, OLD.entity_name, OLD.entity_key)
       OR NEW.created_by IS DISTINCT FROM OLD.created_by AND (OLD.deleted_at IS NULL OR pg_get_userbyid(NEW.created_by) <> current_user) THEN
        PERFORM awty_http_internal.refuse('42501', 'the URI, job and creator of a schedule do not change',
            'SELECT awty_http.schedule(…); with the other URI.');
    END IF;
    IF NOT awty_http_internal.may_schedule(OLD.job) AND to_jsonb(NEW) - of_answers IS DISTINCT FROM to_jsonb(OLD) - of_answers THEN
        PERFORM awty_http_internal.refuse('42501', format('permission denied for the schedules of job "%s"', OLD.job),
            format('SELECT awty.allow(%L, %L);', OLD.job, current_user));
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION awty_http_internal.endpoint_changes() IS 'Refuses changes of an endpoint that the caller may not make';

CREATE TRIGGER endpoint_changes BEFORE UPDATE ON awty_http.endpoint
    FOR EACH ROW EXECUTE FUNCTION awty_http_internal.endpoint_changes();

-- To hold or cancel takes the right to schedule, which a gateway need not have: an endpoint that is gone, or asks to stop, is believed. So
-- this runs with the rights of the extension's owner, for the row's own check only.
CREATE FUNCTION awty_http_internal.endpoint_asks() RETURNS trigger
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> 'awty_http.endpoint'::regclass THEN
        PERFORM awty_http_internal.refuse('42501', 'this function is a trigger of awty_http.endpoint only',
            format('DROP TRIGGER %I ON %s;', TG_NAME, TG_RELID::regclass));
    END IF;
    IF NEW.verdict = 'stop' THEN
        PERFORM awty.cancel(NEW.entity_name, NEW.entity_key, NEW.job);
    ELSIF EXISTS (SELECT FROM awty.future_job AS f
                  WHERE (f.entity_name, f.entity_key, f.job) = (NEW.entity_name, NEW.entity_key, NEW.job)) THEN
        PERFORM awty.hold(NEW.entity_name, NEW.entity_key, NEW.job, NEW.verdict_note);
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION awty_http_internal.endpoint_asks() IS 'Does what an endpoint has asked for: holds or ends its schedule';

CREATE TRIGGER endpoint_asks AFTER UPDATE OF verdict ON awty_http.endpoint
    FOR EACH ROW WHEN (NEW.verdict IS NOT NULL)
    EXECUTE FUNCTION awty_http_internal.endpoint_asks();

-- What sends with a key have been: a key is remembered while the call is pending, and then as long as awty.attempt keeps it.
CREATE TABLE awty_http_internal.sent (
    job             text COLLATE "C" NOT NULL,
    key             text COLLATE "C" NOT NULL,
    check_id        bigint,
    content         bytea NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    sent_by         regrole NOT NULL,
    sent_at         timestamptz NOT NULL DEFAULT pg_catalog.now(),
    due_at          timestamptz NOT NULL,
    CONSTRAINT sent_pkey PRIMARY KEY (job, key),
    -- In one, because PostgreSQL reads each expression again for each send.
    CONSTRAINT sent_is_as_send_writes_it CHECK (
        pg_catalog.octet_length(key) OPERATOR(pg_catalog.>=) 1 AND pg_catalog.octet_length(key) OPERATOR(pg_catalog.<=) 255
        AND pg_catalog.octet_length(content) OPERATOR(pg_catalog.=) 32
        AND pg_catalog.octet_length(entity_name) OPERATOR(pg_catalog.<=) 255
        AND pg_catalog.octet_length(entity_key) OPERATOR(pg_catalog.<=) 1024
        AND pg_catalog.isfinite(sent_at) AND pg_catalog.isfinite(due_at))
);

COMMENT ON TABLE awty_http_internal.sent IS 'Keys of sends, so that each is sent once';
COMMENT ON COLUMN awty_http_internal.sent.job IS 'The job of its check';
COMMENT ON COLUMN awty_http_internal.sent.key IS 'The key';
COMMENT ON COLUMN awty_http_internal.sent.check_id IS 'Number of its check';
COMMENT ON COLUMN awty_http_internal.sent.content IS 'A hash of what was sent where';
COMMENT ON COLUMN awty_http_internal.sent.entity_name IS 'Entity name of its check';
COMMENT ON COLUMN awty_http_internal.sent.entity_key IS 'Entity key of its check: path and query, # and the key';
COMMENT ON COLUMN awty_http_internal.sent.sent_by IS 'Who sent it';
COMMENT ON COLUMN awty_http_internal.sent.sent_at IS 'When that was';
COMMENT ON COLUMN awty_http_internal.sent.due_at IS 'For when';
