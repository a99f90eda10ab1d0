CREATE FUNCTION awty_http_internal.definition(endpoint awty_http_internal.endpoint) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_jsonb(endpoint) - '{version,failing_since,verdict,verdict_at,verdict_note,paused_note,created_by,created_at,changed_at,deleted_at}'::text[]
        - CASE WHEN endpoint.after IS NULL THEN '' ELSE 'at' END
$$;
COMMENT ON FUNCTION awty_http_internal.definition(awty_http_internal.endpoint) IS 'Definition of a schedule, without its state';

CREATE FUNCTION awty_http_internal.plan(endpoint awty_http_internal.endpoint) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_array(endpoint.every, endpoint.cron, endpoint.zone, endpoint.starts, endpoint.ends, endpoint.jitter,
        endpoint.catch_up, endpoint.after, CASE WHEN endpoint.after IS NULL THEN endpoint.at END)
$$;
COMMENT ON FUNCTION awty_http_internal.plan(awty_http_internal.endpoint) IS 'Part of a schedule that says when the URI is called';

CREATE FUNCTION awty_http_internal.is_pending(endpoint awty_http_internal.endpoint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM awty.future_job AS f
        WHERE f.entity_name = endpoint.entity_name AND f.entity_key = endpoint.entity_key AND f.job = endpoint.job)
$$;
COMMENT ON FUNCTION awty_http_internal.is_pending(awty_http_internal.endpoint) IS 'Is a check of this endpoint pending or held?';

CREATE FUNCTION awty_http_internal.coming(every interval, cron text, zone text, after timestamptz, max integer, starts timestamptz, until timestamptz DEFAULT NULL)
    RETURNS SETOF timestamptz LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 10
BEGIN ATOMIC
    SELECT o.at FROM awty_internal.coming(coming.every, coming.cron, coming.zone, coming.after, coming.max, coming.starts, NULL, coming.until) AS o (at);
END;
COMMENT ON FUNCTION awty_http_internal.coming(interval, text, text, timestamptz, integer, timestamptz, timestamptz) IS 'The next occurrences of a plan, until a time';

-- Takes a calendar only from a repetition that the caller may read, because a calendar of another role is private.
CREATE FUNCTION awty_http_internal.next_repetition(job text, entity_name text, entity_key text, after timestamptz) RETURNS SETOF timestamptz
    LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
    SELECT o.at FROM awty.repetition AS r
    CROSS JOIN LATERAL awty_internal.coming(r.every, r.cron, r.zone, next_repetition.after, 1, r.starts, r.calendar) AS o (at)
    WHERE r.job = next_repetition.job AND r.entity_name = next_repetition.entity_name AND r.entity_key = next_repetition.entity_key;
END;
COMMENT ON FUNCTION awty_http_internal.next_repetition(text, text, text, timestamptz) IS 'The next occurrence of a repetition of awty.repeat() after a time';

-- A schedule with "after" is never over, because a call of awty_http.schedule() with the same definition starts the
-- wait again.
CREATE FUNCTION awty_http_internal.is_over(endpoint awty_http_internal.endpoint) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN endpoint.every IS NULL AND endpoint.cron IS NULL THEN endpoint.after IS NULL
        ELSE endpoint.ends IS NOT NULL AND NOT EXISTS (
            SELECT FROM awty_http_internal.coming(endpoint.every, endpoint.cron, coalesce(endpoint.zone, current_setting('TimeZone')), now(), 1, endpoint.starts) AS o (at)
            WHERE o.at <= endpoint.ends) END
$$;
COMMENT ON FUNCTION awty_http_internal.is_over(awty_http_internal.endpoint) IS 'Does no call follow if no check of this endpoint is pending?';

-- awty.hold() stores the current role, which is the owner of the extension in functions that are SECURITY DEFINER.
CREATE FUNCTION awty_http_internal.hold(endpoint awty_http_internal.endpoint, held_by oid) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM awty.hold(endpoint.entity_name, endpoint.entity_key, endpoint.job, endpoint.paused_note);
    UPDATE awty_internal.hold AS h SET held_by = hold.held_by::regrole
    FROM awty.future_job AS f
    WHERE f.entity_name = endpoint.entity_name AND f.entity_key = endpoint.entity_key AND f.job = endpoint.job AND h.check_id = f.id;
