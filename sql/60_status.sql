-- Reasons why checks do not run, as one ordered list for awty.status, awty.explain() and awty.doctor().

-- These functions also work on a standby and without the preloaded library.
CREATE FUNCTION awty_internal.runtime(
    OUT preloaded boolean, OUT enabled boolean, OUT slot interval, OUT last_slot_run timestamptz, OUT workers integer, OUT held text, OUT unserved text[],
    OUT trouble text, OUT trouble_at timestamptz, OUT heartbeat timestamptz, OUT library text, OUT settings_read timestamptz
) RETURNS SETOF record ROWS 1 LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'runtime_wrapper';

COMMENT ON FUNCTION awty_internal.runtime() IS 'State of awty''s processes for this database';

CREATE FUNCTION awty_internal.worker(
    OUT pid integer, OUT role oid, OUT is_busy boolean, OUT check_ids bigint[], OUT started_at timestamptz, OUT timeout interval
) RETURNS SETOF record ROWS 4 LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'worker_wrapper';

COMMENT ON FUNCTION awty_internal.worker() IS 'Workers of this database, and the checks that each of them is running';

CREATE FUNCTION awty_internal.waits_for_standby(pid integer) RETURNS boolean
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'waits_for_standby_wrapper';

COMMENT ON FUNCTION awty_internal.waits_for_standby(integer) IS 'Does the commit of that process wait for a synchronous standby?';

CREATE FUNCTION awty_internal.cannot_connect(role oid) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'cannot_connect_wrapper';

COMMENT ON FUNCTION awty_internal.cannot_connect(oid) IS 'Why no worker can connect to this database as that role: gone, no login or no connect; NULL: a worker can';

