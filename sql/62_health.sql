-- awty.doctor() shows only what the caller may read, because row security applies to it. awty.healthy() is false for all
-- roles while checks of any role are overdue.

-- Reads only the last 10000 rows, so that a long history costs no more than a short one.
CREATE VIEW awty_internal.recent AS
SELECT h.job, h.outcome, h.run_time, h.attempts, j.timeout
FROM (SELECT n.job, n.role, n.outcome, n.run_time, n.attempts
      FROM awty.future_job_history AS n ORDER BY n.finished_at DESC LIMIT 10000) AS h
JOIN awty.job AS j ON j.job = h.job AND j.role::oid = h.role::oid
WHERE j.job = ANY (SELECT r.job FROM awty_internal.readable() AS r);

COMMENT ON VIEW awty_internal.recent IS 'The last ten thousand finished checks, as far as the caller may read them';

CREATE VIEW awty_internal.stray AS
SELECT EXISTS (SELECT FROM awty_internal.future_job_history_default) AS is_there;

COMMENT ON VIEW awty_internal.stray IS 'Does the default partition of the history have rows?';

-- The statements are dynamic, because most databases lack the objects of Citus.
CREATE FUNCTION awty_internal.citus_findings() RETURNS TABLE (level text, finding text, detail text, fix text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NULL THEN
        RETURN;
    END IF;
    -- Finds nodes that lack jobs or GRANTs because they joined the cluster later. Omits the jobs of rules, because these
    -- belong to the shards of one node.
    RETURN QUERY EXECUTE $citus$
        WITH answer AS MATERIALIZED (
            SELECT n.nodename, n.nodeport, n.shouldhaveshards, r.success, r.result
            FROM run_command_on_all_nodes($node$
                SELECT coalesce(json_agg(json_build_object('job', j.job, 'role', j.role,
                                                           'is_allowed', has_schema_privilege(j.role::oid, 'awty', 'USAGE'))), '[]')
                FROM awty.job AS j WHERE NOT EXISTS (SELECT FROM awty.rule AS r WHERE r.rule = j.job)$node$) AS r
            JOIN pg_dist_node AS n ON n.nodeid = r.nodeid
        ), job AS (
            SELECT a.nodename, a.nodeport, a.shouldhaveshards, j.job, j.role, j.is_allowed
            FROM answer AS a CROSS JOIN LATERAL json_to_recordset(CASE WHEN a.success THEN a.result::json ELSE '[]' END)
                AS j (job text, role text, is_allowed boolean)
        )
        SELECT 'error', format('node %s:%s has no job "%s"', a.nodename, a.nodeport, wanted.job),
            'other nodes have this job, and checks of rows on this node need it',
            'SELECT * FROM run_command_on_all_nodes($$SELECT awty.register(…)$$);'
        FROM answer AS a
        CROSS JOIN (SELECT DISTINCT j.job FROM job AS j WHERE j.shouldhaveshards) AS wanted
        WHERE a.success AND a.shouldhaveshards
            AND NOT EXISTS (SELECT FROM job AS j WHERE (j.nodename, j.nodeport, j.job) = (a.nodename, a.nodeport, wanted.job))
        UNION ALL
        SELECT DISTINCT 'error', format('role %s may not use awty on node %s:%s', j.role, j.nodename, j.nodeport),
            'Citus does not send the GRANT to other nodes',
            format('SELECT * FROM run_command_on_all_nodes(%L);', format('GRANT USAGE ON SCHEMA awty TO %s', j.role))
        FROM job AS j WHERE NOT j.is_allowed
        UNION ALL
        SELECT 'error', format('node %s:%s does not answer', a.nodename, a.nodeport), a.result,
            'SELECT * FROM run_command_on_all_nodes(''SELECT 1'');'
        FROM answer AS a WHERE NOT a.success
    $citus$;
    RETURN QUERY EXECUTE $citus$
        SELECT 'warning', format('trigger "%s" of %s schedules %s', t.tgname, t.tgrelid::regclass,
                CASE WHEN d.is_reference THEN 'on every node' ELSE 'for the name of a shard' END),
            CASE WHEN d.is_reference THEN 'each node has a copy of a reference table, so each row gets a check on each node'
                ELSE 'on a shard, TG_TABLE_NAME is a name such as orders_102008' END,
            CASE WHEN d.is_reference THEN format('DROP TRIGGER %I ON %s;', t.tgname, t.tgrelid::regclass)
                ELSE format('CREATE OR REPLACE FUNCTION %s … with the name of the table as a literal', t.tgfoid::regproc) END
        FROM (SELECT p.logicalrelid, p.partmethod = 'n' AND p.repmodel = 't' AS is_reference FROM pg_dist_partition AS p) AS d
        JOIN pg_trigger AS t ON t.tgrelid = d.logicalrelid AND NOT t.tgisinternal
        JOIN pg_proc AS f ON f.oid = t.tgfoid
        WHERE f.prosrc ~* '\mawty\.schedule' AND (d.is_reference OR f.prosrc ~* '\mTG_(TABLE_NAME|RELNAME)\M')
    $citus$;
END
$function$;

COMMENT ON FUNCTION awty_internal.citus_findings() IS 'Asks all nodes of a Citus cluster, and returns rows of awty.doctor(). Returns no row without Citus';

CREATE FUNCTION awty.doctor() RETURNS TABLE (level text, finding text, detail text, fix text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off SET work_mem = '4MB'
BEGIN ATOMIC
    WITH here AS (
        SELECT * FROM awty_internal.here
    ), overdue AS (
        -- Sorts the caller's own jobs first, so that jobs of other roles cannot fill the list.
        SELECT o.id, o.job, o.paused, o.next_check_at, s.rank, s.why, s.mend, o.slot, o.paused_at, o.paused_by, o.paused_note, o.function_name
        FROM (SELECT d.id, d.job, d.paused, d.next_check_at, j.slot, j.paused_at, j.paused_by, j.paused_note, j.function_name
              FROM awty.job AS j JOIN awty_internal.first_overdue AS d ON d.job = j.job
              ORDER BY awty_internal.can_become(j.role) DESC, d.paused, d.next_check_at LIMIT 20) AS o
        JOIN awty_internal.standing AS s ON s.id = o.id
    ), unable AS (
        SELECT j.job, CASE WHEN j.function_name IS NOT NULL THEN awty_internal.cannot_connect(j.role) END AS connect, awty_internal.cannot_call(j.job) AS call,
            pg_get_userbyid(j.role) AS role
        FROM awty.job AS j ORDER BY awty_internal.can_become(j.role) DESC, j.job LIMIT 1000
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
    -- The finding is only a notice, because PostgreSQL's default settings also allow too few processes. If all jobs
    -- have the same role, the finding is omitted, because parallel queries of that role then delay only its own jobs.
    SELECT 'notice', 'parallel queries may take all processes that awty needs',
        format('max_worker_processes is %s; parallel queries and logical replication may take %s, and awty needs %s',
            process.there, process.others, process.own),
        format('ALTER SYSTEM SET max_worker_processes = %s; -- then restart the server', process.others + process.own)
    FROM here CROSS JOIN LATERAL (
        SELECT current_setting('max_worker_processes')::int AS there, current_setting('awty.max_workers', true)::int + 3 AS own,
            current_setting('max_parallel_workers')::int + CASE WHEN apply.most > 0 THEN apply.most + 1 ELSE 0 END AS others
        FROM (SELECT current_setting('max_logical_replication_workers')::int AS most) AS apply) AS process
    WHERE here.preloaded AND process.there < process.others + process.own
        AND (SELECT min(j.role::oid) <> max(j.role::oid) FROM awty.job AS j WHERE j.function_name IS NOT NULL)
    UNION ALL
    SELECT 'warning', format('job "%s" is paused while checks are due', o.job),
        concat('paused', awty_internal.since(o.paused_at, o.paused_by, NULL, o.paused_note)),
        format('SELECT awty.resume(%L);', o.job)
    FROM overdue AS o WHERE o.paused
    UNION ALL
    SELECT 'warning', format('checks of job "%s" are held', held.job),
        format('%s due, for example the check of "%s" "%s"', held.n, held.entity_name, held.entity_key),
        format('SELECT awty.release(entity_name, entity_key, job) FROM awty.future_job WHERE held AND job = %L;', held.job)
    FROM (SELECT f.job, count(*) AS n, min(f.entity_name) AS entity_name, min(f.entity_key) AS entity_key
          FROM awty.future_job AS f
          WHERE f.held AND f.next_check_at <= clock_timestamp()
            AND NOT EXISTS (SELECT FROM awty_internal.hold AS h WHERE h.check_id = f.id AND (h.silent OR h.held_until IS NOT NULL))
          GROUP BY f.job) AS held
    UNION ALL
    SELECT 'error', format('role "%s" of job "%s" cannot run it', u.role, u.job),
        CASE u.connect WHEN 'gone' THEN 'the role no longer exists' WHEN 'no login' THEN 'it has no LOGIN' ELSE 'it has no CONNECT on this database' END,
        CASE u.connect WHEN 'gone' THEN format('SELECT awty.alter(%L, run_as => …);', u.job)
            WHEN 'no login' THEN format('ALTER ROLE %I LOGIN;', u.role)
            ELSE format('GRANT CONNECT ON DATABASE %I TO %I;', current_database(), u.role) END
    FROM unable AS u WHERE u.connect IS NOT NULL
    UNION ALL
    SELECT 'error', format('the function of job "%s" cannot be called', u.job), u.call[1], u.call[2]
    FROM unable AS u WHERE u.call IS NOT NULL AND u.connect IS NULL
    UNION ALL
    SELECT 'warning', format('no external worker claims checks of job "%s"', o.job),
        format('%s; the oldest has been due since %s', o.why, date_trunc('second', o.next_check_at)),
        format('SELECT * FROM awty.claim(ARRAY[%L], ''by hand'');', o.job)
    FROM overdue AS o WHERE NOT o.paused AND o.function_name IS NULL AND o.rank = 10
    UNION ALL
    SELECT 'warning', format('%s of job "%s" %s', CASE WHEN t.target IS NULL THEN 'every target' ELSE format('target "%s"', t.target) END,
            t.job, CASE t.state WHEN 'blocked' THEN 'is blocked' ELSE 'has failed too often' END),
        t.why, CASE WHEN NOT awty_internal.can_become(t.role) THEN format('ask a member of role "%s"', t.role)
            WHEN t.target IS NULL THEN format('SELECT awty.alter_target(%L, blocked_until => ''-infinity'');', t.job)
            ELSE format('SELECT awty.alter_target(%L, %L, blocked_until => ''-infinity'');', t.job, t.target) END
    FROM (SELECT b.job, b.target, b.state, b.why, j.role FROM awty.target AS b JOIN awty.job AS j ON j.job = b.job
          WHERE b.state = 'blocked'
             -- Omits targets without checks that wait to run, because awty keeps the failures of such targets for a
             -- day.
             OR b.state = 'open' AND EXISTS (SELECT FROM awty.future_job AS f WHERE f.job = b.job AND f.entity_name = b.target AND NOT f.held)
          ORDER BY awty_internal.can_become(j.role) DESC, row_number() OVER (PARTITION BY j.role::oid ORDER BY b.job, b.target), b.job, b.target
          LIMIT 20) AS t
    UNION ALL
    SELECT 'warning', format('checks of job "%s" are more than ten slots late', o.job),
        format('the oldest has been due since %s; %s', date_trunc('second', o.next_check_at), o.why),
        coalesce(o.mend, (SELECT format('SELECT * FROM awty.explain(%L, %L);', f.entity_name, f.entity_key)
                          FROM awty.future_job AS f WHERE f.id = o.id), 'SELECT * FROM awty.status;')
    FROM overdue AS o CROSS JOIN here
    WHERE NOT o.paused AND o.next_check_at + (coalesce(o.slot, here.slot) * 10::float8) < clock_timestamp()
    UNION ALL
    SELECT 'warning', 'something keeps checks from running', here.trouble, 'SELECT last_error, last_error_at FROM awty.status; and see the server log'
    FROM here WHERE here.trouble IS NOT NULL
    UNION ALL
    SELECT 'warning', format('the repetition of job "%s" for "%s" "%s" %s', s.job, s.entity_name, s.entity_key,
            CASE WHEN s.next_check_at IS NULL THEN 'has no pending check' ELSE 'ends after its pending check' END),
        s.why, coalesce(s.mend, 'SELECT * FROM awty.status;')
    -- Searches the times of 100 repetitions at most, because one search can take milliseconds. The caller's repetitions
    -- come first, and then each role in turn, so that no role can hide the repetitions of another role.
    FROM (
        SELECT r.job, r.entity_name, r.entity_key
        FROM (SELECT o.job, o.entity_name, o.entity_key, o.zone, o.repeated_by,
                  (awty_internal.can_become(o.repeated_by) OR awty_internal.can_become(j.role)) IS TRUE AS is_own
              FROM awty_internal.repetition AS o LEFT JOIN awty.job AS j ON j.job = o.job
              ORDER BY is_own DESC LIMIT 100000) AS r
        WHERE NOT awty_internal.knows_zone(r.zone)
           OR NOT EXISTS (SELECT FROM awty.future_job AS f
                          WHERE f.entity_name = r.entity_name AND f.entity_key = r.entity_key AND f.job = r.job OFFSET 0)
        ORDER BY r.is_own DESC, row_number() OVER (PARTITION BY r.repeated_by::oid) LIMIT 100) AS few
    CROSS JOIN LATERAL (
        SELECT t.* FROM awty_internal.standstill AS t
        WHERE t.entity_name = few.entity_name AND t.entity_key = few.entity_key AND t.job = few.job OFFSET 0
    ) AS s
    UNION ALL
    SELECT 'error', format('PostgreSQL no longer knows the time zone of calendar "%s"', c.calendar),
        format('all its time counts as open until PostgreSQL knows time zone "%s" again', c.zone),
        format('SELECT awty.create_calendar(calendar, hours, zone => …, closed => closed, replace => true) FROM awty.calendar WHERE calendar = %L;', c.calendar)
    FROM awty.calendar AS c WHERE NOT awty_internal.knows_zone(c.zone)
    UNION ALL
    -- Finds calendars whose closed days are all in the past, because such a calendar probably lacks the holidays of the
    -- coming year.
    SELECT 'warning', format('calendar "%s" has no closed days ahead', c.calendar),
        format('the last of its %s closed days was %s', cardinality(c.closed), last.day),
        format('SELECT awty.create_calendar(calendar, hours, zone, closed || ''{…}'', replace => true) FROM awty.calendar WHERE calendar = %L;', c.calendar)
    FROM awty.calendar AS c CROSS JOIN LATERAL (SELECT c.closed[cardinality(c.closed)] AS day) AS last
    -- Compares values of type date, because timestamptz cannot represent all dates that an old calendar may have.
    WHERE cardinality(c.closed) >= 3 AND last.day < (current_date - 30)
      AND (EXISTS (SELECT FROM awty.rule AS r WHERE r.calendar = c.calendar)
        OR EXISTS (SELECT FROM awty.repetition AS r WHERE r.calendar = c.calendar))
    UNION ALL
    SELECT 'error', format('rule "%s" has stopped', r.rule), unable.why[1], unable.why[2]
    FROM awty.rule AS r CROSS JOIN LATERAL (SELECT awty_internal.cannot_watch(r.rule) AS why) AS unable
    WHERE unable.why IS NOT NULL
    UNION ALL
    SELECT 'warning', format('rule "%s" has not seen all rows that are older than the rule', r.rule), 'the check that goes through these rows was cancelled or has failed',
        'Call awty.watch() again with the same arguments.'
    FROM awty.rule AS r
    WHERE r.walk <> 'done'
      AND NOT EXISTS (SELECT FROM awty.future_job AS f WHERE f.entity_name = 'awty.backfill' AND f.entity_key = r.rule AND f.job = r.rule OFFSET 0)
    UNION ALL
    SELECT 'error', format('rule "%s" cannot tell its alerts', u.rule),
        format('%s; the alert of "%s" waits since %s', u.why, u.entity_key, date_trunc('second', u.since)), u.fix
    FROM awty_internal.untold AS u
    UNION ALL
    SELECT 'error', format('rule "%s" has stopped', r.rule), 'its table is gone', format('SELECT awty.unwatch(%L);', r.rule)
    FROM awty.rule AS r
    -- Does not read pg_class, because Citus hides its shards there.
    WHERE pg_table_is_visible(r.relation::oid) IS NULL
    UNION ALL
    -- If a database was restored without data, it has the triggers of a rule, but not the rule.
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
        format('%s times since %s, the last time at %s: %s: %s', same.n, date_trunc('second', same.first_at), date_trunc('second', same.last_at),
            same.sqlstate, same.message),
        format('SELECT * FROM awty.future_job_history WHERE job = %L AND sqlstate = %L ORDER BY finished_at DESC LIMIT 20;', same.job, same.sqlstate)
    -- Reads the last 100 problems of each job, so that a job with many runs does not hide the others.
    FROM (SELECT j.job, h.sqlstate, h.message, count(*) AS n, min(h.finished_at) AS first_at, max(h.finished_at) AS last_at
          FROM (SELECT r.job, r.role FROM awty_internal.readable() AS r ORDER BY awty_internal.can_become(r.role::regrole) DESC, r.job LIMIT 1000) AS j
          CROSS JOIN LATERAL (
              SELECT f.sqlstate, f.message, f.finished_at FROM awty.future_job_history AS f
              WHERE f.job = j.job AND f.role::oid = j.role AND f.outcome <> ALL ('{done,met,cancelled,replaced}')
              ORDER BY f.finished_at DESC LIMIT 100) AS h
          WHERE h.sqlstate IS NOT NULL GROUP BY j.job, h.sqlstate, h.message) AS same
    -- Omits an error that has not recurred for three times the average interval between its occurrences.
    WHERE same.n >= 10
      AND same.last_at + (same.last_at - same.first_at) * (3 / greatest(same.n - 1, 1)::float8) > (clock_timestamp() - '5 minutes'::interval)
    UNION ALL
    SELECT 'warning', 'the history of some days has no partition of its own', 'their rows stay in awty_internal.future_job_history_default until awty.history_retention is over',
        'make sure that no transaction locks awty.future_job_history for long'
    FROM awty_internal.stray AS stray WHERE stray.is_there
    UNION ALL
    SELECT 'warning', 'an old snapshot prevents vacuum from removing dead rows',
        format('process %s has held it since %s', a.pid, date_trunc('second', a.xact_start)), format('SELECT pg_terminate_backend(%s);', a.pid)
    FROM pg_stat_activity AS a
    WHERE a.backend_xmin IS NOT NULL AND a.datname = current_database()
        AND a.xact_start < (clock_timestamp() - '1 hour'::interval)
        AND EXISTS (SELECT FROM awty.future_job)
    UNION ALL
    SELECT 'warning', 'a prepared transaction prevents vacuum from removing dead rows',
        format('"%s" has been prepared since %s', p.gid, date_trunc('second', p.prepared)), format('COMMIT PREPARED %L; or ROLLBACK PREPARED', p.gid)
    FROM pg_prepared_xacts AS p
    WHERE p.database = current_database()
        AND p.prepared < (clock_timestamp() - '1 hour'::interval)
        AND EXISTS (SELECT FROM awty.future_job)
    UNION ALL
    SELECT 'warning', format('runs of job "%s" take nearly all of their timeout', slow.job),
        format('%s recent runs took 90 %% of %s or more', slow.n, slow.timeout), format('SELECT awty.alter(%L, timeout => %L);', slow.job, slow.timeout * 2::float8)
    FROM (SELECT r.job, r.timeout, count(*) AS n FROM awty_internal.recent AS r
          WHERE r.attempts > 0
            AND r.run_time >= (r.timeout * (0.9::float8 * r.attempts::float8))
          GROUP BY r.job, r.timeout) AS slow WHERE slow.n >= 10
    UNION ALL
    SELECT c.level, c.finding, c.detail, c.fix FROM awty_internal.citus_findings() AS c
    UNION ALL
    SELECT 'notice', format('the history of job "%s" is nearly all "replaced"', noisy.job),
        format('%s of the last %s ends', noisy.replaced, noisy.n), format('SELECT awty.alter(%L, keep_history => ''ran'');', noisy.job)
    FROM (SELECT r.job, count(*) AS n, count(*) FILTER (WHERE r.outcome = 'replaced') AS replaced
          FROM awty_internal.recent AS r GROUP BY r.job) AS noisy
    WHERE noisy.n >= 10 AND noisy.replaced * 10 >= (noisy.n * 9);
END;

COMMENT ON FUNCTION awty.doctor() IS 'Lists the problems of this database that the caller may read, each with what to do; no rows: no problem';

CREATE FUNCTION awty_internal.as_max_lag(max_lag interval) RETURNS interval
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'as_max_lag_wrapper';

COMMENT ON FUNCTION awty_internal.as_max_lag(interval) IS 'Returns the argument of awty.healthy(), or raises an error if it is less than 5 seconds';

CREATE FUNCTION awty.healthy(max_lag interval DEFAULT '1 minute') RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET jit = off
    RETURN (SELECT s.why IS NULL AND s.lag <= most.lag
                AND coalesce(s.heartbeat > (clock_timestamp() - most.lag), false)
            FROM (SELECT awty_internal.as_max_lag(max_lag) AS lag) AS most CROSS JOIN awty.status AS s
            WHERE most.lag IS NOT NULL);

COMMENT ON FUNCTION awty.healthy(interval) IS 'Does everything run, with no check overdue by more than max_lag, at least 5 seconds? For monitoring systems';
