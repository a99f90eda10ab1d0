-- Skips schedules that another session has locked, so that storing results never waits for a lock.
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
COMMENT ON FUNCTION awty_http_internal.asked(text, text, text) IS 'Holds (hold) or ends (stop) a schedule whose endpoint has answered that it is gone or wants no more calls; for roles that may claim';

CREATE FUNCTION awty_http_internal.asked_as(caller oid, id text, verdict text, note text) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    endpoint awty_http_internal.endpoint;
    the_job CONSTANT text := (SELECT e.job FROM awty_http_internal.endpoint AS e WHERE e.id = asked_as.id);
BEGIN
    IF NOT awty_http_internal.keep_right(asked_as.caller, the_job, 'claim') THEN
        RETURN;
    END IF;
    UPDATE awty_http_internal.endpoint AS e
    SET verdict = asked_as.verdict, verdict_at = clock_timestamp(), verdict_note = left(asked_as.note, 250)
    WHERE e.id = asked_as.id AND e.job = the_job AND e.deleted_at IS NULL AND asked_as.verdict = ANY ('{hold,stop}')
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
COMMENT ON FUNCTION awty_http_internal.answered(text, boolean, timestamptz) IS 'Updates failing_since after a call that succeeded or failed; for roles that may claim';

CREATE FUNCTION awty_http_internal.answered_as(caller oid, id text, ok boolean, at timestamptz) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE awty_http_internal.endpoint AS e
    SET failing_since = CASE WHEN NOT answered_as.ok THEN least(answered_as.at, clock_timestamp()) END
    WHERE e.id = answered_as.id AND e.deleted_at IS NULL AND (e.failing_since IS NOT NULL) = answered_as.ok
      AND isfinite(answered_as.at) AND awty_http_internal.has_right(answered_as.caller, e.job, 'claim')
$$;
COMMENT ON FUNCTION awty_http_internal.answered_as(oid, text, boolean, timestamptz) IS 'awty_http_internal.answered for a caller';

-- Skips contents that another session has locked, so that storing results never waits for a lock.
-- awty_http_internal.forget deletes them later.
CREATE FUNCTION awty_http_internal.sent_well(jobs text[], entity_names text[], entity_keys text[]) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.sent_well(text[], text[], text[]) IS 'Deletes the content of sends that have succeeded, because it is no longer needed; for roles that may claim';

CREATE FUNCTION awty_http_internal.sent_well_as(caller oid, jobs text[], entity_names text[], entity_keys text[]) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM awty_http_internal.content AS c USING (
        SELECT d.entity_name, d.entity_key, d.job
        FROM unnest(sent_well_as.jobs, sent_well_as.entity_names, sent_well_as.entity_keys) AS s (job, entity_name, entity_key)
        JOIN awty_http_internal.content AS d ON d.entity_name = s.entity_name AND d.entity_key = s.entity_key AND d.job = s.job
        WHERE strpos(d.entity_key, '#') > 0
          AND s.job = ANY (ARRAY(SELECT DISTINCT j FROM unnest(sent_well_as.jobs) AS j WHERE awty_http_internal.has_right(sent_well_as.caller, j, 'claim')))
          AND NOT EXISTS (SELECT FROM awty.future_job AS f
                          WHERE f.entity_name = s.entity_name AND f.entity_key = s.entity_key AND f.job = s.job)
        FOR UPDATE OF d SKIP LOCKED) AS sent
    WHERE c.entity_name = sent.entity_name AND c.entity_key = sent.entity_key AND c.job = sent.job
$$;
COMMENT ON FUNCTION awty_http_internal.sent_well_as(oid, text[], text[], text[]) IS 'awty_http_internal.sent_well for a caller';