CREATE FUNCTION awty_internal.cannot_call(job text) RETURNS text[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cannot_call_wrapper';

COMMENT ON FUNCTION awty_internal.cannot_call(text) IS 'Why the function of a job cannot be called, and what to do; NULL: it can be called';

CREATE FUNCTION awty_internal.since(since timestamptz, by regrole, until timestamptz, note text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN concat(
        ' since ' || date_trunc('second', since)::text,
        ' by ' || by::text,
        ' until ' || date_trunc('second', until)::text,
        ': "' || note || '"');

COMMENT ON FUNCTION awty_internal.since(timestamptz, regrole, timestamptz, text) IS 'Since when, by which role, until when and why, as far as each is known';

-- Compares the end with the clock, because expired holds and pauses stay in the tables of a standby, which is
-- read-only.
CREATE FUNCTION awty_internal.lasts(until timestamptz) RETURNS boolean
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN (until <= clock_timestamp()) IS NOT TRUE;

COMMENT ON FUNCTION awty_internal.lasts(timestamptz) IS 'Is the end of a hold or a pause still ahead? True if it has no end';

CREATE VIEW awty_internal.here AS
SELECT runtime.*, runtime.held IS NOT NULL AS database_held, list.why[1] AS why, list.why[2] AS mend
FROM awty_internal.runtime() AS runtime
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN NOT runtime.preloaded
        THEN ARRAY['awty is not in shared_preload_libraries', 'ALTER SYSTEM SET shared_preload_libraries = ''awty''; -- with the libraries that are there; then restart the server']
        WHEN pg_is_in_recovery() THEN ARRAY['this server is a standby', 'checks run on its primary']
        WHEN NOT runtime.enabled
        THEN ARRAY['awty.enabled is off', 'ALTER SYSTEM SET awty.enabled = on; SELECT pg_reload_conf();']
        WHEN runtime.held IS NOT NULL THEN ARRAY[runtime.held, 'SELECT awty.adopt(); -- runs its checks here']
        WHEN runtime.unserved IS NOT NULL THEN runtime.unserved
        WHEN runtime.heartbeat IS NULL
        THEN ARRAY['awty''s launcher is not running', 'consider increasing max_worker_processes, and restart the server']
        WHEN runtime.heartbeat < (clock_timestamp() - '10 seconds'::interval)
        THEN ARRAY['awty''s launcher has sent no heartbeat since ' || runtime.heartbeat::text,
                   'see the server log']
    END AS why
) AS list;

COMMENT ON VIEW awty_internal.here IS 'State of this database, and why nothing runs in it';

-- Shows names and notes only to callers that may read the job.
CREATE VIEW awty_internal.standing AS
SELECT f.id, first.rank, first.why, first.mend
FROM awty.future_job AS f
LEFT JOIN awty.job AS j ON j.job = f.job
CROSS JOIN awty_internal.here AS here
CROSS JOIN LATERAL (
    SELECT r.is_known,
        CASE WHEN r.is_known THEN format('job "%s"', f.job) ELSE 'a job' END AS job,
        CASE WHEN r.is_known THEN quote_literal(f.job) ELSE '…' END AS quoted_job,
        CASE WHEN r.is_known THEN format('role "%s"', pg_get_userbyid(j.role)) ELSE 'the role of a job' END AS role,
        CASE WHEN r.is_known THEN quote_ident(pg_get_userbyid(j.role)) ELSE '…' END AS quoted_role
    FROM (SELECT awty_internal.can_read(j)
              OR pg_has_role('pg_monitor', 'MEMBER') AS is_known) AS r
) AS named
CROSS JOIN LATERAL (
    SELECT list.rank, list.why, list.mend FROM (
        SELECT 1 AS rank, here.why, here.mend WHERE here.why IS NOT NULL
        UNION ALL
        SELECT 2, concat(named.job, ' is paused',
                CASE WHEN named.is_known THEN awty_internal.since(j.paused_at, j.paused_by, j.paused_until, j.paused_note) END),
            format('SELECT awty.resume(%s);', named.quoted_job)
        WHERE j.paused AND awty_internal.lasts(j.paused_until)
        UNION ALL
        SELECT 3, coalesce((
                SELECT concat(CASE WHEN h.silent THEN 'the row is silenced' ELSE 'the check is held' END,
                    awty_internal.since(h.held_at, h.held_by, h.held_until, h.note))
                FROM awty_internal.hold AS h WHERE h.check_id = f.id), 'the check is held'),
            CASE WHEN EXISTS (SELECT FROM awty_internal.hold AS h WHERE h.check_id = f.id AND h.silent)
                THEN 'a change of its since, due or key, or of whether it meets the condition, ends that'
                ELSE format('SELECT awty.release(%L, %L, %L);', f.entity_name, f.entity_key, f.job) END
        WHERE f.held AND NOT EXISTS (SELECT FROM awty_internal.hold AS h WHERE h.check_id = f.id AND NOT awty_internal.lasts(h.held_until))
        UNION ALL
        SELECT 4, CASE unable.why
                WHEN 'gone' THEN format('the role of %s no longer exists', named.job)
                WHEN 'no login' THEN format('%s has no LOGIN, which this version of PostgreSQL requires', named.role)
                ELSE format('%s has no CONNECT on this database', named.role) END,
            CASE unable.why
                WHEN 'gone' THEN format('SELECT awty.alter(%s, run_as => …);', named.quoted_job)
                WHEN 'no login' THEN format('ALTER ROLE %s LOGIN;', named.quoted_role)
                ELSE format('GRANT CONNECT ON DATABASE %I TO %s;', current_database(), named.quoted_role) END
        FROM (SELECT awty_internal.cannot_connect(j.role) AS why) AS unable WHERE unable.why IS NOT NULL AND j.function_name IS NOT NULL
        UNION ALL
        SELECT 5, CASE WHEN named.is_known THEN unable.why[1] ELSE 'the function of a job cannot be called' END,
            CASE WHEN named.is_known THEN unable.why[2] END
        FROM (SELECT awty_internal.cannot_call(f.job) AS why) AS unable WHERE unable.why IS NOT NULL
        UNION ALL
        SELECT 5, 'its job is no longer registered', 'no action is needed: the check ends as cancelled' WHERE j.job IS NULL
        UNION ALL
        SELECT 6, 'it is not due yet', NULL WHERE f.next_check_at > clock_timestamp()
        UNION ALL
        SELECT 7, concat(format('its row is locked by process %s', l.pid),
                CASE WHEN waits.for_standby THEN ', which waits for a synchronous standby' END),
            CASE WHEN waits.for_standby THEN 'SELECT application_name, state, sync_state FROM pg_stat_replication;'
                ELSE format('COMMIT there, or SELECT pg_terminate_backend(%s);', l.pid) END
        FROM pg_locks AS l
        CROSS JOIN LATERAL (SELECT awty_internal.waits_for_standby(l.pid) AS for_standby) AS waits
        WHERE f.xmax <> '0'::xid
            AND l.locktype = 'transactionid' AND l.granted AND l.transactionid = f.xmax
            AND l.pid <> ALL (ARRAY(SELECT w.pid FROM awty_internal.worker() AS w))
            AND l.pid <> pg_backend_pid()
        UNION ALL
        SELECT 8, format('it is running since %s in process %s', date_trunc('second', w.started_at), w.pid), NULL
        FROM awty_internal.worker() AS w
        WHERE f.id = ANY (w.check_ids) AND NOT awty_internal.waits_for_standby(w.pid)
        UNION ALL
        SELECT 8, format('it is leased since %s to %s until %s', date_trunc('second', l.leased_at),
                CASE WHEN named.is_known THEN quote_ident(l.worker) ELSE 'a worker' END, date_trunc('second', l.expires_at)), NULL
        FROM awty_internal.lease AS l
        WHERE l.id = f.id AND l.expires_at > clock_timestamp()
        UNION ALL
        -- Workers wait for a synchronous standby only if awty.synchronous_commit is on.
        SELECT 9, format('worker process %s waits for a synchronous standby', w.pid),
            'SELECT application_name, state, sync_state FROM pg_stat_replication;'
        FROM awty_internal.worker() AS w
        WHERE w.role = j.role::oid AND awty_internal.waits_for_standby(w.pid)
        UNION ALL
        -- A process that claims checks keeps its lock until the standby has acknowledged the commit.
        SELECT 9, format('process %s claims checks and waits for a synchronous standby', l.pid),
            'SELECT application_name, state, sync_state FROM pg_stat_replication;'
        FROM pg_locks AS l
        WHERE j.function_name IS NULL AND l.locktype = 'object' AND l.granted
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
            AND l.classid = 'awty_internal.lease'::regclass::oid
            AND awty_internal.waits_for_standby(l.pid)
        UNION ALL
        SELECT 9, format('%s checks of its job are due, and awty.catch_up_rate runs %s missed checks per second',
                CASE WHEN due.n > 10000 THEN 'more than 10000' ELSE due.n::text END, rate.n),
            'ALTER SYSTEM SET awty.catch_up_rate = 0; SELECT pg_reload_conf();'
        FROM (SELECT current_setting('awty.catch_up_rate', true)::int4 AS n) AS rate
        CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM (
                SELECT FROM awty.future_job AS b
                WHERE b.job = f.job AND NOT b.held
                  AND b.next_check_at <= statement_timestamp() LIMIT 10001) AS b
        ) AS due
        WHERE rate.n > 0 AND due.n > rate.n AND j.function_name IS NOT NULL
        UNION ALL
        SELECT 9, CASE WHEN named.is_known THEN concat('its target ', CASE t.state WHEN 'blocked' THEN 'is ' WHEN 'full' THEN 'is full: ' END, t.why) ELSE 'its target takes no calls now' END,
            CASE WHEN t.state = ANY ('{blocked,open}') AND awty_internal.can_become(j.role)
                THEN format('SELECT awty.alter_target(%s, %L, blocked_until => ''-infinity'');', named.quoted_job, f.entity_name) END
        FROM awty.target AS t
        WHERE t.job = f.job AND t.target = f.entity_name AND t.state <> 'ready'
          AND j.function_name IS NULL
        UNION ALL
        SELECT 9, CASE WHEN named.is_known THEN format('all targets of its job are %s', t.why) ELSE 'its target takes no calls now' END,
            CASE WHEN awty_internal.can_become(j.role) THEN format('SELECT awty.alter_target(%s, blocked_until => ''-infinity'');', named.quoted_job) END
        FROM awty.target AS t
        WHERE t.job = f.job AND t.target IS NULL AND t.state = 'blocked' AND j.function_name IS NULL
        UNION ALL
        -- Reports missing workers 5 seconds after the last claim, because idle workers claim at least that often. If a
        -- lease is open, adds the job's timeout, because the worker may be busy until then.
        SELECT 10, concat('no external worker has claimed checks of ', named.job,
                coalesce(' since ' || date_trunc('second', last.claim)::text, ' since the server started')),
            'start a worker that calls awty.claim()'
        FROM (SELECT awty_internal.last_claim(f.job) AS claim) AS last
        WHERE j.function_name IS NULL AND j.job IS NOT NULL
          AND f.next_check_at < (clock_timestamp() - '5 seconds'::interval)
          AND (last.claim + '5 seconds'::interval + CASE WHEN EXISTS (
                  SELECT FROM awty_internal.lease AS l WHERE l.job = f.job AND l.expires_at > clock_timestamp())
              THEN j.timeout ELSE '0' END >= clock_timestamp()) IS NOT TRUE
        UNION ALL
        SELECT 10, format('all workers that may run it are busy: %s of %s, %s of them for %s', busy.n,
                current_setting('awty.max_workers', true), busy.own, named.role),
            'consider increasing awty.max_workers_per_role or awty.max_workers'
        FROM (SELECT count(*) AS n,
                     count(*) FILTER (WHERE w.role = j.role::oid) AS own
              FROM awty_internal.worker() AS w WHERE w.is_busy) AS busy
        WHERE j.function_name IS NOT NULL
          AND (busy.own >= current_setting('awty.max_workers_per_role', true)::int4
            OR busy.n >= current_setting('awty.max_workers', true)::int4)
        UNION ALL
        SELECT 11, here.trouble, NULL WHERE here.trouble IS NOT NULL AND j.function_name IS NOT NULL
        UNION ALL
        SELECT 12, CASE WHEN j.function_name IS NULL THEN 'it is due, and waits for an external worker'
            ELSE 'it is due, and a worker is about to run it' END, NULL
    ) AS list ORDER BY list.rank LIMIT 1
) AS first;