END
$$;
COMMENT ON FUNCTION awty_http_internal.hold(awty_http_internal.endpoint, oid) IS 'Holds the check of a paused endpoint in the name of the role that paused it';

-- Resuming a schedule also releases a check that awty or the endpoint has held.
CREATE FUNCTION awty_http_internal.hold_or_release(endpoint awty_http_internal.endpoint, caller oid) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_held boolean := (SELECT f.held FROM awty.future_job AS f
        WHERE f.entity_name = endpoint.entity_name AND f.entity_key = endpoint.entity_key AND f.job = endpoint.job);
BEGIN
    IF endpoint.paused AND NOT is_held THEN
        PERFORM awty_http_internal.hold(endpoint, caller);
    ELSIF NOT endpoint.paused AND is_held THEN
        PERFORM awty.release(endpoint.entity_name, endpoint.entity_key, endpoint.job);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.hold_or_release(awty_http_internal.endpoint, oid) IS 'Holds or releases the check of an endpoint, as its column paused says';

CREATE FUNCTION awty_http_internal.jitter(endpoint awty_http_internal.endpoint) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    -- Without CASE, a schedule without "every" would get a jitter of one minute, because least() ignores NULL.
    SELECT coalesce(endpoint.jitter, CASE WHEN endpoint.every IS NOT NULL THEN least(endpoint.every, '1 min') END, '0')
$$;
COMMENT ON FUNCTION awty_http_internal.jitter(awty_http_internal.endpoint) IS 'Upper bound of the delay of each call: the given one or the default';

CREATE FUNCTION awty_http_internal.plan_calls(endpoint awty_http_internal.endpoint, repeated_before boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    repeats boolean := endpoint.every IS NOT NULL OR endpoint.cron IS NOT NULL;
BEGIN
    -- Cancels the old check, because awty.repeat() replaces no single check, and awty.schedule() replaces no
    -- repetition.
    IF repeats <> repeated_before THEN
        PERFORM awty.cancel(endpoint.entity_name, endpoint.entity_key, endpoint.job);
    END IF;
    IF repeats THEN
        PERFORM awty.repeat(endpoint.job, endpoint.every, endpoint.cron, endpoint.zone, endpoint.entity_name, endpoint.entity_key,
            endpoint.starts, endpoint.ends, awty_http_internal.jitter(endpoint), endpoint.catch_up);
    ELSE
        PERFORM awty.schedule(endpoint.entity_name, endpoint.entity_key, endpoint.job, at => endpoint.at);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.plan_calls(awty_http_internal.endpoint, boolean) IS 'Schedules the calls of an endpoint in awty';

CREATE FUNCTION awty_http_internal.check_fields(endpoint awty_http_internal.endpoint, is_at boolean) RETURNS awty_http_internal.endpoint
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fields awty_http_internal.endpoint := endpoint;
    slot interval := current_setting('awty.slot')::interval;
    whole double precision;
BEGIN
    IF num_nonnulls(fields.every, fields.cron, fields.after, nullif(is_at, false)) <> 1 THEN
        PERFORM awty_http_internal.refuse('22023', 'exactly one of "every", "cron", "at" and "after" must be given',
            format('SELECT awty_http.schedule(%L, every => ''15 min'');', fields.uri));
    END IF;
    -- Rounds short intervals up to whole slots, and leaves intervals of days and months to awty.repeat().
    IF fields.every > '0' AND date_part('day', fields.every) = 0 AND date_part('month', fields.every) = 0 AND date_part('year', fields.every) = 0 THEN
        whole := ceil(round((extract(epoch FROM fields.every) / extract(epoch FROM slot))::numeric, 9));
        IF fields.every <> slot * whole THEN
            fields.rounded_from := fields.every;
            fields.every := slot * whole;
        END IF;
    END IF;
    PERFORM awty_http_internal.refuse_first(ARRAY[
        ROW (isfinite(fields.every) AND isfinite(fields.after) AND isfinite(fields.jitter) AND isfinite(fields.catch_up),
            '"every", "after", "jitter" and "catch_up" must be finite', 'every => ''15 min'''),
        ROW (num_nonnulls(fields.every, fields.cron) = 1
                OR fields.jitter BETWEEN '0' AND '366 days' AND fields.catch_up BETWEEN '0' AND '366 days',
            '"jitter" and "catch_up" can be 0 to 366 days', 'jitter => ''10 s'''),
        ROW (isfinite(fields.at) AND isfinite(fields.starts) AND isfinite(fields.ends), '"at", "starts" and "ends" must be finite',
            'Leave out "starts" or "ends" for no limit.'),
        ROW (octet_length(fields.cron) <= 1024, '"cron" can have at most 1024 bytes', 'cron => ''0 9 * * *'''),
        ROW (octet_length(fields.zone) <= 255, '"zone" can have at most 255 bytes', 'zone => ''Europe/Berlin'''),
        ROW (cardinality(fields.labels) <= 20 AND octet_length(fields.labels::text) <= 2048, '"labels" can have at most 20 elements and 2 KiB',
            'labels => ''{billing, nightly}'''),
        ROW (octet_length(fields.description) <= 1024, '"description" is longer than 1 KiB', 'Shorten the description.')
    ]::awty_http_internal.rule[]);
    RETURN fields;
END
$$;
COMMENT ON FUNCTION awty_http_internal.check_fields(awty_http_internal.endpoint, boolean) IS 'Fills in fields of a plan that follow from others, and raises an error if the fields contradict each other';

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
) RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http.schedule(text, interval, text, text, timestamptz, interval, timestamptz, timestamptz, interval, interval,
    text, jsonb, jsonb, text, text, interval, interval, jsonb, interval, text, boolean, boolean, text[], text, boolean, boolean)
    IS 'Schedules calls of a URI, repeated or single, and returns the id of the schedule. Sending the same definition again changes nothing, except that an ended schedule starts again; another definition replaces the old one';

