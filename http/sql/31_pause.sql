-- Each public function calls a function with the suffix _as, which checks the rights of the role in its argument
-- "caller".

CREATE FUNCTION awty_http_internal.lock(id text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.lock(text) IS 'Locks a schedule until the end of the transaction and returns its version; NULL: it does not exist; for roles that may schedule';

CREATE FUNCTION awty_http_internal.lock_as(caller oid, id text) RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.version FROM awty_http_internal.endpoint AS e
    WHERE e.id = lock_as.id AND e.deleted_at IS NULL AND awty_http_internal.has_right(lock_as.caller, e.job, 'schedule') FOR UPDATE
$$;
COMMENT ON FUNCTION awty_http_internal.lock_as(oid, text) IS 'awty_http_internal.lock for a caller';

-- A schedule that the role may not read counts as unknown.
CREATE FUNCTION awty_http_internal.may_change(caller oid, id text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job CONSTANT text := (SELECT e.job FROM awty_http_internal.endpoint AS e WHERE e.id = may_change.id AND e.deleted_at IS NULL);
BEGIN
    IF awty_http_internal.keep_right(may_change.caller, job, 'schedule') THEN
        RETURN true;
    END IF;
    IF awty_http_internal.has_right(may_change.caller, job, 'read') THEN
        PERFORM awty_http_internal.refuse('42501', format('permission denied for the schedules of job "%s"', job),
            format('SELECT awty.allow(%L, %L);', job, pg_get_userbyid(may_change.caller)));
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION awty_http_internal.may_change(oid, text) IS 'Does that schedule exist, and may that role change it? Also keeps the name of the job from other roles until the transaction ends';

CREATE FUNCTION awty_http_internal.pause(id text, note text DEFAULT NULL) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.pause(text, text) IS 'Pauses a schedule, with a note that says why, or changes the note; returns whether the schedule exists';

CREATE FUNCTION awty_http_internal.pause_as(caller oid, id text, note text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
BEGIN
    IF NOT awty_http_internal.may_change(pause_as.caller, pause_as.id) THEN
        RETURN false;
    END IF;
    IF octet_length(pause_as.note) > 1024 THEN
        PERFORM awty_http_internal.refuse('54000', 'the note is longer than 1 KiB', 'Shorten the note.');
    END IF;
    PERFORM awty_http_internal.check_encoding(pause_as.note);
    -- A change of the note does not increase the version, because the note is not part of the definition.
    UPDATE awty_http_internal.endpoint AS e
    SET paused = true, paused_note = coalesce(pause_as.note, CASE WHEN e.paused THEN e.paused_note END),
        version = e.version + (NOT e.paused)::integer, changed_at = CASE WHEN e.paused THEN e.changed_at ELSE now() END
    WHERE e.id = pause_as.id AND e.deleted_at IS NULL AND (NOT e.paused OR e.paused_note IS DISTINCT FROM coalesce(pause_as.note, e.paused_note))
    RETURNING e.* INTO endpoint;
    -- awty.hold() also gives the new note to a check that is already held.
    IF FOUND AND awty_http_internal.is_pending(endpoint) THEN
        PERFORM awty_http_internal.hold(endpoint, pause_as.caller);
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
    PERFORM awty_http_internal.hold_or_release(endpoint, resume_as.caller);
    RETURN true;
END
$$;
COMMENT ON FUNCTION awty_http_internal.resume_as(oid, text) IS 'awty_http_internal.resume for a caller';