COMMENT ON VIEW awty_internal.standing IS 'First reason why a pending check does not run now, for each check';

CREATE VIEW awty_internal.first_overdue AS
SELECT j.job, j.paused, first.id, first.next_check_at
FROM (
    -- Reads fewer checks per job of a role with many jobs, so that this role cannot make the view slow for all.
    SELECT k.job, k.paused AND awty_internal.lasts(k.paused_until) AS paused, k.function_name,
        greatest(10, least(10000, 100000 / count(*) OVER (PARTITION BY k.role))) AS checks
    FROM awty.job AS k
    WHERE NOT k.paused OR (k.paused_until > clock_timestamp()) IS NOT TRUE
) AS j
CROSS JOIN LATERAL (
    SELECT f.id, f.next_check_at FROM (
        SELECT c.id, c.entity_name, c.next_check_at FROM awty.future_job AS c
        WHERE c.job = j.job AND NOT c.held
        ORDER BY c.next_check_at, c.id LIMIT j.checks
    ) AS f
    -- Leased checks of external workers are not overdue. Checks whose target fails, or is blocked until a known time,
    -- are not overdue either.
    WHERE j.function_name IS NOT NULL OR NOT (
        EXISTS (SELECT FROM awty_internal.lease AS l
                WHERE l.id = f.id AND l.expires_at > clock_timestamp())
        OR EXISTS (SELECT FROM awty_internal.breaker AS b
                   WHERE b.job = j.job AND b.target = f.entity_name AND b.opened_at IS NOT NULL)
        OR EXISTS (SELECT FROM awty_internal.target AS t
                   WHERE t.job = j.job AND t.target = ANY (ARRAY[f.entity_name, ''])
                     AND isfinite(t.blocked_until) AND t.blocked_until > clock_timestamp()))
    ORDER BY f.next_check_at, f.id LIMIT 1
) AS first
WHERE first.next_check_at <= clock_timestamp();

