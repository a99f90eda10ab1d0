-- A run first writes one row of camp.effect. bad means that the run will fail, and own means that it removes its own
-- check.
--
-- Runs count violations by sequences, because a rollback does not undo nextval().

CREATE EXTENSION awty;
CREATE SCHEMA camp;

CREATE TABLE camp.effect (
    check_id    bigint NOT NULL,
    check_count integer NOT NULL,
    attempt     integer NOT NULL,
    slot        timestamptz NOT NULL,
    began       timestamptz NOT NULL,
    xid         bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    act         text NOT NULL,
    bad         boolean NOT NULL,
    own         boolean NOT NULL
);

-- The transaction that schedules a check also writes a row here. wanted is the earliest time of a run, or NULL if the
-- check may run earlier.
CREATE TABLE camp.placed (check_id bigint NOT NULL, wanted timestamptz);

CREATE TABLE camp.orders (
    key       text NOT NULL,
    job       text NOT NULL,
    due       timestamptz NOT NULL,
    args      jsonb NOT NULL,
    shipped   boolean NOT NULL DEFAULT false,
    check_id  bigint,
    cancelled bigint,
    PRIMARY KEY (key, job)
);

-- Causes serialization conflicts, because each client reads all rows and changes its own row.
CREATE TABLE camp.account (owner text PRIMARY KEY, amount bigint NOT NULL);

CREATE TABLE camp.parent (id bigint PRIMARY KEY);
CREATE TABLE camp.child (parent bigint REFERENCES camp.parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE camp.late (code text);
CREATE SEQUENCE camp.overlaps;
CREATE SEQUENCE camp.early;
CREATE SEQUENCE camp.leaks;

CREATE TABLE camp.mended (check_id bigint PRIMARY KEY);

CREATE FUNCTION camp.fail_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'not at the end either' USING ERRCODE = NEW.code;
END $$;
CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON camp.late DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION camp.fail_late();

CREATE FUNCTION camp.watch_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR NEW.due IS DISTINCT FROM OLD.due THEN
        NEW.check_id := awty.schedule('orders', NEW.key, NEW.job, at => NEW.due, args => NEW.args);
        INSERT INTO camp.placed VALUES (NEW.check_id, NEW.due);
    ELSIF NEW.shipped AND NOT OLD.shipped THEN
        NEW.cancelled := awty.cancel('orders', NEW.key, NEW.job);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch BEFORE INSERT OR UPDATE ON camp.orders FOR EACH ROW EXECUTE FUNCTION camp.watch_order();

CREATE FUNCTION camp.schedule(entity text, key text, job text, due float8, args jsonb, conflict text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    due timestamptz := clock_timestamp() + make_interval(secs => due);
    id bigint := awty.schedule(entity, key, job, at => due, args => args, on_conflict => conflict);
BEGIN
    INSERT INTO camp.placed VALUES (id, CASE WHEN conflict = 'replace' AND entity <> 'again' THEN due END);
    RETURN id;
END $$;

CREATE FUNCTION camp.is_own(j awty.future_job) RETURNS boolean LANGUAGE sql
RETURN j.args->>'act' IN ('own_cancel', 'own_replace')
    OR (j.args->>'act' IN ('cancel', 'replace') AND j.entity_name = 'orders' AND j.args->>'other' = j.entity_key);

CREATE FUNCTION camp.finds_something() RETURNS boolean LANGUAGE sql
RETURN coalesce(current_setting('camp.mark', true), '') <> ''
    OR EXISTS (SELECT FROM pg_prepared_statements)
    OR EXISTS (SELECT FROM pg_cursors WHERE is_holdable)
    OR to_regclass('pg_temp.left_over') IS NOT NULL;

CREATE FUNCTION camp.leave_something(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND classid = 8) THEN
        PERFORM nextval('camp.leaks');
        RAISE LOG 'campaign: check % has a lock of the run before', j.id;
    END IF;
    PERFORM pg_advisory_lock(8, (j.id % 2147483647)::integer);
    PERFORM set_config('camp.mark', j.id::text, false);
    SET lock_timeout = 1;
    CREATE TEMPORARY TABLE left_over (a integer);
    EXECUTE 'PREPARE mine AS SELECT 1';
    EXECUTE 'DECLARE mine CURSOR WITH HOLD FOR SELECT 1';
END $$;

CREATE FUNCTION camp.enter(j awty.future_job, bad boolean) RETURNS void LANGUAGE plpgsql AS $$
-- The later time is the start of the run, because the clock may have been set back after now().
DECLARE began timestamptz := greatest(clock_timestamp(), now());
BEGIN
    IF NOT pg_try_advisory_xact_lock(7, (j.id % 2147483647)::integer) THEN
        PERFORM nextval('camp.overlaps');
        RAISE LOG 'campaign: two runs of check % at once, the other one by %', j.id, (
            SELECT string_agg(concat_ws(' ', a.backend_type, l.pid, a.usename, a.state, a.wait_event, a.xact_start), ', ')
            FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid)
            WHERE l.locktype = 'advisory' AND l.classid = 7 AND l.objid = (j.id % 2147483647)::oid AND l.granted
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()));
    END IF;
    IF began < j.next_check_at THEN
        PERFORM nextval('camp.early');
        RAISE LOG 'campaign: check % runs before its slot %', j.id, j.next_check_at;
    END IF;
    IF camp.finds_something() THEN
        PERFORM nextval('camp.leaks');
        RAISE LOG 'campaign: check % finds what the run before has left', j.id;
    END IF;
    INSERT INTO camp.effect (check_id, check_count, attempt, slot, began, act, bad, own)
    VALUES (j.id, j.check_count, j.attempt, j.next_check_at, began, j.args->>'act', bad, camp.is_own(j));
