-- awty_http, part 4: schedules.

-- Of a definition, what is its own: without what awty_http keeps of it besides.
CREATE FUNCTION awty_http_internal.definition(endpoint awty_http.endpoint) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_jsonb(endpoint) - '{version,failing_since,verdict,verdict_at,verdict_note,paused_note,created_by,created_at,changed_at,deleted_at}'::text[]
        - CASE WHEN endpoint.after IS NULL THEN '' ELSE 'at' END
$$;
COMMENT ON FUNCTION awty_http_internal.definition(awty_http.endpoint) IS 'What a schedule says, without its state';

-- The part of it that says when.
CREATE FUNCTION awty_http_internal.plan(endpoint awty_http.endpoint) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_array(endpoint.every, endpoint.cron, endpoint.zone, endpoint.starts, endpoint.ends, endpoint.jitter,
        endpoint.catch_up, endpoint.after, CASE WHEN endpoint.after IS NULL THEN endpoint.at END)
$$;
COMMENT ON FUNCTION awty_http_internal.plan(awty_http.endpoint) IS 'The part of a schedule that says when';

CREATE FUNCTION awty_http_internal.is_pending(endpoint awty_http.endpoint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM awty.future_job AS f
        WHERE f.entity_name = endpoint.entity_name AND f.entity_key = endpoint.entity_key AND f.job = endpoint.job)
$$;
COMMENT ON FUNCTION awty_http_internal.is_pending(awty_http.endpoint) IS 'Is a check of this endpoint pending or held?';

-- As awty.occurrences(), for what is stored: without its zone there are none.
CREATE FUNCTION awty_http_internal.coming(every interval, cron text, zone text, after timestamptz, max integer, starts timestamptz)
    RETURNS SETOF timestamptz LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 10
BEGIN ATOMIC
    SELECT o.at FROM awty_internal.coming(coming.every, coming.cron, coming.zone, coming.after, coming.max, coming.starts) AS o (at);
END;
COMMENT ON FUNCTION awty_http_internal.coming(interval, text, text, timestamptz, integer, timestamptz) IS 'The next moments of a plan';