COMMENT ON VIEW awty_internal.first_overdue IS 'The longest overdue check of each job';

CREATE VIEW awty_internal.overdue AS
SELECT o.job, o.paused, o.id, o.next_check_at FROM awty_internal.first_overdue AS o
ORDER BY o.paused, o.next_check_at LIMIT 20;

COMMENT ON VIEW awty_internal.overdue IS 'The longest overdue check of each of the twenty jobs that have waited longest; paused jobs come last';

CREATE VIEW awty_internal.unconnected AS
SELECT CASE unable.why
        WHEN 'gone' THEN format('the role of job "%s" no longer exists; SELECT awty.alter(%L, run_as => …);', j.job, j.job)
        WHEN 'no login' THEN format('role "%s" of job "%s" has no LOGIN; ALTER ROLE %I LOGIN;',
            pg_get_userbyid(j.role), j.job, pg_get_userbyid(j.role))
        ELSE format('role "%s" of job "%s" has no CONNECT; GRANT CONNECT ON DATABASE %I TO %I;',
            pg_get_userbyid(j.role), j.job, current_database(), pg_get_userbyid(j.role)) END AS why
FROM awty.job AS j
CROSS JOIN LATERAL (SELECT awty_internal.cannot_connect(j.role) AS why) AS unable
WHERE unable.why IS NOT NULL AND j.function_name IS NOT NULL
  AND (pg_has_role('pg_monitor', 'MEMBER') OR j.job = ANY (SELECT mine.job FROM awty_internal.readable() AS mine))
