-- awty, part 10: looking closer. All of it reads with the caller's rights, and through the row security of what it reads.

-- As awty.occurrences(), for what is stored: its zone may be gone, and then there are none.
CREATE FUNCTION awty_internal.coming(every interval, cron text, zone text, after timestamptz, max integer, starts timestamptz)
    RETURNS SETOF timestamptz LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'coming_wrapper';

COMMENT ON FUNCTION awty_internal.coming(interval, text, text, timestamptz, integer, timestamptz) IS 'The next moments of a stored plan; none where PostgreSQL does not know its time zone';

CREATE FUNCTION awty_internal.knows_zone(zone text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'knows_zone_wrapper';

COMMENT ON FUNCTION awty_internal.knows_zone(text) IS 'Does PostgreSQL know this time zone?';

-- The repetitions that do not go on.
CREATE VIEW awty_internal.standstill WITH (security_invoker = true) AS
SELECT r.job, r.entity_name, r.entity_key, r.next_check_at,
    CASE WHEN known.is_known THEN 'its next check is about to be made'
        ELSE format('its time zone "%s" is not known to PostgreSQL any more', r.zone) END AS why,
    CASE WHEN NOT known.is_known THEN
        format('SELECT awty.repeat(%L, %s, zone => …, entity_name => %L, entity_key => %L);', r.job,
            coalesce('every => ' || quote_literal(r.every::text), 'cron => ' || quote_literal(r.cron)),
            r.entity_name, r.entity_key) END AS mend
FROM awty.repetition AS r
CROSS JOIN LATERAL (
    SELECT awty_internal.knows_zone(r.zone) AS is_known
) AS known
WHERE r.next_check_at IS NULL OR NOT known.is_known;

COMMENT ON VIEW awty_internal.standstill IS 'Repetitions without a check, or whose pending check is the last one, because their time zone is gone; as far as the caller may read them';

-- JIT would compile for seconds what runs for milliseconds. work_mem: a session with less would write temporary files, which
-- temp_file_limit may forbid.
CREATE FUNCTION awty.explain(entity_name text, entity_key text)
RETURNS TABLE (at timestamptz, job text, event text, detail text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off SET work_mem = '4MB'
BEGIN ATOMIC
    WITH past AS (
        SELECT h.id, h.job, h.scheduled_at, h.scheduled_by, h.first_check_at, h.started_at, h.finished_at, h.run_time, h.lateness, h.attempts,
            h.outcome, h.sqlstate, h.message
        FROM awty.future_job_history AS h
        WHERE h.entity_name = explain.entity_name AND h.entity_key = explain.entity_key
        ORDER BY h.finished_at DESC LIMIT 100
    ), pending AS (
        SELECT f.id, f.job, f.scheduled_at, f.scheduled_by, f.first_check_at, f.next_check_at, f.attempt, s.rank, s.why, s.mend, u.runs, u.started_at, u.lateness, u.sqlstate, u.message
        FROM awty.future_job AS f
        JOIN awty_internal.standing AS s ON s.id = f.id
        LEFT JOIN awty_internal.check_stat AS u ON u.check_id = f.id
        WHERE f.entity_name = explain.entity_name AND f.entity_key = explain.entity_key
    )
    SELECT e.at, e.job, e.event, e.detail
    FROM (
        SELECT h.scheduled_at AS at, h.id, 1 AS step, h.job, 'scheduled' AS event,
            format('by %s, for %s', h.scheduled_by, h.first_check_at) AS detail
        FROM past AS h
        UNION ALL
        SELECT h.started_at, h.id, 2, h.job, 'ran',
            format('%s ms in %s runs, the last one started %s s late',
                round((EXTRACT(epoch FROM h.run_time) * 1000)::numeric, 1), h.attempts,
                round(EXTRACT(epoch FROM h.lateness), 2))
        FROM past AS h WHERE h.started_at IS NOT NULL
        UNION ALL
        SELECT h.finished_at, h.id, 3, h.job, h.outcome, concat_ws(': ', h.sqlstate, h.message)
        FROM past AS h
        UNION ALL
        SELECT f.scheduled_at, f.id, 4, f.job, 'scheduled',
            format('by %s, for %s', f.scheduled_by, f.first_check_at)
        FROM pending AS f
        UNION ALL
        SELECT f.started_at, f.id, 5, f.job, 'ran',
            CASE WHEN f.attempt = 0
                THEN format('run %s, started %s s late, asked for %s', f.runs,
                    round(EXTRACT(epoch FROM f.lateness), 2), f.next_check_at)
                ELSE format('run %s failed: %s: %s; attempt %s is at %s', f.runs, f.sqlstate, f.message,
                    f.attempt + 1, f.next_check_at)
            END
        FROM pending AS f WHERE f.started_at IS NOT NULL
        UNION ALL
        SELECT f.next_check_at, f.id, 6, f.job, CASE f.rank WHEN 6 THEN 'next' WHEN 8 THEN 'running' ELSE 'waiting' END,
            concat_ws('; ', f.why, f.mend)
        FROM pending AS f
        UNION ALL
        SELECT a.at, a.id, 2, a.job, 'leased', concat('to ', a.worker, ', attempt ', a.attempt, CASE WHEN a.ok THEN ', completed' ELSE ', failed' END,
            ' at ', a.ended_at, ': ' || a.sqlstate, ': ' || a.message)
        FROM (SELECT t.leased_at AS at, t.id, t.job, t.worker, t.attempt, t.ok, t.ended_at, t.sqlstate, t.message FROM awty.attempt AS t
              WHERE t.id = ANY (ARRAY(SELECT p.id FROM past AS p UNION ALL SELECT f.id FROM pending AS f))
              ORDER BY t.ended_at DESC LIMIT 100) AS a
        UNION ALL
        SELECT o.at, 9223372036854775807, 7, r.job, 'next',
            format('repeated %s, %s', coalesce('every ' || r.every::text,
                'at ' || r.cron), r.zone)
        FROM awty.repetition AS r
        CROSS JOIN LATERAL awty_internal.coming(r.every, r.cron, r.zone, greatest(r.next_check_at, clock_timestamp()), 3, r.starts) AS o (at)
        WHERE r.entity_name = explain.entity_name AND r.entity_key = explain.entity_key
            AND r.next_check_at IS NOT NULL AND (r.ends IS NULL OR o.at <= r.ends)
        UNION ALL
        SELECT a.raised_at, a.id, 8, a.rule, 'waiting',
            format('late since %s: alert %s of level %s is open%s', a.due_at, a.id, a.level,
                ', escalated at ' || a.escalated_at::text)
        FROM awty.alert AS a
        WHERE a.entity_name = explain.entity_name AND a.entity_key = explain.entity_key
            AND a.cleared_at IS NULL
        UNION ALL
        SELECT clock_timestamp(), 9223372036854775807, 6, s.job, 'waiting', concat_ws('; ', s.why, s.mend)
        FROM awty_internal.standstill AS s
        WHERE s.entity_name = explain.entity_name AND s.entity_key = explain.entity_key
    ) AS e
    ORDER BY e.at, e.id, e.step;
END;

COMMENT ON FUNCTION awty.explain(text, text) IS 'What became of an entity''s checks, what is pending, and why it does not run, and its open alerts: past, now and future in the order of time; at most the last hundred ends';

-- For a key of another type than text. Names awty.key(), because callers may name nothing of awty_internal.
CREATE FUNCTION awty.explain(entity_name text, entity_key anynonarray)
RETURNS TABLE (at timestamptz, job text, event text, detail text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT e.at, e.job, e.event, e.detail
    FROM awty.explain($1, awty.key($2)::jsonb ->> 0) AS e
$$;

COMMENT ON FUNCTION awty.explain(text, anynonarray) IS 'The same for a key of another type than text';

-- The newest ends of the jobs that the caller may read. Bounded, so that it costs the same with a long history.
CREATE VIEW awty_internal.recent AS
SELECT h.job, h.outcome, h.sqlstate, h.message, h.run_time, h.attempts, j.timeout
FROM (SELECT n.job, n.role, n.outcome, n.sqlstate, n.message, n.run_time, n.attempts
      FROM awty.future_job_history AS n ORDER BY n.finished_at DESC LIMIT 10000) AS h
JOIN awty.job AS j ON j.job = h.job AND j.role::oid = h.role::oid
WHERE j.job = ANY (SELECT r.job FROM awty_internal.readable() AS r);

COMMENT ON VIEW awty_internal.recent IS 'The last ten thousand ends, as far as the caller may read them';

-- Whether a day has no partition of its own, and no more of it.
CREATE VIEW awty_internal.stray AS
SELECT EXISTS (SELECT FROM awty_internal.future_job_history_default) AS is_there;

COMMENT ON VIEW awty_internal.stray IS 'Are there rows in the default partition of the history?';

CREATE FUNCTION awty.doctor() RETURNS TABLE (level text, finding text, detail text, fix text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off SET work_mem = '4MB'
BEGIN ATOMIC
    WITH here AS (
        SELECT * FROM awty_internal.here
    ), overdue AS (
        SELECT o.job, o.paused, o.next_check_at, s.rank, s.why, s.mend, j.slot, j.paused_at, j.paused_by, j.paused_note, j.function_name
        FROM awty_internal.overdue AS o
        JOIN awty_internal.standing AS s ON s.id = o.id
        JOIN awty.job AS j ON j.job = o.job
    ), unable AS (
        SELECT j.job, CASE WHEN j.function_name IS NOT NULL THEN awty_internal.cannot_connect(j.role) END AS connect, awty_internal.cannot_call(j.job) AS call,
            pg_get_userbyid(j.role) AS role
        FROM awty.job AS j ORDER BY j.job LIMIT 1000
    )
    SELECT 'error', 'nothing runs in this database', here.why, here.mend
    FROM here WHERE here.why IS NOT NULL AND (EXISTS (SELECT FROM awty.job) OR here.database_held)
    UNION ALL
    SELECT 'notice', 'a failover may repeat runs', 'commits wait for synchronous standbys, and runs do not, because awty.synchronous_commit is off',
        'ALTER SYSTEM SET awty.synchronous_commit = on; SELECT pg_reload_conf();'
    FROM here
    WHERE here.preloaded AND current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') <> ALL ('{off,local}')
        AND NOT current_setting('awty.synchronous_commit')::bool
        AND EXISTS (SELECT FROM awty.job AS j WHERE j.function_name IS NOT NULL)
    UNION ALL
    SELECT 'warning', format('job "%s" is paused while checks are due', o.job),
        concat('paused', awty_internal.since(o.paused_at, o.paused_by, o.paused_note)),
        format('SELECT awty.resume(%L);', o.job)
    FROM overdue AS o WHERE o.paused
    UNION ALL
    SELECT 'warning', format('checks of job "%s" are held', held.job),
        format('%s that are due; one of them is of "%s" "%s"', held.n, held.entity_name, held.entity_key),
        format('SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE held AND job = %L;', held.job)
    FROM (SELECT f.job, count(*) AS n, min(f.entity_name) AS entity_name, min(f.entity_key) AS entity_key
          FROM awty.future_job AS f
          WHERE f.held AND f.next_check_at <= clock_timestamp() GROUP BY f.job) AS held
    UNION ALL
    SELECT 'error', format('role "%s" of job "%s" cannot run it', u.role, u.job),
        CASE u.connect WHEN 'gone' THEN 'the role does not exist any more' WHEN 'no login' THEN 'it has no LOGIN' ELSE 'it has no CONNECT on this database' END,
        CASE u.connect WHEN 'gone' THEN format('SELECT awty.alter(%L, run_as => …);', u.job)
            WHEN 'no login' THEN format('ALTER ROLE %I LOGIN;', u.role)
            ELSE format('GRANT CONNECT ON DATABASE %I TO %I;', current_database(), u.role) END
    FROM unable AS u WHERE u.connect IS NOT NULL
    UNION ALL
    SELECT 'error', format('the function of job "%s" cannot be called', u.job), u.call[1], u.call[2]
    FROM unable AS u WHERE u.call IS NOT NULL AND u.connect IS NULL
    UNION ALL
    SELECT 'warning', format('no worker outside claims checks of job "%s"', o.job),
        format('%s; the oldest has been due since %s', o.why, o.next_check_at),
        format('SELECT * FROM awty.claim(ARRAY[%L], ''by hand'');', o.job)
    FROM overdue AS o WHERE NOT o.paused AND o.function_name IS NULL AND o.rank = 10
    UNION ALL
    SELECT 'warning', format('%s of job "%s" %s', CASE WHEN t.target IS NULL THEN 'every target' ELSE format('target "%s"', t.target) END,
            t.job, CASE t.state WHEN 'blocked' THEN 'is blocked' ELSE 'has failed too often' END),
        t.why, CASE WHEN t.target IS NULL THEN format('SELECT awty.alter_target(%L, blocked_until => ''-infinity'');', t.job)
            ELSE format('SELECT awty.alter_target(%L, %L, blocked_until => ''-infinity'');', t.job, t.target) END
    FROM (SELECT * FROM awty.target AS b WHERE b.state = ANY ('{blocked,open}') ORDER BY b.job, b.target LIMIT 20) AS t
    UNION ALL
    SELECT 'warning', format('checks of job "%s" are more than ten slots late', o.job),
        format('the oldest has been due since %s; %s', o.next_check_at, o.why), coalesce(o.mend, 'SELECT * FROM awty.status;')
    FROM overdue AS o CROSS JOIN here
    WHERE NOT o.paused AND o.next_check_at + (coalesce(o.slot, here.slot) * 10::float8) < clock_timestamp()
    UNION ALL
    SELECT 'warning', 'something keeps checks from running', here.trouble, 'SELECT last_error, last_error_at FROM awty.status; and see the server log'
    FROM here WHERE here.trouble IS NOT NULL
    UNION ALL
    SELECT 'warning', format('the repetition of job "%s" for "%s" "%s" %s', s.job, s.entity_name, s.entity_key,
            CASE WHEN s.next_check_at IS NULL THEN 'has no check' ELSE 'does not go on after its pending check' END),
        s.why, coalesce(s.mend, 'SELECT * FROM awty.status;')
    FROM awty_internal.standstill AS s
    UNION ALL
    SELECT 'error', format('rule "%s" has stopped', r.rule), unable.why[1], unable.why[2]
    FROM awty.rule AS r CROSS JOIN LATERAL (SELECT awty_internal.cannot_watch(r.rule) AS why) AS unable
    WHERE unable.why IS NOT NULL
    UNION ALL
    SELECT 'error', format('rule "%s" has stopped', r.rule), 'its table is gone', format('SELECT awty.unwatch(%L);', r.rule)
    FROM awty.rule AS r
    WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = r.relation::oid)
    UNION ALL
    -- As a schema without data leaves them.
    SELECT 'error', format('rule "%s" does not exist', lost.rule), format('its triggers are on table %s', lost.relation),
        'Call awty.watch() again.'
    FROM (SELECT DISTINCT t.tgrelid::regclass AS relation,
              convert_from(rtrim(t.tgargs, '\x00'::bytea), getdatabaseencoding()) AS rule
          FROM pg_trigger AS t
          WHERE t.tgfoid = 'awty_internal.row_changed()'::regprocedure::oid
            AND t.tgnargs = 1
            AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.tgrelid
                        AND pg_has_role(c.relowner, 'MEMBER'))) AS lost
    WHERE NOT awty_internal.is_rule(lost.rule)
    UNION ALL
    SELECT 'warning', format('job "%s" fails with the same error again and again', same.job),
        format('%s times of late: %s: %s', same.n, same.sqlstate, same.message),
        format('SELECT * FROM awty.future_job_history WHERE job = %L AND sqlstate = %L ORDER BY finished_at DESC LIMIT 20;', same.job, same.sqlstate)
    FROM (SELECT r.job, r.sqlstate, r.message, count(*) AS n FROM awty_internal.recent AS r
          WHERE r.sqlstate IS NOT NULL GROUP BY r.job, r.sqlstate, r.message) AS same WHERE same.n >= 10
    UNION ALL
    SELECT 'warning', 'the history of some days has no partition of its own', 'those days stay in awty_internal.future_job_history_default until they are too old',
        'make sure that no transaction keeps awty.future_job_history locked for long'
    FROM awty_internal.stray AS stray WHERE stray.is_there
    UNION ALL
    SELECT 'warning', 'an old snapshot keeps vacuum from its work',
        format('process %s has had one since %s', a.pid, a.xact_start), format('SELECT pg_terminate_backend(%s);', a.pid)
    FROM pg_stat_activity AS a
    WHERE a.backend_xmin IS NOT NULL AND a.datname = current_database()
        AND a.xact_start < (clock_timestamp() - '1 hour'::interval)
        AND EXISTS (SELECT FROM awty.future_job)
    UNION ALL
    SELECT 'warning', 'a prepared transaction keeps vacuum from its work',
        format('"%s" has been prepared since %s', p.gid, p.prepared), format('COMMIT PREPARED %L; or ROLLBACK PREPARED', p.gid)
    FROM pg_prepared_xacts AS p
    WHERE p.database = current_database()
        AND p.prepared < (clock_timestamp() - '1 hour'::interval)
        AND EXISTS (SELECT FROM awty.future_job)
    UNION ALL
    SELECT 'warning', format('runs of job "%s" take nearly all of their timeout', slow.job),
        format('%s of late took 90 %% of %s or more', slow.n, slow.timeout), format('SELECT awty.alter(%L, timeout => %L);', slow.job, slow.timeout * 2::float8)
    FROM (SELECT r.job, r.timeout, count(*) AS n FROM awty_internal.recent AS r
          WHERE r.attempts > 0
            AND r.run_time >= (r.timeout * (0.9::float8 * r.attempts::float8))
          GROUP BY r.job, r.timeout) AS slow WHERE slow.n >= 10
    UNION ALL
    SELECT 'notice', format('the history of job "%s" is nearly all "replaced"', noisy.job),
        format('%s of the last %s ends', noisy.replaced, noisy.n), format('SELECT awty.alter(%L, keep_history => ''ran'');', noisy.job)
    FROM (SELECT r.job, count(*) AS n, count(*) FILTER (WHERE r.outcome = 'replaced') AS replaced
          FROM awty_internal.recent AS r GROUP BY r.job) AS noisy
    WHERE noisy.n >= 10 AND noisy.replaced * 10 >= (noisy.n * 9);
END;

COMMENT ON FUNCTION awty.doctor() IS 'What is wrong in this database, as far as the caller may read it, each finding with what mends it; no rows: nothing';

CREATE FUNCTION awty_internal.as_max_lag(max_lag interval) RETURNS interval
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'as_max_lag_wrapper';

COMMENT ON FUNCTION awty_internal.as_max_lag(interval) IS 'The argument of awty.healthy(), or an error if it is less than 5 seconds';

CREATE FUNCTION awty.healthy(max_lag interval DEFAULT '1 minute') RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off
    RETURN (SELECT s.why IS NULL AND s.lag <= most.lag
                AND coalesce(s.heartbeat > (clock_timestamp() - most.lag), false)
            FROM (SELECT awty_internal.as_max_lag(max_lag) AS lag) AS most CROSS JOIN awty.status AS s
            WHERE most.lag IS NOT NULL);

COMMENT ON FUNCTION awty.healthy(interval) IS 'Does all run, with no check overdue by more than that? For a monitoring system; at least 5 seconds';