END $$;

CREATE FUNCTION camp.is_bad(j awty.future_job) RETURNS boolean LANGUAGE sql
RETURN j.args->>'act' IN ('error', 'timeout', 'stubborn', 'orphan', 'late', 'commit', 'session') AND j.attempt < coalesce((j.args->>'times')::integer, 1);

CREATE FUNCTION camp.answer(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    CASE
        WHEN j.args->>'act' = 'past' THEN RETURN j.next_check_at;
        WHEN j.args->>'act' = 'far' THEN RETURN now() + interval '400 days';
        WHEN j.check_count < (j.args->>'again')::integer THEN RETURN clock_timestamp() + random() * interval '2 s';
        ELSE RETURN NULL;
    END CASE;
END $$;

CREATE FUNCTION camp.crash() RETURNS void SECURITY DEFINER LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('COPY (SELECT) TO PROGRAM %L', 'kill -9 ' || pg_backend_pid());
END $$;

CREATE FUNCTION camp.watch(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE bad boolean := camp.is_bad(j);
BEGIN
    PERFORM camp.enter(j, bad);
    PERFORM pg_sleep((j.args->>'nap')::float8);
    CASE j.args->>'act'
        WHEN 'error' THEN
            IF bad THEN RAISE EXCEPTION 'this run fails'; END IF;
        WHEN 'timeout' THEN
            IF bad THEN
                PERFORM pg_sleep(20); -- ends at once if the clock is set ahead meanwhile
                RAISE EXCEPTION 'this run was not cancelled in time';
            END IF;
        WHEN 'stubborn' THEN
            WHILE bad LOOP
                BEGIN
                    PERFORM pg_sleep(5);
                EXCEPTION WHEN query_canceled THEN
                    NULL;
                END;
            END LOOP;
        WHEN 'orphan' THEN
            IF bad THEN INSERT INTO camp.child VALUES (-1); END IF;
        WHEN 'late' THEN
            IF bad THEN INSERT INTO camp.late VALUES ('40001'); END IF;
        WHEN 'commit' THEN
            IF bad THEN -- COMMIT fails, because the foreign key forbids emptying only one table
                CREATE TEMPORARY TABLE emptied (id integer PRIMARY KEY) ON COMMIT DELETE ROWS;
                CREATE TEMPORARY TABLE kept (id integer REFERENCES emptied);
            END IF;
        WHEN 'session' THEN
            PERFORM camp.leave_something(j);
            IF bad THEN RAISE EXCEPTION 'this run fails, and leaves something'; END IF;
        WHEN 'family' THEN
            INSERT INTO camp.child VALUES (j.id * 10 + j.check_count);
            INSERT INTO camp.parent VALUES (j.id * 10 + j.check_count);
        WHEN 'temp' THEN
            CREATE TEMPORARY TABLE mine (a integer);
            INSERT INTO mine VALUES (1);
        WHEN 'notify' THEN
            PERFORM pg_notify('camp', j.entity_key);
        WHEN 'deadlock' THEN
            PERFORM pg_advisory_xact_lock(9, (j.args->>'first')::integer);
            PERFORM pg_sleep(0.3);
            PERFORM pg_advisory_xact_lock(9, 3 - (j.args->>'first')::integer);
        WHEN 'place' THEN
            PERFORM camp.schedule('child', j.id::text, j.job, 1,
                '{"act": "ok", "nap": 0, "again": 0}', 'replace');
        WHEN 'cancel' THEN
            PERFORM awty.cancel('orders', j.args->>'other');
        WHEN 'replace' THEN
            PERFORM camp.schedule('orders', j.args->>'other', j.job, 1,
                '{"act": "ok", "nap": 0, "again": 0}', 'replace');
        WHEN 'nudge' THEN
            IF j.args->>'other' <> j.entity_key THEN
                PERFORM camp.schedule('orders', j.args->>'other', j.job, 1,
                    '{"act": "ok", "nap": 0, "again": 0}', 'earliest');
            END IF;
        WHEN 'own_keep' THEN
            PERFORM camp.schedule(j.entity_name, j.entity_key, j.job, 0, '{}', 'keep');
        WHEN 'own_cancel' THEN
            PERFORM awty.cancel(j.entity_name, j.entity_key, j.job);
        WHEN 'own_replace' THEN
            PERFORM camp.schedule(j.entity_name, j.entity_key, j.job, 0,
                '{"act": "ok", "nap": 0, "again": 1}', 'replace');
        WHEN 'leave' THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
            PERFORM pg_sleep(1);
        WHEN 'crash' THEN
            IF NOT EXISTS (SELECT FROM camp.mended WHERE check_id = j.id) THEN PERFORM camp.crash(); END IF;
        ELSE NULL;
    END CASE;
    RETURN camp.answer(j);
END $$;

CREATE FUNCTION camp.watch_all(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE plpgsql AS $$
DECLARE
    one awty.future_job;
    answers timestamptz[] := '{}';
BEGIN
    FOREACH one IN ARRAY j LOOP
        PERFORM camp.enter(one, camp.is_bad(one));
        answers := answers || camp.answer(one);
    END LOOP;
    FOREACH one IN ARRAY j LOOP
        IF camp.is_bad(one) THEN RAISE EXCEPTION 'one of these fails'; END IF;
    END LOOP;
    RETURN answers;
END $$;

GRANT USAGE ON SCHEMA camp TO PUBLIC;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA camp TO PUBLIC;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA camp TO PUBLIC;