ORDER BY j.job LIMIT 1;

COMMENT ON VIEW awty_internal.unconnected IS 'Why no worker can connect as the role of a job, for callers that may see the role';

CREATE VIEW awty_internal.untold AS
SELECT r.rule, u.raised_at AS since, u.entity_key, u.next_check_at,
    format('%s of rule "%s" %s', concat_ws('.', quote_ident(r.call_schema), quote_ident(r.call_name)), r.rule,
        coalesce(format('fails: %s: %s', u.sqlstate, u.message), 'has failed max_attempts times')) AS why,
    -- Suggests a call that lets a check report the alert. check_now() starts the pending check. If no check is pending,
    -- hold() and release() create a check.
    format(CASE WHEN u.sqlstate IS NULL THEN 'SELECT awty.hold(%1$L, %2$L, %3$L), awty.release(%1$L, %2$L, %3$L); -- once the function is mended'
        ELSE 'SELECT awty.check_now(%1$L, %2$L, %3$L); -- once the function is mended' END, u.entity_name, u.entity_key, r.rule) AS fix
FROM awty.rule AS r
CROSS JOIN LATERAL (
    SELECT a.raised_at, a.entity_name, a.entity_key, f.next_check_at, s.sqlstate, s.message
    FROM awty.alert AS a
    LEFT JOIN awty.future_job AS f ON f.entity_name = a.entity_name
        AND f.entity_key = a.entity_key AND f.job = a.rule
    LEFT JOIN awty_internal.check_stat AS s ON s.check_id = f.id
    WHERE a.rule = r.rule AND a.cleared_at IS NULL AND a.level > 0
      AND (a.told_at >= coalesce(a.escalated_at, a.raised_at)) IS NOT TRUE
      AND (s.failed_at IS NOT NULL OR f.id IS NULL AND a.held_by IS NULL)
    ORDER BY a.raised_at LIMIT 1
) AS u
WHERE r.rule = ANY (SELECT mine.job FROM awty_internal.readable() AS mine);

COMMENT ON VIEW awty_internal.untold IS 'The longest untold alert of each rule whose function fails, as far as the caller may read the rule';

-- Short-lived reasons, such as busy workers, are shown only for checks that are more than 2 seconds late.
CREATE VIEW awty_internal.reason AS
SELECT first.why, first.fix
FROM (
    SELECT -2 AS rank, '-infinity'::timestamptz AS since, here.why, here.mend AS fix
    FROM awty_internal.here AS here WHERE here.why IS NOT NULL
    UNION ALL
    SELECT CASE s.rank WHEN 2 THEN 100 ELSE s.rank END, o.next_check_at, s.why, s.mend
    FROM awty_internal.overdue AS o JOIN awty_internal.standing AS s ON s.id = o.id
    WHERE s.rank = ANY ('{2,4,5}')
       OR s.rank = ANY ('{7,9,10,11}')
          AND o.next_check_at < (clock_timestamp() - '2 seconds'::interval)
    UNION ALL
    SELECT 6, u.since, u.why, u.fix FROM awty_internal.untold AS u
    WHERE NOT EXISTS (SELECT FROM awty.job AS j WHERE j.job = u.rule AND j.paused)
    UNION ALL
    -- Examines only rules that the caller may read, because examining a rule takes a while, and another role may have
    -- thousands of rules.
    SELECT 6, r.watched_at, format('rule "%s" has stopped: %s', r.rule, unable.why[1]), unable.why[2]
    FROM awty.rule AS r
    CROSS JOIN LATERAL (SELECT awty_internal.cannot_watch(r.rule) AS why) AS unable
    WHERE unable.why IS NOT NULL
      AND (pg_has_role('pg_monitor', 'MEMBER') OR r.rule = ANY (SELECT mine.job FROM awty_internal.readable() AS mine))
) AS first
ORDER BY first.rank, first.since LIMIT 1;

COMMENT ON VIEW awty_internal.reason IS 'Why nothing runs in this database, or why due checks do not run, and what to do';

-- JIT is off, because it would spend seconds on the view's hundreds of expressions.
CREATE FUNCTION awty_internal.first_reason(OUT why text, OUT fix text)
    RETURNS SETOF record ROWS 1 LANGUAGE sql STABLE PARALLEL UNSAFE SET jit = off
