-- Two rules, ticket and promise, watch camp.ticket in the open minutes of a calendar.
--
-- The functions below compute minute by minute from the transactions' logs what awty must do. They call no function of
-- awty.
CREATE TABLE camp.ticket (id bigint PRIMARY KEY, since timestamptz, state text NOT NULL, note text);

-- Logs each write to camp.ticket. An entry without a state means that the row was deleted.
CREATE TABLE camp.ticket_log (
    n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      bigint NOT NULL,
    since   timestamptz,
    state   text,
    began   timestamptz NOT NULL DEFAULT now(),
    written timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON camp.ticket_log (id, n);

-- Logs each definition of a calendar, with the closed minutes of each day in UTC.
CREATE TABLE camp.calendar (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, calendar text NOT NULL, shut integer[] NOT NULL);

-- Logs each definition of a rule. lengths has the times of its levels.
CREATE TABLE camp.promised (
    n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule    text NOT NULL,
    lengths interval[] NOT NULL,
    remind  interval,
    every   interval
);

-- Logs holds, releases and pauses. A pause has no alert. The time -infinity ends a hold or pause.
CREATE TABLE camp.quiet (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, rule text NOT NULL, alert bigint, until timestamptz NOT NULL);
CREATE INDEX ON camp.quiet (alert, n);

-- Logs the calls of the rules' functions call and call_cleared.
CREATE TABLE camp.telling (
    n     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule  text NOT NULL,
    alert bigint NOT NULL,
    id    bigint NOT NULL,
    level integer NOT NULL,
    told  bigint NOT NULL,
    role  name NOT NULL DEFAULT current_user,
    began timestamptz NOT NULL DEFAULT now(),
    at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON camp.telling (alert, told);
CREATE TABLE camp.solving (LIKE camp.telling INCLUDING ALL);

CREATE FUNCTION camp.log_ticket() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camp.ticket_log (id, since, state)
    SELECT (CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END).id, NEW.since, NEW.state;
    RETURN NULL;
END $$;
-- Triggers fire in the order of their names, so zz_log fires after awty's triggers.
CREATE TRIGGER zz_log AFTER INSERT OR UPDATE OR DELETE ON camp.ticket FOR EACH ROW EXECUTE FUNCTION camp.log_ticket();

CREATE FUNCTION camp.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camp.telling (rule, alert, id, level, told) VALUES (a.rule, a.id, a.entity_key::bigint, a.level, a.told);
    IF random() < 0.04 THEN RAISE EXCEPTION 'the receiver is away'; END IF;
    PERFORM pg_sleep(CASE WHEN random() < 0.1 THEN random() * 0.5 ELSE 0 END);
END $$;
CREATE FUNCTION camp.tell_cleared(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camp.solving (rule, alert, id, level, told) VALUES (a.rule, a.id, a.entity_key::bigint, a.level, a.told);
    IF a.cleared_at IS NULL OR random() < 0.1 THEN RAISE EXCEPTION 'the receiver is away'; END IF;
END $$;

-- Returns the opening hours for awty: the open minutes in the local time of Kathmandu, 5:45 h ahead of UTC.
CREATE FUNCTION camp.hours(shut integer[]) RETURNS text[] LANGUAGE sql AS $$
    WITH open AS (SELECT n, n - row_number() OVER (ORDER BY n) AS run FROM generate_series(0, 1439) AS n WHERE NOT (n + 1440 - 345) % 1440 = ANY (shut)),
    runs AS (SELECT min(n) AS first, max(n) + 1 AS last FROM open GROUP BY run)
    SELECT array_agg(format('mon-sun %s:%s-%s:%s', lpad((first / 60)::text, 2, '0'), lpad((first % 60)::text, 2, '0'),
        lpad((last / 60)::text, 2, '0'), lpad((last % 60)::text, 2, '0'))) FROM runs $$;

CREATE FUNCTION camp.replace_calendar(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    minute integer := extract(epoch FROM date_trunc('minute', clock_timestamp() AT TIME ZONE 'UTC'))::bigint / 60 % 1440;
    shut integer[] := ARRAY(SELECT (minute + 1440 + d) % 1440 FROM generate_series(-4, 8) AS d WHERE random() < 0.4);
BEGIN
    INSERT INTO camp.calendar (calendar, shut) VALUES (name, shut);
    PERFORM awty.create_calendar(name, camp.hours(shut), 'Asia/Kathmandu', replace => true);
END $$;

CREATE FUNCTION camp.watch(name text, seconds integer, more interval[], again interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first interval := make_interval(secs => seconds);
    due text := CASE name WHEN 'promise' THEN format('awty.due(since, interval %L, %L)', first, 'office') END;
BEGIN
    INSERT INTO camp.promised (rule, lengths, remind, every) VALUES (name, first || more, '1 s', again);
    PERFORM awty.watch('camp.ticket', rule => name, calendar => 'office', due => due, since => CASE WHEN due IS NULL THEN 'since' END,
        within => CASE WHEN due IS NULL THEN first END, until => 'state = ''solved''',
        stopped => CASE WHEN due IS NULL THEN 'state = ''waiting''' END, remind => '{1 s}', escalate => more, every => again,
        call => 'camp.tell', call_cleared => 'camp.tell_cleared', existing => 'all', replace => true);
    PERFORM awty.alter(name, timeout => '6 s', retry_after => '1 s');
END $$;
CREATE FUNCTION camp.hold(name text, ticket bigint, ends timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM awty.hold(entity_name, ticket, name, 'campaign', ends) FROM awty.rule WHERE rule = name;
    INSERT INTO camp.quiet (rule, alert, until) SELECT name, id, coalesce(ends, 'infinity') FROM awty.alert
    WHERE rule = name AND entity_key = ticket::text AND cleared_at IS NULL;
END $$;
CREATE FUNCTION camp.release(name text, ticket bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM awty.release(entity_name, ticket, name) FROM awty.rule WHERE rule = name;
    INSERT INTO camp.quiet (rule, alert, until) SELECT name, id, '-infinity' FROM awty.alert
    WHERE rule = name AND entity_key = ticket::text AND cleared_at IS NULL;
END $$;
CREATE FUNCTION camp.pause(name text, ends timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camp.quiet (rule, until) VALUES (name, ends);
    PERFORM awty.pause(name, 'campaign', ends);
END $$;
CREATE FUNCTION camp.resume(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camp.quiet (rule, until) VALUES (name, '-infinity');
    PERFORM awty.resume(name);
END $$;

-- Computes the row's stops from the log. stopped is the start of a stop that still lasts.
CREATE FUNCTION camp.stops(ticket bigint, OUT stops tstzrange[], OUT stopped timestamptz, OUT written timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    entry camp.ticket_log;
    clock timestamptz;
    ended timestamptz;
    is_new boolean := true;
BEGIN
    stops := '{}';
    FOR entry IN
        SELECT * FROM camp.ticket_log AS l WHERE l.id = ticket AND n >= coalesce((
            SELECT max(n) FROM camp.ticket_log AS other JOIN camp.ticket AS t USING (id)
            WHERE other.id = ticket AND other.since IS DISTINCT FROM t.since), 0)
        ORDER BY n
    LOOP
        IF entry.since IS DISTINCT FROM clock THEN
            stops := '{}';
            stopped := NULL;
            ended := NULL;
        END IF;
        clock := entry.since;
        IF entry.state = 'waiting' AND clock IS NOT NULL THEN
            -- If the row had an open alert, its stop begins no earlier than the alert.
            stopped := coalesce(stopped, greatest(CASE WHEN is_new THEN clock ELSE entry.began END, clock, ended, (
                SELECT max(raised_at) FROM awty.alert AS a
                WHERE a.entity_name = 'ticket' AND a.entity_key = ticket::text AND a.rule = 'ticket' AND raised_at <= entry.written
                    AND (cleared_at IS NULL OR cleared_at > entry.written))));
        ELSIF stopped IS NOT NULL THEN
            IF stopped < entry.began THEN
                stops := stops || tstzrange(stopped, entry.began);
                ended := entry.began;
            END IF;
            stopped := NULL;
        END IF;
        is_new := entry.state IS NULL;
        written := entry.written;
    END LOOP;
END $$;

CREATE FUNCTION camp.moved(t timestamptz, stops tstzrange[], shut integer[]) RETURNS timestamptz STRICT LANGUAGE plpgsql AS $$
DECLARE
    stop tstzrange;
    length interval;
BEGIN
    FOREACH stop IN ARRAY stops LOOP
        length := camp.open_time(lower(stop), upper(stop), shut);
        IF lower(stop) < t AND length > '0' THEN t := camp.later(t, length, shut); END IF;
    END LOOP;
    RETURN t;
END $$;

CREATE VIEW camp.expected AS
SELECT t.id, t.since, t.state, p.rule, p.lengths, p.remind, p.every, p.promised_at, o.shut, o.replaced_at, s.stopped, s.stops, t.written,
    l.due, f.id AS check_id, f.next_check_at, f.attempt, pg_xact_commit_timestamp(f.xmin) AS moved_at,
    a.id AS alert, a.level, a.due_at, a.since AS alert_since, a.raised_at, a.escalated_at, a.told, a.told_at, a.reminded_at, a.held_by, a.held_until,
    r.walk = 'done' AND NOT EXISTS (SELECT FROM awty.future_job AS w
        WHERE w.job = p.rule AND w.entity_name IN ('awty.sweep', 'awty.backfill') AND w.next_check_at < now() + interval '1 h') AS is_settled
FROM (SELECT t.*, s.* FROM camp.ticket AS t CROSS JOIN LATERAL camp.stops(t.id) AS s OFFSET 0) AS t
CROSS JOIN (SELECT DISTINCT ON (rule) p.*, pg_xact_commit_timestamp(p.xmin) AS promised_at FROM camp.promised AS p ORDER BY rule, n DESC) AS p
CROSS JOIN (SELECT shut, pg_xact_commit_timestamp(c.xmin) AS replaced_at FROM camp.calendar AS c WHERE calendar = 'office' ORDER BY n DESC LIMIT 1) AS o
JOIN awty.rule AS r ON r.rule = p.rule
CROSS JOIN LATERAL (SELECT CASE p.rule WHEN 'ticket' THEN t.stops ELSE '{}' END AS stops, CASE p.rule WHEN 'ticket' THEN t.stopped END AS stopped) AS s
CROSS JOIN LATERAL (
    SELECT array_agg(camp.moved(CASE WHEN n = 1 OR p.rule = 'ticket' THEN camp.later(t.since, length, o.shut)
        ELSE camp.later(camp.later(t.since, p.lengths[1], o.shut), length, o.shut) END, s.stops, o.shut) ORDER BY n) AS due
    FROM unnest(p.lengths) WITH ORDINALITY AS u (length, n)) AS l
LEFT JOIN awty.future_job AS f ON f.entity_name = r.entity_name AND f.entity_key = t.id::text AND f.job = p.rule
LEFT JOIN awty.alert AS a ON a.rule = p.rule AND a.entity_key = t.id::text AND a.cleared_at IS NULL;

-- Returns the time by which awty must next act on a row, or NULL if the row needs no check.
CREATE FUNCTION camp.next_at(e camp.expected) RETURNS timestamptz LANGUAGE sql
RETURN CASE
    WHEN e.stopped IS NOT NULL THEN NULL
    WHEN e.held_by IS NOT NULL THEN least(e.held_until, e.due[e.level + 1])
    WHEN coalesce(e.level, 0) = 0 THEN least(e.due[1], (
        -- Omits a reminder whose time had passed when awty first computed the time.
        SELECT r FROM camp.moved(camp.earlier(camp.later(e.since, e.lengths[1], e.shut), e.remind, e.shut), e.stops, e.shut) AS r
        WHERE r > greatest(e.written, e.promised_at + interval '5 s', e.replaced_at) AND r + interval '6 s' < e.due[1] AND (r > e.reminded_at) IS NOT FALSE))
    WHEN e.told_at IS NULL OR e.told_at < coalesce(e.escalated_at, e.raised_at) THEN e.raised_at
    WHEN e.level < cardinality(e.due) THEN e.due[e.level + 1]
    WHEN e.every IS NOT NULL AND NOT EXISTS (SELECT FROM unnest(e.stops) AS stop WHERE upper(stop) > e.told_at) THEN camp.later(e.told_at, e.every, e.shut)
END;

-- Returns the calendar's definition that was committed at time t, and the period in which it was valid.
CREATE FUNCTION camp.calendar_at(name text, t timestamptz, OUT shut integer[], OUT since timestamptz, OUT until timestamptz) LANGUAGE sql AS $$
    SELECT c.shut, at, next FROM (SELECT shut, at, lead(at) OVER (ORDER BY at) AS next FROM (
        SELECT shut, pg_xact_commit_timestamp(xmin) AS at FROM camp.calendar WHERE calendar = name) AS c) AS c
    WHERE at <= t ORDER BY at DESC LIMIT 1 $$;

-- Returns the width of the longest slot, which limits the delay of a check.
CREATE FUNCTION camp.slot() RETURNS interval LANGUAGE sql IMMUTABLE RETURN interval '3 s';

-- Returns contradictions between awty's tables and the logs. counted has the counts that awty.job_status had before the
-- snapshot.
CREATE FUNCTION camp.broken_deadlines(clock_was_set boolean, counted jsonb) RETURNS TABLE (promise text, what text) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    expected camp.expected[] := ARRAY(SELECT e FROM camp.expected AS e WHERE NOT clock_was_set);
BEGIN
    -- P12: only a late row has an open alert of level 1 or above, and only one.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'an alert is open:', a.*, 'but', t.*), 600)
    FROM (SELECT a.*, count(*) OVER (PARTITION BY rule, entity_key) AS open FROM awty.alert AS a
          WHERE cleared_at IS NULL AND rule IN ('ticket', 'promise')) AS a
    LEFT JOIN camp.ticket AS t ON t.id::text = a.entity_key
    WHERE open > 1 OR t.id IS NULL OR t.since IS NULL OR t.state = 'solved' OR (a.rule = 'ticket' AND a.since <> t.since);

    -- P12: `told` counts the committed calls for an alert.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'told', told, 'but', tellings, 'tellings, the last', last, 'of alert', alert), 600)
    FROM (SELECT alert, count(*) AS tellings, max(t.told) AS last FROM camp.telling AS t GROUP BY 1) AS t
    FULL JOIN (SELECT id AS alert, told FROM awty.alert WHERE rule IN ('ticket', 'promise') AND told > 0) AS a USING (alert)
    WHERE told IS DISTINCT FROM tellings OR told IS DISTINCT FROM last;

    -- P6: the functions run as the role of the rule.
    RETURN QUERY SELECT 'P6', concat_ws(' ', 'a function of the rule ran as another role:', t.*)
    FROM (TABLE camp.telling UNION ALL TABLE camp.solving) AS t WHERE role <> 'frank';

    -- P15: each cleared alert that was reported at level 1 or above has one check that calls call_cleared. Other alerts
    -- have none. A check that is done has called it once.
    RETURN QUERY SELECT 'P15', left(concat_ws(' ', 'alert', a.id, a.*, 'told', told.level, 'has', c.checks, 'checks,', c.done, 'done, and', s.calls, 'calls'), 600)
    FROM awty.alert AS a
    CROSS JOIN LATERAL (SELECT max(level) AS level FROM camp.telling AS t WHERE t.alert = a.id) AS told
    CROSS JOIN LATERAL (SELECT count(*) AS calls FROM camp.solving AS s WHERE s.alert = a.id) AS s
    CROSS JOIN LATERAL (SELECT count(*) AS checks, count(*) FILTER (WHERE outcome = 'done') AS done FROM (
        SELECT NULL AS outcome FROM awty.future_job WHERE entity_name = 'awty.cleared' AND entity_key = a.id::text
        UNION ALL SELECT outcome FROM awty.future_job_history WHERE entity_name = 'awty.cleared' AND entity_key = a.id::text) AS c) AS c
    WHERE a.rule IN ('ticket', 'promise')
        AND (checks <> (cleared_at IS NOT NULL AND coalesce(told.level, 0) > 0)::integer OR calls <> done);

    -- P12: awty counts a row once, at the commit that makes the row met or late. A crash loses counts.
    RETURN QUERY SELECT 'P12', concat_ws(' ', s.job, 'counts', s.met, 'met and', s.late, 'late; there are', m.met, 'and', l.late)
    FROM jsonb_to_recordset(counted) AS s (job text, met bigint, late bigint)
    CROSS JOIN LATERAL (SELECT count(*) AS met FROM awty.future_job_history AS h WHERE h.job = s.job AND outcome = 'met') AS m
    CROSS JOIN LATERAL (SELECT count(*) AS late FROM awty.alert AS a WHERE a.rule = s.job AND raised_at IS NOT NULL) AS l
    WHERE s.met > m.met OR s.late > l.late;

    IF clock_was_set THEN RETURN; END IF;

    -- P12: a transaction that solves a waiting row ends its check as met, or clears its alert of level 1 or above. A
    -- sweep after a change of the calendar may clear the alert while this transaction is writing.
    RETURN QUERY
    WITH solved AS (
        SELECT id, began, at, rule FROM (
            SELECT l.id, l.began, l.state, l.since, lag(l.state) OVER w AS before, lag(l.since) OVER w AS clock, pg_xact_commit_timestamp(l.xmin) AS at,
                count(*) OVER (PARTITION BY l.id, pg_xact_commit_timestamp(l.xmin)) AS writes
            FROM camp.ticket_log AS l WINDOW w AS (PARTITION BY l.id ORDER BY n)) AS l
        CROSS JOIN unnest('{ticket,promise}'::text[]) AS rule
        WHERE state = 'solved' AND before IN ('open', 'waiting') AND clock IS NOT NULL AND writes = 1),
    met AS (
        SELECT entity_key::bigint AS id, job AS rule, pg_xact_commit_timestamp(h.xmin) AS at FROM awty.future_job_history AS h
        WHERE job IN ('ticket', 'promise') AND outcome = 'met'),
    over AS (
        SELECT entity_key::bigint AS id, a.rule, pg_xact_commit_timestamp(a.xmin) AS at FROM awty.alert AS a
        WHERE a.rule IN ('ticket', 'promise') AND level > 0 AND cleared_at IS NOT NULL)
    SELECT 'P12', left(concat_ws(' ', 'solved', s.id, 'for', s.rule, 'at', s.at, 'met', count(m.id), 'late', count(o.id),
        'alerts', (SELECT string_agg(concat_ws(' ', a, pg_xact_commit_timestamp(a.xmin)), ', ' ORDER BY a.id DESC) FROM awty.alert AS a
            WHERE a.rule = s.rule AND a.entity_key = s.id::text AND coalesce(a.cleared_at, s.at) > s.at - interval '10 s'),
        'ended', (SELECT string_agg(concat_ws(' ', h, pg_xact_commit_timestamp(h.xmin)), ', ' ORDER BY h.finished_at DESC) FROM awty.future_job_history AS h
            WHERE h.job = s.rule AND h.entity_key = s.id::text AND h.finished_at > s.at - interval '10 s'),
        'written', (SELECT string_agg(concat_ws(' ', l, pg_xact_commit_timestamp(l.xmin)), ', ' ORDER BY n DESC) FROM camp.ticket_log AS l
            WHERE l.id = s.id AND l.written > s.at - interval '10 s')), 3000)
    FROM solved AS s LEFT JOIN met AS m USING (id, rule, at) LEFT JOIN over AS o USING (id, rule, at)
    GROUP BY s.id, s.began, s.at, s.rule HAVING count(m.id) + count(o.id) <> 1 AND NOT (count(m.id) + count(o.id) = 0 AND EXISTS (
        SELECT FROM over AS other WHERE other.id = s.id AND other.rule = s.rule AND other.at BETWEEN s.began AND s.at));
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'met, but the row was not solved:', h.*), 600) FROM awty.future_job_history AS h
    WHERE job IN ('ticket', 'promise') AND outcome = 'met' AND NOT EXISTS (SELECT FROM camp.ticket_log AS l
        WHERE l.id = h.entity_key::bigint AND l.state = 'solved' AND pg_xact_commit_timestamp(l.xmin) = pg_xact_commit_timestamp(h.xmin))
    -- While awty reads older rows, it may add the check of a row that a client is just solving. A run then ends the
    -- check.
    AND NOT (h.started_at IS NOT NULL AND 'solved' = (SELECT l.state FROM camp.ticket_log AS l
        WHERE l.id = h.entity_key::bigint AND pg_xact_commit_timestamp(l.xmin) <= h.finished_at ORDER BY n DESC LIMIT 1));
    -- P12: the alert has the due time that follows from the log, and no level comes early.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'another due time:', e.*, 'after', (
        SELECT string_agg(l::text, ', ' ORDER BY n DESC) FROM camp.ticket_log AS l WHERE l.id = e.id)), 2000) FROM unnest(expected) AS e
    WHERE is_settled AND (due_at <> due[1] OR level > 0 AND due[1] > now() AND stopped IS NULL);
    RETURN QUERY SELECT 'P2', left(concat_ws(' ', 'an early level:', e.*), 900) FROM unnest(expected) AS e
    WHERE is_settled AND (level = 1 OR level > 1 AND stops = '{}' AND stopped IS NULL) AND coalesce(escalated_at, raised_at) > greatest(promised_at, replaced_at, (
            SELECT min(l.written) FROM camp.ticket_log AS l WHERE l.id = e.id AND n > coalesce((
                SELECT max(n) FROM camp.ticket_log AS o WHERE o.id = e.id AND o.since IS DISTINCT FROM e.since), 0)))
        AND NOT coalesce(escalated_at, raised_at) >= due[level];

    -- P12: each row that needs a check has a check at that time, or at the next opening. A new calendar or rule does
    -- not move a check that already has the right time.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'no check at', n, 'for', e.*), 900)
    FROM camp.expected AS e CROSS JOIN LATERAL camp.next_at(e) AS n
    WHERE is_settled AND e.since IS NOT NULL AND e.state <> 'solved'
        AND CASE WHEN stopped IS NOT NULL THEN check_id IS NULL AND coalesce(level, 0) < cardinality(due)
            ELSE n IS NOT NULL AND (check_id IS NULL OR attempt = 0
                AND next_check_at > camp.opened(greatest(n, moved_at, e.written, replaced_at, promised_at) + camp.slot(), shut) + 2 * camp.slot()) END;

    -- P12: awty makes no call for a row that is stopped, solved or gone.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'told:', t.*, 'at', c.at, 'though', l.*), 600) FROM camp.telling AS t
    CROSS JOIN LATERAL (SELECT pg_xact_commit_timestamp(t.xmin) AS at) AS c
    CROSS JOIN LATERAL (SELECT l.* FROM camp.ticket_log AS l WHERE l.id = t.id AND pg_xact_commit_timestamp(l.xmin) < c.at ORDER BY n DESC LIMIT 1) AS l
    WHERE l.since IS NULL OR l.state IS DISTINCT FROM 'open' AND NOT (l.state = 'waiting' AND t.rule = 'promise');

    -- P12: awty makes no call during a hold or a pause. A run may be in progress when a pause begins.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'told:', t.*, 'in the hold', q.*), 600) FROM camp.telling AS t
    CROSS JOIN LATERAL (SELECT q.* FROM camp.quiet AS q WHERE q.alert = t.alert AND pg_xact_commit_timestamp(q.xmin) < pg_xact_commit_timestamp(t.xmin)
        ORDER BY n DESC LIMIT 1) AS q
    WHERE t.at < q.until;
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'told:', t.*, 'in the pause', q.*), 600) FROM camp.telling AS t
    CROSS JOIN LATERAL (SELECT q.*, pg_xact_commit_timestamp(q.xmin) AS began FROM camp.quiet AS q
        WHERE q.rule = t.rule AND alert IS NULL AND pg_xact_commit_timestamp(q.xmin) < t.began ORDER BY n DESC LIMIT 1) AS q
    WHERE t.began > q.began + interval '1 s' AND t.at < q.until;

    -- P12: no call is due in closed time. A call that begins in closed time begins at most one slot after its own slot.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'told in closed time:', t.*, o.*), 600) FROM camp.telling AS t
    CROSS JOIN LATERAL camp.calendar_at('office', t.began) AS o
    WHERE o.since < t.began - interval '10 s' AND (o.until > pg_xact_commit_timestamp(t.xmin)) IS NOT FALSE
        AND NOT camp.is_open(t.began, o.shut) AND NOT camp.is_open(t.began - 2 * camp.slot(), o.shut)
        AND NOT camp.is_open(t.began + interval '1 s', o.shut);

    -- P12: an alert's level never goes down. awty repeats the call for a level only after the time every, or after a
    -- hold.
    RETURN QUERY SELECT 'P12', left(concat_ws(' ', 'told again:', t.*, 'after', b.*), 600)
    FROM camp.telling AS t JOIN camp.telling AS b ON b.alert = t.alert AND b.told = t.told - 1
    CROSS JOIN LATERAL camp.calendar_at('office', t.began) AS o
    LEFT JOIN LATERAL (SELECT p.*, pg_xact_commit_timestamp(p.xmin) AS promised_at FROM camp.promised AS p
        WHERE p.rule = t.rule AND pg_xact_commit_timestamp(p.xmin) <= t.began ORDER BY n DESC LIMIT 1) AS p ON true
    WHERE t.level < b.level OR t.level = b.level AND t.level > 0
        AND NOT EXISTS (SELECT FROM camp.quiet AS q WHERE q.alert = t.alert AND pg_xact_commit_timestamp(q.xmin) < pg_xact_commit_timestamp(t.xmin))
        AND p.promised_at < b.began AND o.since < b.began AND (o.until > pg_xact_commit_timestamp(t.xmin)) IS NOT FALSE
        AND (t.level < cardinality(p.lengths) OR p.every IS NULL OR t.at < camp.later(b.began - camp.slot(), p.every, o.shut));
END $$;

-- P11: a repetition with a calendar has no occurrence in closed time. The keys of these repetitions end in c.
CREATE FUNCTION camp.closed_occurrences() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT left(concat_ws(' ', h.*, o.*), 600) FROM awty.future_job_history AS h
    CROSS JOIN LATERAL camp.calendar_at(left(entity_key, -1), first_check_at) AS o
    WHERE entity_name = 'again' AND entity_key LIKE '%c' AND outcome NOT IN ('cancelled', 'replaced') AND id NOT IN (SELECT check_id FROM camp.placed)
        AND o.since < first_check_at - interval '10 s' AND (o.until > finished_at) IS NOT FALSE AND NOT camp.is_open(first_check_at, o.shut) $$;

ALTER TABLE camp.ticket OWNER TO frank;
ALTER FUNCTION camp.tell(awty.alert) OWNER TO frank;
ALTER FUNCTION camp.tell_cleared(awty.alert) OWNER TO frank;
GRANT ALL ON camp.ticket TO PUBLIC;
GRANT SELECT, INSERT ON camp.promised, camp.quiet, camp.telling, camp.solving TO frank;
GRANT SELECT, INSERT ON camp.calendar TO PUBLIC;
