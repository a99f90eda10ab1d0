-- awty_http, part 4b: changes that the gateway makes to a schedule, for a person or with an answer.
--
-- Each function that a role may call has one beside it that knows the caller and asks for the caller's right.

CREATE FUNCTION awty_http_internal.lock(id text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.lock(text) IS 'The version of a schedule, which no other transaction changes before this one ends; NULL: it is not there; for roles that may schedule';

CREATE FUNCTION awty_http_internal.lock_as(caller oid, id text) RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.version FROM awty_http_internal.endpoint AS e
    WHERE e.id = lock_as.id AND e.deleted_at IS NULL AND awty_http_internal.has_right(lock_as.caller, e.job, 'schedule') FOR UPDATE
$$;
COMMENT ON FUNCTION awty_http_internal.lock_as(oid, text) IS 'awty_http_internal.lock for a caller';

-- A role that may only read a schedule gets an error. If it may not read the schedule either, the answer is the same as for an unknown id.
CREATE FUNCTION awty_http_internal.may_change(caller oid, id text) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job CONSTANT text := (SELECT e.job FROM awty_http_internal.endpoint AS e WHERE e.id = may_change.id AND e.deleted_at IS NULL);
BEGIN
    IF awty_http_internal.has_right(may_change.caller, job, 'schedule') THEN
        RETURN true;
    END IF;
    IF awty_http_internal.has_right(may_change.caller, job, 'read') THEN
        PERFORM awty_http_internal.refuse('42501', format('permission denied for the schedules of job "%s"', job),
            format('SELECT awty.allow(%L, %L);', job, pg_get_userbyid(may_change.caller)));
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION awty_http_internal.may_change(oid, text) IS 'Is that schedule there for that role to change?';

CREATE FUNCTION awty_http_internal.pause(id text, note text DEFAULT NULL) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.pause(text, text) IS 'Pauses a schedule, with a note that says why, or changes that note; returns whether the schedule exists';

CREATE FUNCTION awty_http_internal.pause_as(caller oid, id text, note text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
BEGIN
    IF NOT awty_http_internal.may_change(pause_as.caller, pause_as.id) THEN
        RETURN false;
    END IF;
    IF octet_length(pause_as.note) > 1024 THEN
        PERFORM awty_http_internal.refuse('54000', 'the note is longer than 1 KiB', 'Write the rest where the endpoint is described.');
    END IF;
    PERFORM awty_http_internal.check_encoding(pause_as.note);
    -- A note is no part of the definition.
    UPDATE awty_http_internal.endpoint AS e
    SET paused = true, paused_note = coalesce(pause_as.note, CASE WHEN e.paused THEN e.paused_note END),
        version = e.version + (NOT e.paused)::integer, changed_at = CASE WHEN e.paused THEN e.changed_at ELSE now() END
    WHERE e.id = pause_as.id AND e.deleted_at IS NULL AND (NOT e.paused OR e.paused_note IS DISTINCT FROM coalesce(pause_as.note, e.paused_note))
    RETURNING e.* INTO endpoint;
    -- A check that is held already gets the new note.
    IF FOUND AND awty_http_internal.is_pending(endpoint) THEN
        PERFORM awty.hold(endpoint.entity_name, endpoint.entity_key, endpoint.job, endpoint.paused_note);
    END IF;
    RETURN true;
END
$$;
COMMENT ON FUNCTION awty_http_internal.pause_as(oid, text, text) IS 'awty_http_internal.pause for a caller';

CREATE FUNCTION awty_http_internal.resume(id text) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.resume(text) IS 'Resumes a schedule that a person, an endpoint or awty has held, or that has ended early; returns whether the schedule exists';

CREATE FUNCTION awty_http_internal.resume_as(caller oid, id text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
BEGIN
    IF NOT awty_http_internal.may_change(resume_as.caller, resume_as.id) THEN
        RETURN false;
    END IF;
    UPDATE awty_http_internal.endpoint AS e
    SET paused = false, paused_note = NULL, verdict = NULL, verdict_at = NULL, verdict_note = NULL,
        version = e.version + e.paused::integer, changed_at = CASE WHEN e.paused THEN now() ELSE e.changed_at END
    WHERE e.id = resume_as.id AND e.deleted_at IS NULL RETURNING e.* INTO endpoint;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF (endpoint.every IS NOT NULL OR endpoint.cron IS NOT NULL) AND NOT awty_http_internal.is_over(endpoint)
       AND NOT awty_http_internal.is_pending(endpoint) THEN
        PERFORM awty_http_internal.plan_calls(endpoint, NULL);
    END IF;
    PERFORM awty_http_internal.hold_or_release(endpoint);
    RETURN true;
END
$$;
COMMENT ON FUNCTION awty_http_internal.resume_as(oid, text) IS 'awty_http_internal.resume for a caller';

-- What follows from answers is booked together with them. A row that another session has locked is left out, so that no answer waits for it.
CREATE FUNCTION awty_http_internal.lock_answered(ids text[]) RETURNS text[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.lock_answered(text[]) IS 'Locks schedules whose answers are about to be booked, and returns those that another session has locked; for roles that may claim';

CREATE FUNCTION awty_http_internal.lock_answered_as(caller oid, ids text[]) RETURNS text[]
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    free CONSTANT text[] := ARRAY(
        SELECT e.id FROM awty_http_internal.endpoint AS e
        WHERE e.id = ANY (lock_answered_as.ids) AND awty_http_internal.has_right(lock_answered_as.caller, e.job, 'claim')
        FOR UPDATE SKIP LOCKED);
BEGIN
    RETURN ARRAY(
        SELECT e.id FROM awty_http_internal.endpoint AS e
        WHERE e.id = ANY (lock_answered_as.ids) AND e.id <> ALL (free)
          AND awty_http_internal.has_right(lock_answered_as.caller, e.job, 'claim'));
END
$$;
COMMENT ON FUNCTION awty_http_internal.lock_answered_as(oid, text[]) IS 'awty_http_internal.lock_answered for a caller';

CREATE FUNCTION awty_http_internal.asked(id text, verdict text, note text) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.asked(text, text, text) IS 'An endpoint has answered that it is gone (hold) or wants no more calls (stop), which holds or ends its schedule; for roles that may claim';

CREATE FUNCTION awty_http_internal.asked_as(caller oid, id text, verdict text, note text) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
BEGIN
    UPDATE awty_http_internal.endpoint AS e
    SET verdict = asked_as.verdict, verdict_at = clock_timestamp(), verdict_note = left(asked_as.note, 250)
    WHERE e.id = asked_as.id AND e.deleted_at IS NULL AND asked_as.verdict = ANY ('{hold,stop}')
      AND awty_http_internal.has_right(asked_as.caller, e.job, 'claim')
    RETURNING e.* INTO endpoint;
    IF endpoint.verdict = 'stop' THEN
        PERFORM awty.cancel(endpoint.entity_name, endpoint.entity_key, endpoint.job);
    ELSIF FOUND AND awty_http_internal.is_pending(endpoint) THEN
        PERFORM awty.hold(endpoint.entity_name, endpoint.entity_key, endpoint.job, endpoint.verdict_note);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.asked_as(oid, text, text, text) IS 'awty_http_internal.asked for a caller';

CREATE FUNCTION awty_http_internal.answered(id text, ok boolean, at timestamptz) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.answered(text, boolean, timestamptz) IS 'A call went well or not: writes failing_since where that changes it; for roles that may claim';

CREATE FUNCTION awty_http_internal.answered_as(caller oid, id text, ok boolean, at timestamptz) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE awty_http_internal.endpoint AS e
    SET failing_since = CASE WHEN NOT answered_as.ok THEN least(answered_as.at, clock_timestamp()) END
    WHERE e.id = answered_as.id AND e.deleted_at IS NULL AND (e.failing_since IS NOT NULL) = answered_as.ok
      AND isfinite(answered_as.at) AND awty_http_internal.has_right(answered_as.caller, e.job, 'claim')
$$;
COMMENT ON FUNCTION awty_http_internal.answered_as(oid, text, boolean, timestamptz) IS 'awty_http_internal.answered for a caller';

-- The content of a send is not needed any more once the send went well.
CREATE FUNCTION awty_http_internal.sent_well(jobs text[], entity_names text[], entity_keys text[]) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.sent_well(text[], text[], text[]) IS 'Forgets the content of sends that have ended well; for roles that may claim';

CREATE FUNCTION awty_http_internal.sent_well_as(caller oid, jobs text[], entity_names text[], entity_keys text[]) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM awty_http_internal.content AS c
    USING unnest(sent_well_as.jobs, sent_well_as.entity_names, sent_well_as.entity_keys) AS s (job, entity_name, entity_key)
    WHERE c.entity_name = s.entity_name AND c.entity_key = s.entity_key AND c.job = s.job AND strpos(c.entity_key, '#') > 0
      AND s.job = ANY (ARRAY(SELECT DISTINCT j FROM unnest(sent_well_as.jobs) AS j WHERE awty_http_internal.has_right(sent_well_as.caller, j, 'claim')))
      AND NOT EXISTS (SELECT FROM awty.future_job AS f
                      WHERE f.entity_name = s.entity_name AND f.entity_key = s.entity_key AND f.job = s.job)
$$;
COMMENT ON FUNCTION awty_http_internal.sent_well_as(oid, text[], text[], text[]) IS 'awty_http_internal.sent_well for a caller';