-- A single call that was made is not made again, nor does a repetition go on after its last occurrence. A wait begins anew each time.
CREATE FUNCTION awty_http_internal.is_over(endpoint awty_http.endpoint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN endpoint.every IS NULL AND endpoint.cron IS NULL THEN endpoint.after IS NULL
        ELSE endpoint.ends IS NOT NULL AND NOT EXISTS (
            SELECT FROM awty_http_internal.coming(endpoint.every, endpoint.cron, coalesce(endpoint.zone, current_setting('TimeZone')), now(), 1, endpoint.starts) AS o (at)
            WHERE o.at <= endpoint.ends) END
$$;
COMMENT ON FUNCTION awty_http_internal.is_over(awty_http.endpoint) IS 'Does nothing follow where no check of this endpoint is pending?';

-- Lets its checks stand still or go on, as the row says. What awty or an endpoint has held is released by a person, too.
CREATE FUNCTION awty_http_internal.hold_or_release(endpoint awty_http.endpoint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_held boolean := (SELECT f.held FROM awty.future_job AS f
        WHERE f.entity_name = endpoint.entity_name AND f.entity_key = endpoint.entity_key AND f.job = endpoint.job);
BEGIN
    IF endpoint.paused AND NOT is_held THEN
        PERFORM awty.hold(endpoint.entity_name, endpoint.entity_key, endpoint.job, endpoint.paused_note);
    ELSIF NOT endpoint.paused AND is_held THEN
        PERFORM awty.release(endpoint.entity_name, endpoint.entity_key, endpoint.job);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.hold_or_release(awty_http.endpoint) IS 'Lets the check of an endpoint stand still or go on';

-- Asks awty for the calls of a row.
CREATE FUNCTION awty_http_internal.plan_calls(endpoint awty_http.endpoint, repeated_before boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    repeats boolean := endpoint.every IS NOT NULL OR endpoint.cron IS NOT NULL;
BEGIN
    -- One kind does not replace the other.
    IF repeats <> repeated_before THEN
        PERFORM awty.cancel(endpoint.entity_name, endpoint.entity_key, endpoint.job);
    END IF;
    IF repeats THEN
        PERFORM awty.repeat(endpoint.job, endpoint.every, endpoint.cron, endpoint.zone, endpoint.entity_name, endpoint.entity_key,
            endpoint.starts, endpoint.ends, endpoint.jitter, endpoint.catch_up);
    ELSE
        PERFORM awty.schedule(endpoint.entity_name, endpoint.entity_key, endpoint.job, at => endpoint.at);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.plan_calls(awty_http.endpoint, boolean) IS 'Asks awty for the calls of an endpoint';

-- Each field as it is wanted, or one refusal that says which.
CREATE FUNCTION awty_http_internal.check_fields(endpoint awty_http.endpoint, retries jsonb, is_at boolean) RETURNS awty_http.endpoint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fields awty_http.endpoint := endpoint;
    unknown text;
    slot interval := current_setting('awty.slot')::interval;
    whole double precision;
    trouble text;
    hint text;
BEGIN
    IF num_nonnulls(fields.every, fields.cron, fields.after, nullif(is_at, false)) <> 1 THEN
        PERFORM awty_http_internal.refuse('22023', 'exactly one of "every", "cron", "at" and "after" must be given',
            format('SELECT awty_http.schedule(%L, every => ''15 min'');', fields.uri));
    END IF;
    IF jsonb_typeof(coalesce(retries, '{}')) <> 'object' THEN
        PERFORM awty_http_internal.refuse('22023', '"retries" must be an object',
            'retries => ''{"max_attempts": 3, "first_delay": "10 s", "max_delay": "10 min"}''');
    END IF;
    SELECT k INTO unknown FROM jsonb_object_keys(coalesce(retries, '{}')) AS k
    WHERE k <> ALL ('{max_attempts,first_delay,max_delay}'::text[]) ORDER BY k LIMIT 1;
    IF unknown IS NOT NULL THEN
        PERFORM awty_http_internal.refuse('22023', format('"retries" has no field "%s"', unknown),
            'retries => ''{"max_attempts": 3, "first_delay": "10 s", "max_delay": "10 min"}''');
    END IF;
    fields.max_attempts := coalesce((retries ->> 'max_attempts')::integer, 3);
    fields.first_delay := coalesce((retries ->> 'first_delay')::interval, '10 s');
    fields.max_delay := coalesce((retries ->> 'max_delay')::interval, greatest('10 min', fields.first_delay));
    -- Months and days are judged by awty.repeat(); what is shorter is rounded up to slots.
    IF fields.every > '0' AND date_part('day', fields.every) = 0 AND date_part('month', fields.every) = 0 AND date_part('year', fields.every) = 0 THEN
        whole := ceil(round((extract(epoch FROM fields.every) / extract(epoch FROM slot))::numeric, 9));
        IF fields.every <> slot * whole THEN
            fields.rounded_from := fields.every;
            fields.every := slot * whole;
        END IF;
    END IF;
    -- The smaller one of nothing and a minute is a minute.
    fields.jitter := coalesce(fields.jitter, CASE WHEN fields.every IS NOT NULL THEN least(fields.every, '1 min') END, '0');
    PERFORM awty_http_internal.check_headers(fields.headers);
    SELECT w.field || w.what, w.hint INTO trouble, hint FROM (VALUES
        (fields.method = ANY ('{GET,HEAD,POST,PUT,PATCH,DELETE}'::text[]), '"method"', ' is not known',
            'Use GET, HEAD, POST, PUT, PATCH or DELETE.'),
        (isfinite(fields.every) AND isfinite(fields.after) AND isfinite(fields.jitter) AND isfinite(fields.catch_up),
            '"every", "after", "jitter" and "catch_up"', ' must be finite', 'every => ''15 min'''),
        (isfinite(fields.at) AND isfinite(fields.starts) AND isfinite(fields.ends), '"at", "starts" and "ends"', ' must be finite',
            'Leave out "ends" where there is none.'),
        (octet_length(fields.cron) <= 1024, '"cron"', ' can have 1024 bytes at most', 'cron => ''0 9 * * *'''),
        (octet_length(fields.zone) <= 255, '"zone"', ' can have 255 bytes at most', 'zone => ''Europe/Berlin'''),
        (num_nonnulls(fields.body, fields.body_text, fields.body_base64) <= 1, 'a body',
            ' can be given once only', 'Use one of "body", "body_text" and "body_base64".'),
        (octet_length(coalesce(fields.body::text, fields.body_text, '')) <= 262144 AND
            octet_length(coalesce(fields.body_base64, '')) <= 360000 AND (octet_length(decode(fields.body_base64, 'base64')) <= 262144) IS NOT FALSE,
            'the body', ' is larger than 256 KiB', 'Send where the content is, and let the endpoint fetch it.'),
        (fields.timeout BETWEEN '100 ms' AND '15 min', '"timeout"', ' must be between 100 ms and 15 min', 'timeout => ''30 s'''),
        (fields.connect_timeout BETWEEN '100 ms' AND '15 min', '"connect_timeout"', ' must be between 100 ms and 15 min',
            'connect_timeout => ''5 s'''),
        (fields.max_attempts BETWEEN 1 AND 1000, '"max_attempts"', ' must be between 1 and 1000', 'retries => ''{"max_attempts": 3}'''),
        (fields.first_delay BETWEEN '1 s' AND fields.max_delay AND fields.max_delay <= '1 day', '"first_delay" and "max_delay"',
            ' must be between 1 s and 1 day, the shorter one first', 'retries => ''{"first_delay": "10 s", "max_delay": "10 min"}'''),
        (fields.max_lateness > '0' AND fields.max_lateness <= '36525 days', '"max_lateness"',
            ' must be greater than 0, and 36525 days at most', 'max_lateness => ''1 min'''),
        (fields.success ~ '^[1-5][0-9][0-9](-[1-5][0-9][0-9])?(,[1-5][0-9][0-9](-[1-5][0-9][0-9])?){0,19}$', '"success"',
            ' must be a list of statuses', 'success => ''200-299,404'''),
        (NOT EXISTS (SELECT FROM regexp_matches(fields.success, '([0-9]+)-([0-9]+)', 'g') AS r (ends) WHERE r.ends[1] > r.ends[2]), '"success"',
            ' has a range that ends before it begins', 'success => ''200-299,404'''),
        -- PostgreSQL reads other spellings, too; the gateway does not.
        (translate(encode(decode(fields.body_base64, 'base64'), 'base64'), chr(10), '')
            = translate(fields.body_base64, concat(' ', chr(9), chr(10), chr(13)), ''),
            '"body_base64"', ' must be base64 with all of its padding', 'body_base64 => encode(''\x00ff'', ''base64'')'),
        (cardinality(fields.labels) <= 20 AND octet_length(fields.labels::text) <= 2048, '"labels"',
            ' can be 20 at most, of 2 KiB together', 'labels => ''{billing, nightly}'''),
        (octet_length(fields.description) <= 1024, '"description"', ' is longer than 1 KiB', 'Write the rest where the endpoint is described.')
    ) AS w (is_good, field, what, hint) WHERE w.is_good IS FALSE LIMIT 1;
    IF FOUND THEN
        PERFORM awty_http_internal.refuse(CASE WHEN trouble ~ 'larger|longer' THEN '54000' ELSE '22023' END, trouble, hint);
    END IF;
    RETURN fields;
END
$$;
COMMENT ON FUNCTION awty_http_internal.check_fields(awty_http.endpoint, jsonb, boolean) IS 'Fills what follows from other fields of a schedule, and refuses what does not fit together';

CREATE FUNCTION awty_http.schedule(
    uri text,
    every interval DEFAULT NULL,
    cron text DEFAULT NULL,
    zone text DEFAULT NULL,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    starts timestamptz DEFAULT NULL,
    ends timestamptz DEFAULT NULL,
    jitter interval DEFAULT NULL,
    catch_up interval DEFAULT '0',
    method text DEFAULT 'POST',
    headers jsonb DEFAULT NULL,
    body jsonb DEFAULT NULL,
    body_text text DEFAULT NULL,
    body_base64 text DEFAULT NULL,
    timeout interval DEFAULT NULL,
    connect_timeout interval DEFAULT NULL,
    retries jsonb DEFAULT NULL,
    max_lateness interval DEFAULT NULL,
    success text DEFAULT '200-299',
    sign boolean DEFAULT true,
    keep_response boolean DEFAULT false,
    labels text[] DEFAULT '{}',
    description text DEFAULT NULL,
    paused boolean DEFAULT NULL,
    "replace" boolean DEFAULT true
) RETURNS text LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET row_security = on -- what awty.watch() calls runs with off
AS $$
DECLARE
    place record := awty_http_internal.place(schedule.uri);
    old awty_http.endpoint;
    new awty_http.endpoint;
    is_pending boolean;
    is_same boolean;
    stays boolean;
BEGIN
    new.job := awty_http_internal.job_to_schedule();
    new.uri := place.uri;
    new.entity_name := place.entity_name;
    new.entity_key := place.entity_key;
    new.id := awty_http_internal.id((SELECT t.number FROM awty_http.tenant AS t WHERE t.job = new.job), new.uri);
    new.every := schedule.every;
    new.cron := schedule.cron;
    new.zone := schedule.zone;
    new.at := coalesce(schedule.at, CASE WHEN schedule.after IS NOT NULL THEN now() + schedule.after END);
    new.after := schedule.after;
    new.starts := schedule.starts;
    new.ends := schedule.ends;
    new.jitter := schedule.jitter;
    new.catch_up := coalesce(schedule.catch_up, '0');
    new.method := upper(coalesce(schedule.method, 'POST'));
    new.headers := coalesce(schedule.headers, '{}');
    new.body := schedule.body;
    new.body_text := schedule.body_text;
    new.body_base64 := schedule.body_base64;
    new.timeout := schedule.timeout;
    new.connect_timeout := schedule.connect_timeout;
    new.max_lateness := schedule.max_lateness;
    new.success := coalesce(schedule.success, '200-299');
    new.sign := coalesce(schedule.sign, true);
    new.keep_response := coalesce(schedule.keep_response, false);
    new.labels := coalesce(schedule.labels, '{}');
    new.description := schedule.description;
    new.paused := coalesce(schedule.paused, false);
    new := awty_http_internal.check_fields(new, schedule.retries, schedule.at IS NOT NULL);
    new.version := 1;
    new.created_at := now();
    new.changed_at := now();
    new.created_by := awty_http_internal.me();
    INSERT INTO awty_http.endpoint SELECT (new).* ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM awty_http_internal.plan_calls(new, NULL);
        PERFORM awty_http_internal.hold_or_release(new);
        RETURN new.id;
    END IF;
    SELECT e.* INTO old FROM awty_http.endpoint AS e WHERE e.id = new.id FOR UPDATE;
    IF old.deleted_at IS NULL AND schedule.paused IS NULL THEN
        new.paused := old.paused;
    END IF;
    IF new.paused AND old.paused THEN
        new.paused_note := old.paused_note;
    END IF;
    is_pending := awty_http_internal.is_pending(old);
    is_same := old.deleted_at IS NULL AND awty_http_internal.definition(new) = awty_http_internal.definition(old);
    -- What is pending stays as it is planned, and so does what is over.
    stays := old.deleted_at IS NULL AND awty_http_internal.plan(new) = awty_http_internal.plan(old)
        AND (is_pending OR awty_http_internal.is_over(old));
    IF is_same AND stays THEN
        RETURN old.id;
    END IF;
    IF old.deleted_at IS NULL AND NOT is_same AND NOT coalesce(schedule."replace", true) THEN
        PERFORM awty_http_internal.refuse('42710', format('"%s" is scheduled already, in another way', new.uri),
            format('SELECT awty_http.schedule(%L, …, "replace" => true);', new.uri));
    END IF;
    IF stays THEN
        new.at := old.at;
    END IF;
    new.version := old.version + 1;
    new.failing_since := CASE WHEN old.deleted_at IS NULL THEN old.failing_since END;
    IF old.deleted_at IS NULL THEN
        new.created_at := old.created_at;
        new.created_by := old.created_by;
    END IF;
    UPDATE awty_http.endpoint AS e
    SET (version, every, rounded_from, cron, zone, at, after, starts, ends, jitter, catch_up, method, headers, body, body_text, body_base64,
        timeout, connect_timeout, max_attempts, first_delay, max_delay, max_lateness, success, sign, keep_response, labels, description,
        paused, paused_note, failing_since, verdict, verdict_at, verdict_note, created_by, created_at, changed_at, deleted_at)
        = ROW (new.version, new.every, new.rounded_from, new.cron, new.zone, new.at, new.after, new.starts, new.ends, new.jitter,
        new.catch_up, new.method, new.headers, new.body, new.body_text, new.body_base64, new.timeout, new.connect_timeout,
        new.max_attempts, new.first_delay, new.max_delay, new.max_lateness, new.success, new.sign, new.keep_response, new.labels,
        new.description, new.paused, new.paused_note, new.failing_since, new.verdict, new.verdict_at, new.verdict_note, new.created_by, new.created_at, new.changed_at, new.deleted_at)
    WHERE e.id = old.id;
    IF NOT stays THEN
        PERFORM awty_http_internal.plan_calls(new, CASE WHEN is_pending THEN old.every IS NOT NULL OR old.cron IS NOT NULL END);
    END IF;
    IF new.paused <> old.paused OR NOT stays THEN
        PERFORM awty_http_internal.hold_or_release(new);
    END IF;
    RETURN new.id;
END
$$;

COMMENT ON FUNCTION awty_http.schedule(text, interval, text, text, timestamptz, interval, timestamptz, timestamptz, interval, interval,
    text, jsonb, jsonb, text, text, interval, interval, jsonb, interval, text, boolean, boolean, text[], text, boolean, boolean)
    IS 'Has a URI called again and again, or once; the same definition again changes nothing but to go on where calls have ended, another one replaces it; returns the id of the schedule';

CREATE FUNCTION awty_http.unschedule(uri text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = on AS $$
DECLARE
    place record := awty_http_internal.place(unschedule.uri);
    the_job text := awty_http_internal.job_to_schedule();
BEGIN
    UPDATE awty_http.endpoint AS e SET deleted_at = now(), failing_since = NULL, paused = false, paused_note = NULL
    WHERE (e.entity_name, e.entity_key, e.job) = (place.entity_name, place.entity_key, the_job) AND e.deleted_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM awty.cancel(place.entity_name, place.entity_key, the_job);
    RETURN true;
END
$$;

COMMENT ON FUNCTION awty_http.unschedule(text) IS 'Ends the schedule of a URI, whose history stays; returns whether there was one';

-- What the gateway calls for a person. A change that begins with this is made to the version that it returns.
CREATE FUNCTION awty_http_internal.lock(id text) RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.version FROM awty_http.endpoint AS e WHERE e.id = lock.id AND e.deleted_at IS NULL FOR UPDATE
$$;
COMMENT ON FUNCTION awty_http_internal.lock(text) IS 'The version of a schedule, which nobody else changes before this transaction ends; NULL: it is not there; for roles that may schedule';

CREATE FUNCTION awty_http_internal.pause(id text, note text DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http.endpoint;
BEGIN
    IF octet_length(pause.note) > 1024 THEN
        PERFORM awty_http_internal.refuse('54000', 'the note is longer than 1 KiB', 'Write the rest where the endpoint is described.');
    END IF;
    -- A note is no part of the definition.
    UPDATE awty_http.endpoint AS e
    SET paused = true, paused_note = coalesce(pause.note, CASE WHEN e.paused THEN e.paused_note END),
        version = e.version + (NOT e.paused)::integer, changed_at = CASE WHEN e.paused THEN e.changed_at ELSE now() END
    WHERE e.id = pause.id AND e.deleted_at IS NULL AND (NOT e.paused OR e.paused_note IS DISTINCT FROM coalesce(pause.note, e.paused_note))
    RETURNING e.* INTO endpoint;
    IF FOUND THEN
        -- Also where it is held already, for the note.
        IF awty_http_internal.is_pending(endpoint) THEN
            PERFORM awty.hold(endpoint.entity_name, endpoint.entity_key, endpoint.job, endpoint.paused_note);
        END IF;
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM awty_http.endpoint AS e WHERE e.id = pause.id AND e.deleted_at IS NULL);
END
$$;
COMMENT ON FUNCTION awty_http_internal.pause(text, text) IS 'Lets a schedule stand still, with a note that says why, or gives one that does another note; returns whether it is there';

CREATE FUNCTION awty_http_internal.resume(id text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http.endpoint;
BEGIN
    UPDATE awty_http.endpoint AS e
    SET paused = false, paused_note = NULL, verdict = NULL, verdict_at = NULL, verdict_note = NULL,
        version = e.version + e.paused::integer, changed_at = CASE WHEN e.paused THEN now() ELSE e.changed_at END
    WHERE e.id = resume.id AND e.deleted_at IS NULL RETURNING e.* INTO endpoint;
    IF FOUND THEN
        IF (endpoint.every IS NOT NULL OR endpoint.cron IS NOT NULL) AND NOT awty_http_internal.is_over(endpoint)
           AND NOT awty_http_internal.is_pending(endpoint) THEN
            PERFORM awty_http_internal.plan_calls(endpoint, NULL);
        END IF;
        PERFORM awty_http_internal.hold_or_release(endpoint);
        RETURN true;
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION awty_http_internal.resume(text) IS 'Lets a schedule go on that a person, an endpoint or awty has held, or that has ended before its time; returns whether it is there';

-- What the gateway writes with the answer of a call. The right to claim is enough.
CREATE FUNCTION awty_http_internal.asked(id text, verdict text, note text) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    UPDATE awty_http.endpoint AS e SET verdict = asked.verdict, verdict_at = clock_timestamp(), verdict_note = left(asked.note, 250)
    WHERE e.id = asked.id AND e.deleted_at IS NULL
$$;
COMMENT ON FUNCTION awty_http_internal.asked(text, text, text) IS 'An endpoint has answered that it is gone (hold) or wants no more calls (stop); for roles that may claim';

CREATE FUNCTION awty_http_internal.answered(id text, ok boolean, at timestamptz) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    UPDATE awty_http.endpoint AS e SET failing_since = CASE WHEN NOT answered.ok THEN answered.at END
    WHERE e.id = answered.id AND e.deleted_at IS NULL AND (e.failing_since IS NOT NULL) = answered.ok
$$;
COMMENT ON FUNCTION awty_http_internal.answered(text, boolean, timestamptz) IS 'A call went well or not: writes failing_since where that changes it; for roles that may claim';