BEGIN ATOMIC
    SELECT r.why, r.fix FROM awty_internal.reason AS r;
END;

COMMENT ON FUNCTION awty_internal.first_reason() IS 'The row of awty_internal.reason, for awty.status';

CREATE FUNCTION awty_internal.lag(since timestamptz) RETURNS interval
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(greatest(CASE WHEN isfinite(since)
        THEN clock_timestamp() - since END, '0'), '0');

COMMENT ON FUNCTION awty_internal.lag(timestamptz) IS 'Time that has passed since then; 0 if the argument is NULL or infinite';

-- A LEFT JOIN computes each aggregate, so that the planner can omit the aggregate if a query does not use its columns.
CREATE VIEW awty.status AS
SELECT current_database() AS database,
    here.enabled,
    here.database_held,
    first.why COLLATE "C" AS why,
    first.fix COLLATE "C" AS fix,
    here.slot,
    here.last_slot_run,
    awty_internal.lag(oldest.overdue) AS lag,
    oldest.overdue AS oldest_overdue,
    (SELECT CASE WHEN counted.n <= 100000 THEN counted.n
                 ELSE greatest(counted.n, (SELECT c.reltuples::int8 FROM pg_class AS c
                      WHERE c.oid = 'awty.future_job'::regclass)) END
     FROM (SELECT count(*) AS n FROM (SELECT 1 FROM awty.future_job LIMIT 100001) AS sample) AS counted) AS pending,
    (SELECT count(*) FROM (
         SELECT FROM awty.future_job AS f WHERE f.held
             AND NOT EXISTS (SELECT FROM awty_internal.hold AS h WHERE h.check_id = f.id AND h.silent) LIMIT 100001) AS sample) AS held_checks,
    here.workers,
    coalesce(here.unserved[1],
        CASE WHEN here.trouble LIKE '%no LOGIN or no CONNECT%' THEN (SELECT u.why FROM awty_internal.unconnected AS u) END,
        here.trouble) AS last_error,
    here.trouble_at AS last_error_at,
    here.heartbeat,
    (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'awty') AS version,
    here.library
FROM awty_internal.here AS here
LEFT JOIN (SELECT min(r.why) AS why, min(r.fix) AS fix FROM awty_internal.first_reason() AS r) AS first ON true
LEFT JOIN (SELECT min(o.next_check_at) AS overdue FROM awty_internal.overdue AS o WHERE NOT o.paused) AS oldest ON true;

COMMENT ON VIEW awty.status IS 'One row about this database: whether awty runs here, why not, and how late it is';
COMMENT ON COLUMN awty.status.database IS 'Name of the database';
COMMENT ON COLUMN awty.status.enabled IS 'Value of awty.enabled';
COMMENT ON COLUMN awty.status.database_held IS 'True if nothing runs, because this database was restored or cloned and waits for awty.adopt()';
COMMENT ON COLUMN awty.status.why IS 'Why nothing runs, or why due checks do not run; NULL: all checks run';
COMMENT ON COLUMN awty.status.fix IS 'Command or action that solves it; NULL: it solves itself';
COMMENT ON COLUMN awty.status.slot IS 'Value of awty.slot';
COMMENT ON COLUMN awty.status.last_slot_run IS 'Latest slot at which a check has run since the server started';
COMMENT ON COLUMN awty.status.lag IS 'How long the oldest overdue check has been waiting; 0 if no check is overdue';
COMMENT ON COLUMN awty.status.oldest_overdue IS 'Slot of that check; checks that are held or whose job is paused do not count';
COMMENT ON COLUMN awty.status.pending IS 'Pending checks, including held ones; counted up to 100000, estimated beyond';
COMMENT ON COLUMN awty.status.held_checks IS 'Checks that wait for awty.release() or for the end of their hold, up to 100001';
COMMENT ON COLUMN awty.status.workers IS 'Worker processes of awty in this database';
COMMENT ON COLUMN awty.status.last_error IS 'Problem that keeps awty from running some checks in this database; NULL: there is none, or it is over';
COMMENT ON COLUMN awty.status.last_error_at IS 'Time at which that problem began';
COMMENT ON COLUMN awty.status.heartbeat IS 'Last heartbeat of the launcher, at least one per second; NULL: there is no launcher';
COMMENT ON COLUMN awty.status.version IS 'Version of the extension''s SQL in this database';
COMMENT ON COLUMN awty.status.library IS 'Version of the library that the server has loaded';
