-- Deletes the hours of whole days, so that a day's sum never lacks hours.
CREATE FUNCTION awty_http_internal.forget_hours_of(ids text[], at timestamptz) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET jit = off AS $$
    DELETE FROM awty_http.stat AS s
    WHERE s.id = ANY (forget_hours_of.ids) AND s.width = '1 hour'
      AND s.bucket < date_trunc('day', forget_hours_of.at - '90 days'::interval);
$$;
COMMENT ON FUNCTION awty_http_internal.forget_hours_of(text[], timestamptz) IS 'Deletes the hours of some endpoints that are too old';

-- Skips rows that another session has locked, so that this function never waits.
CREATE FUNCTION awty_http_internal.forget(at timestamptz) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET jit = off AS $$
    -- The roll-up deletes old hours only of endpoints that still exist. This statement also deletes old hours of jobs
    -- and of deleted endpoints.
    DELETE FROM awty_http.stat AS s WHERE s.width = '1 hour' AND s.bucket < date_trunc('day', forget.at - '90 days'::interval);
    DELETE FROM awty_http.stat AS s WHERE s.width = '24 hours' AND s.bucket < forget.at - '1827 days'::interval;
    DELETE FROM awty_http_internal.endpoint AS e USING (
        SELECT d.id FROM awty_http_internal.endpoint AS d
        WHERE d.deleted_at < forget.at - '90 days'::interval AND NOT EXISTS (SELECT FROM awty_http.stat AS s WHERE s.id = d.id)
        FOR UPDATE SKIP LOCKED) AS old
    WHERE e.id = old.id;
    -- Keeps the content of a failed send while the history has the send, because a client can send the content again.
    DELETE FROM awty_http_internal.content AS c USING (
        SELECT d.entity_name, d.entity_key, d.job FROM awty_http_internal.content AS d
        WHERE NOT EXISTS (SELECT FROM awty_http_internal.endpoint AS e
                          WHERE e.entity_name = d.entity_name AND e.entity_key = d.entity_key AND e.job = d.job)
          AND NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.entity_name = d.entity_name AND f.entity_key = d.entity_key AND f.job = d.job)
          AND NOT EXISTS (SELECT FROM awty.future_job_history AS h
                          WHERE h.entity_name = d.entity_name AND h.entity_key = d.entity_key AND h.job = d.job)
        FOR UPDATE SKIP LOCKED) AS old
    WHERE c.entity_name = old.entity_name AND c.entity_key = old.entity_key AND c.job = old.job;
    DELETE FROM awty_http_internal.sent AS s USING (
        SELECT d.job, d.sent_by, d.key FROM awty_http_internal.sent AS d
        WHERE greatest(d.due_at, d.sent_at) < forget.at - coalesce(nullif(current_setting('awty.attempt_retention')::interval, '0'), '0') - '1 hour'::interval
          AND NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.id = d.check_id)
          -- Keeps the key of an old send while awty.attempt still has the call that was sent. The gateway may have
          -- retried this call long after the send.
          AND NOT EXISTS (SELECT FROM awty.attempt AS a WHERE a.id = d.check_id)
        FOR UPDATE SKIP LOCKED) AS old
    WHERE s.job = old.job AND s.sent_by = old.sent_by AND s.key = old.key;
    DELETE FROM awty_http.token AS t USING (
        SELECT d.id FROM awty_http.token AS d WHERE d.expires_at < forget.at - '90 days'::interval FOR UPDATE SKIP LOCKED) AS old
    WHERE t.id = old.id;
$$;
COMMENT ON FUNCTION awty_http_internal.forget(timestamptz) IS 'Deletes what is too old: hours, days, deleted schedules, contents, keys of sends, tokens';