CREATE FUNCTION awty_http_internal.schedule_as(
    caller oid,
    uri text,
    every interval,
    cron text,
    zone text,
    at timestamptz,
    after interval,
    starts timestamptz,
    ends timestamptz,
    jitter interval,
    catch_up interval,
    method text,
    headers jsonb,
    body jsonb,
    body_text text,
    body_base64 text,
    timeout interval,
    connect_timeout interval,
    retries jsonb,
    max_lateness interval,
    success text,
    sign boolean,
    keep_response boolean,
    labels text[],
    description text,
    paused boolean,
    "replace" boolean
) RETURNS text LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place record := awty_http_internal.place(schedule_as.uri);
    old awty_http_internal.endpoint;
    new awty_http_internal.endpoint;
    how record;
    had jsonb;
    is_pending boolean;
    is_same boolean;
    stays boolean;
BEGIN
    new.job := awty_http_internal.keep_job_to_schedule(schedule_as.caller);
    new.uri := place.uri;
    new.entity_name := place.entity_name;
    new.entity_key := place.entity_key;
    new.id := awty_http_internal.id((SELECT t.number FROM awty_http.tenant AS t WHERE t.job = new.job), new.uri);
    new.every := schedule_as.every;
    new.cron := schedule_as.cron;
    new.zone := schedule_as.zone;
    new.at := coalesce(schedule_as.at, CASE WHEN schedule_as.after IS NOT NULL THEN now() + schedule_as.after END);
    new.after := schedule_as.after;
    new.starts := schedule_as.starts;
    new.ends := schedule_as.ends;
    new.jitter := schedule_as.jitter;
    new.catch_up := coalesce(schedule_as.catch_up, '0');
    new.labels := coalesce(schedule_as.labels, '{}');
    new.description := schedule_as.description;
    new.paused := coalesce(schedule_as.paused, false);
    new := awty_http_internal.check_fields(new, schedule_as.at IS NOT NULL);
    how := awty_http_internal.request(schedule_as.method, schedule_as.headers, schedule_as.body, schedule_as.body_text, schedule_as.body_base64,
        schedule_as.timeout, schedule_as.connect_timeout, schedule_as.retries, schedule_as.max_lateness, schedule_as.success, schedule_as.sign,
        schedule_as.keep_response);
    PERFORM awty_http_internal.check_encoding(new.cron, new.zone, new.labels::text, new.description, how.content::text);
    new.request := how.request;
    new.version := 1;
    new.created_at := now();
    new.changed_at := now();
    new.created_by := schedule_as.caller;
    INSERT INTO awty_http_internal.endpoint SELECT (new).* ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM awty_http_internal.set_content(new.job, new.entity_name, new.entity_key, how.content);
        PERFORM awty_http_internal.plan_calls(new, NULL);
        PERFORM awty_http_internal.hold_or_release(new, schedule_as.caller);
        PERFORM awty_http_internal.say_blocked(new);
        RETURN new.id;
    END IF;
    SELECT e.* INTO old FROM awty_http_internal.endpoint AS e WHERE e.id = new.id FOR UPDATE;
    IF old.deleted_at IS NULL AND schedule_as.paused IS NULL THEN
        new.paused := old.paused;
    END IF;
    IF new.paused AND old.paused THEN
        new.paused_note := old.paused_note;
    END IF;
    is_pending := awty_http_internal.is_pending(old);
    SELECT c.content INTO had FROM awty_http_internal.content AS c
    WHERE c.entity_name = old.entity_name AND c.entity_key = old.entity_key AND c.job = old.job;
    is_same := old.deleted_at IS NULL AND had = how.content AND awty_http_internal.definition(new) = awty_http_internal.definition(old);
    -- If the plan is unchanged, a pending check keeps its time, and an ended schedule stays ended.
    stays := old.deleted_at IS NULL AND awty_http_internal.plan(new) = awty_http_internal.plan(old)
        AND (is_pending OR awty_http_internal.is_over(old));
    IF is_same AND stays THEN
        RETURN old.id;
    END IF;
    IF old.deleted_at IS NULL AND NOT is_same AND NOT coalesce(schedule_as."replace", true) THEN
        PERFORM awty_http_internal.refuse('42710', format('"%s" is already scheduled with another definition', new.uri),
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
    UPDATE awty_http_internal.endpoint AS e
    SET (version, every, rounded_from, cron, zone, at, after, starts, ends, jitter, catch_up, request, labels, description,
        paused, paused_note, failing_since, verdict, verdict_at, verdict_note, created_by, created_at, changed_at, deleted_at)
        = ROW (new.version, new.every, new.rounded_from, new.cron, new.zone, new.at, new.after, new.starts, new.ends, new.jitter,
        new.catch_up, new.request, new.labels, new.description, new.paused, new.paused_note, new.failing_since, new.verdict,
        new.verdict_at, new.verdict_note, new.created_by, new.created_at, new.changed_at, new.deleted_at)
    WHERE e.id = old.id;
    PERFORM awty_http_internal.set_content(old.job, old.entity_name, old.entity_key, how.content);
    IF NOT stays THEN
        PERFORM awty_http_internal.plan_calls(new, CASE WHEN is_pending THEN old.every IS NOT NULL OR old.cron IS NOT NULL END);
    END IF;
    IF new.paused <> old.paused OR NOT stays THEN
        PERFORM awty_http_internal.hold_or_release(new, schedule_as.caller);
    END IF;
    PERFORM awty_http_internal.say_blocked(new);
    RETURN new.id;
END
$$;
COMMENT ON FUNCTION awty_http_internal.schedule_as(oid, text, interval, text, text, timestamptz, interval, timestamptz, timestamptz, interval, interval,
    text, jsonb, jsonb, text, text, interval, interval, jsonb, interval, text, boolean, boolean, text[], text, boolean, boolean)
    IS 'awty_http.schedule for a caller';

CREATE FUNCTION awty_http.unschedule(uri text) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http.unschedule(text) IS 'Ends the schedule of a URI and keeps its history; returns whether the URI was scheduled';

CREATE FUNCTION awty_http_internal.unschedule_as(caller oid, uri text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    place record := awty_http_internal.place(unschedule_as.uri);
    the_job text := awty_http_internal.keep_job_to_schedule(unschedule_as.caller);
BEGIN
    UPDATE awty_http_internal.endpoint AS e SET deleted_at = now(), failing_since = NULL, paused = false, paused_note = NULL
    WHERE (e.entity_name, e.entity_key, e.job) = (place.entity_name, place.entity_key, the_job) AND e.deleted_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM awty.cancel(place.entity_name, place.entity_key, the_job);
    RETURN true;
END
$$;
COMMENT ON FUNCTION awty_http_internal.unschedule_as(oid, text) IS 'awty_http.unschedule for a caller';
