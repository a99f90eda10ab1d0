CREATE FUNCTION awty_internal.nearest(wanted text, names text[]) RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'nearest_wrapper';

COMMENT ON FUNCTION awty_internal.nearest(text, text[]) IS 'The name that the user may have meant; NULL: none is near';

CREATE FUNCTION awty_internal.say_unknown(entity_name text, entity_key text, meant text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    missing CONSTANT text := CASE WHEN entity_name IS NULL THEN 'entity_name' WHEN entity_key IS NULL THEN 'entity_key' END;
BEGIN
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = format('argument "%s" must not be null', missing),
            HINT = format('Give "%s" a value.', missing);
    ELSIF meant IS NULL THEN
        RAISE NOTICE USING MESSAGE = format('nothing is known of "%s" "%s"', entity_name, entity_key);
    ELSE
        RAISE NOTICE USING MESSAGE = format('nothing is known of "%s" "%s"', entity_name, entity_key),
            HINT = format('SELECT * FROM awty.explain(%L, %L);', meant, entity_key);
    END IF;
    RETURN false;
END
$$;

COMMENT ON FUNCTION awty_internal.say_unknown(text, text, text) IS 'Tells the caller that awty.explain() has no row of an entity, and which entity may be meant';

-- JIT is off, because PostgreSQL would take seconds to compile the query. work_mem is set, because with less memory the
-- query would write temporary files, and a low temp_file_limit would make it fail.
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
    -- Sorts the caller's own checks first, because another role can have thousands of checks of the entity.
    ), ranked AS MATERIALIZED (
        SELECT f.id, f.job, f.scheduled_at, f.scheduled_by, f.first_check_at, f.next_check_at, f.attempt,
            row_number() OVER (ORDER BY (awty_internal.can_become(f.scheduled_by) OR awty_internal.can_become(j.role)) IS TRUE DESC,
                f.next_check_at, f.id) AS place
        FROM awty.future_job AS f
        LEFT JOIN awty.job AS j ON j.job = f.job
        WHERE f.entity_name = explain.entity_name AND f.entity_key = explain.entity_key
    ), pending AS (
        SELECT f.id, f.job, f.scheduled_at, f.scheduled_by, f.first_check_at, f.next_check_at, f.attempt, s.rank, s.why, s.mend, u.runs, u.started_at, u.lateness, u.sqlstate, u.message
        FROM ranked AS f
        CROSS JOIN LATERAL (SELECT t.rank, t.why, t.mend FROM awty_internal.standing AS t WHERE t.id = f.id LIMIT 1) AS s
        LEFT JOIN awty_internal.check_stat AS u ON u.check_id = f.id
        WHERE f.place <= 100
    -- awty.explain() shows the next times of only 20 repetitions, because computing the next times of one repetition
    -- can take milliseconds. The caller's own repetitions come first.
    ), repeated AS MATERIALIZED (
        SELECT r.job, r.next_check_at, r.every, r.cron, r.zone, r.starts, r.ends, r.calendar,
            row_number() OVER (ORDER BY (awty_internal.can_become(r.repeated_by) OR awty_internal.can_become(j.role)) IS TRUE DESC,
                r.next_check_at NULLS FIRST, r.job) AS place
        FROM awty.repetition AS r
        LEFT JOIN awty.job AS j ON j.job = r.job
        WHERE r.entity_name = explain.entity_name AND r.entity_key = explain.entity_key
    ), alerted AS MATERIALIZED (
        SELECT a.id, a.rule, a.entity_name, a.entity_key, a.level, a.due_at, a.raised_at, a.escalated_at, a.reminded_at, a.held_by, a.held_until, a.note,
            row_number() OVER (ORDER BY awty_internal.can_become(a.role) IS TRUE DESC, a.due_at, a.id) AS place
        FROM awty.alert AS a
        WHERE a.entity_name = explain.entity_name AND a.entity_key = explain.entity_key AND a.cleared_at IS NULL
    ), stopped AS MATERIALIZED (
        SELECT s.rule, s.stops, s.stopped_since,
            row_number() OVER (ORDER BY awty_internal.can_become(r.role) IS TRUE DESC, s.stopped_since, s.rule) AS place
        FROM awty.rule AS r JOIN awty_internal.stop AS s ON s.rule = r.rule
        WHERE r.entity_name = explain.entity_name AND s.key = explain.entity_key AND s.there_at IS NULL
    ), shown AS MATERIALIZED (
        SELECT h.scheduled_at AS at, h.id, 1 AS step, h.job, 'scheduled' AS event,
            format('by %s, for %s', h.scheduled_by, date_trunc('second', h.first_check_at)) AS detail
        FROM past AS h
        UNION ALL
        SELECT h.started_at, h.id, 2, h.job, 'ran',
            format(CASE h.attempts WHEN 1 THEN '%s ms in one run, which started %3$s s late' ELSE '%s ms in %s runs, the last one started %s s late' END,
                round((EXTRACT(epoch FROM h.run_time) * 1000)::numeric, 1), h.attempts,
                round(EXTRACT(epoch FROM h.lateness), 2))
        FROM past AS h WHERE h.started_at IS NOT NULL
        UNION ALL
        SELECT h.finished_at, h.id, 3, h.job, h.outcome, concat_ws(': ', h.sqlstate, h.message)
        FROM past AS h
        UNION ALL
        SELECT f.scheduled_at, f.id, 4, f.job, 'scheduled',
            format('by %s, for %s', f.scheduled_by, date_trunc('second', f.first_check_at))
        FROM pending AS f
        UNION ALL
        SELECT f.started_at, f.id, 5, f.job, 'ran',
            CASE WHEN f.attempt = 0
                THEN format('run %s, started %s s late, asked for %s', f.runs,
                    round(EXTRACT(epoch FROM f.lateness), 2), date_trunc('second', f.next_check_at))
                ELSE format('run %s failed: %s: %s; attempt %s is at %s', f.runs, f.sqlstate, f.message,
                    f.attempt + 1, date_trunc('second', f.next_check_at))
            END
        FROM pending AS f WHERE f.started_at IS NOT NULL
        UNION ALL
        SELECT f.next_check_at, f.id, 6, f.job, CASE f.rank WHEN 6 THEN 'next' WHEN 8 THEN 'running' ELSE 'waiting' END,
            concat_ws('; ', f.why, f.mend)
        FROM pending AS f
        UNION ALL
        SELECT a.at, a.id, 2, a.job, 'leased', concat('to ', a.worker, ', attempt ', a.attempt, CASE WHEN a.ok THEN ', completed' ELSE ', failed' END,
            ' at ', date_trunc('second', a.ended_at), ': ' || a.sqlstate, ': ' || a.message)
        FROM (SELECT t.leased_at AS at, t.id, t.job, t.worker, t.attempt, t.ok, t.ended_at, t.sqlstate, t.message FROM awty.attempt AS t
              WHERE t.id = ANY (ARRAY(SELECT p.id FROM past AS p UNION ALL SELECT f.id FROM pending AS f))
              ORDER BY t.ended_at DESC LIMIT 100) AS a
        UNION ALL
        SELECT o.at, 9223372036854775807, 7, r.job, 'next',
            format('repeated %s, %s%s', coalesce('every ' || r.every::text,
                'at ' || r.cron), r.zone, ', while ' || quote_ident(r.calendar) || ' is open')
        FROM repeated AS r
        CROSS JOIN LATERAL awty_internal.coming(r.every, r.cron, r.zone, greatest(r.next_check_at, clock_timestamp()), 3, r.starts, r.calendar) AS o (at)
        WHERE r.place <= 20 AND r.next_check_at IS NOT NULL AND (r.ends IS NULL OR o.at <= r.ends)
        UNION ALL
        SELECT NULL, NULL, NULL, NULL, 'left out', string_agg(format('%s more %s', c.number, c.what), ', ' ORDER BY c.place)
        FROM (SELECT 1 AS place, 'pending checks' AS what, count(*) AS number FROM ranked AS f WHERE f.place > 100
              UNION ALL
              SELECT 2, 'repetitions', count(*) FROM repeated AS r WHERE r.place > 20
              UNION ALL
              SELECT 3, 'alerts', count(*) FROM alerted AS a WHERE a.place > 20
              UNION ALL
              SELECT 4, 'stops', count(*) FROM stopped AS s WHERE s.place > 20) AS c
        WHERE c.number > 0 HAVING count(*) > 0
        UNION ALL
        SELECT a.raised_at, a.id, 8, a.rule, 'waiting',
            format('late since %s: alert %s of level %s is open%s', date_trunc('second', a.due_at), a.id, a.level,
                ', escalated at ' || date_trunc('second', a.escalated_at)::text)
        FROM alerted AS a
        WHERE a.place <= 20 AND a.level > 0
        UNION ALL
        SELECT a.reminded_at, a.id, 8, a.rule, 'reminded', format('alert %s of level 0, because the row is due at %s', a.id, date_trunc('second', a.due_at))
        FROM alerted AS a
        WHERE a.place <= 20 AND a.reminded_at IS NOT NULL
        UNION ALL
        SELECT clock_timestamp(), a.id, 8, a.rule, 'waiting',
            format('alert %s is held by %s%s%s; SELECT awty.release(%L, %L, %L);', a.id, a.held_by, ' until ' || date_trunc('second', a.held_until)::text,
                ': ' || a.note, a.entity_name, a.entity_key, a.rule)
        FROM alerted AS a
        WHERE a.place <= 20 AND a.held_by IS NOT NULL AND awty_internal.lasts(a.held_until)
        UNION ALL
        SELECT coalesce(s.stopped_since, clock_timestamp()), 9223372036854775807, 8, s.rule, 'waiting',
            -- The clock of a row can start at -infinity, which PostgreSQL cannot subtract from another time.
            concat_ws(', ', 'stopped since ' || date_trunc('second', s.stopped_since)::text,
                CASE WHEN isfinite(lower(s.stops)) IS NOT FALSE AND isfinite(s.stopped_since) IS NOT FALSE
                    THEN format('stopped %s in all', date_trunc('second', (SELECT coalesce(sum(upper(p) - lower(p)), '0') FROM unnest(s.stops) AS p)
                        + coalesce(greatest(clock_timestamp() - s.stopped_since, '0'), '0'))) END)
        FROM stopped AS s WHERE s.place <= 20
        UNION ALL
        SELECT clock_timestamp(), 9223372036854775807, 6, r.job, 'waiting', concat_ws('; ', s.why, s.mend)
        FROM repeated AS r
        CROSS JOIN LATERAL (
            SELECT t.why, t.mend FROM awty_internal.standstill AS t
            WHERE t.entity_name = explain.entity_name AND t.entity_key = explain.entity_key AND t.job = r.job OFFSET 0
        ) AS s
        WHERE r.place <= 20
    ), unknown AS MATERIALIZED (
        -- Looks up the table by its present name, because it may have been renamed since awty.watch().
        SELECT awty_internal.say_unknown(explain.entity_name, explain.entity_key, coalesce(
            (SELECT r.entity_name FROM awty.rule AS r
             WHERE r.relation::oid = CASE WHEN explain.entity_name ~ '^[[:alpha:]_][[:alnum:]_$]*([.][[:alpha:]_][[:alnum:]_$]*)?$'
                 THEN to_regclass(explain.entity_name)::oid END -- to_regclass() raises an error for an invalid name
                 AND r.entity_name <> explain.entity_name
             ORDER BY r.rule LIMIT 1),
            (SELECT awty_internal.nearest(explain.entity_name, array_agg(n.name))
             FROM (SELECT r.entity_name FROM awty.rule AS r
                   UNION
                   SELECT f.entity_name
                   FROM (SELECT mine.job FROM awty_internal.readable() AS mine LIMIT 1000) AS j
                   CROSS JOIN LATERAL (SELECT c.entity_name FROM awty.future_job AS c WHERE c.job = j.job AND NOT c.held LIMIT 1) AS f
             ) AS n (name)
             WHERE n.name <> explain.entity_name))) AS said
        WHERE NOT EXISTS (SELECT FROM shown)
    )
    SELECT e.at, e.job, e.event, e.detail
    FROM (
        SELECT * FROM shown
        UNION ALL
        SELECT NULL, NULL, NULL, NULL, NULL, NULL FROM unknown WHERE unknown.said
    ) AS e
    ORDER BY e.at, e.id, e.step;
END;

COMMENT ON FUNCTION awty.explain(text, text) IS 'Shows the past, present and future of one entity in the order of time: its last hundred finished checks, its pending checks and why each does not run now, and its open alerts; it shows at most 100 pending checks and 20 repetitions, alerts and stops each, first those of the caller, and says how many are left out';

-- Calls only functions in awty, because a caller has no USAGE on awty_internal.
CREATE FUNCTION awty.explain(entity_name text, entity_key anynonarray)
RETURNS TABLE (at timestamptz, job text, event text, detail text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT e.at, e.job, e.event, e.detail
    FROM awty.explain($1, awty.key($2)) AS e
$$;

COMMENT ON FUNCTION awty.explain(text, anynonarray) IS 'Shows the past, present and future of an entity whose key is of another type than text, such as a number or a uuid';
