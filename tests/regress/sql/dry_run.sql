\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET ROLE regress_shop;
CREATE TABLE shop.tried (n integer PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, key text);
CREATE FUNCTION shop.try(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.tried VALUES (1, j.entity_key);
    CASE j.args ->> 'do'
        WHEN 'again' THEN RETURN j.next_check_at + interval '1 day';
        WHEN 'past' THEN RETURN '2001-01-01';
        WHEN 'far' THEN RETURN 'infinity';
        WHEN 'raise' THEN RAISE 'no stock' USING ERRCODE = 'AW042';
        WHEN 'deferred' THEN INSERT INTO shop.tried VALUES (1, 'twice');
        WHEN 'slow' THEN PERFORM pg_sleep(600);
        WHEN 'cancel' THEN PERFORM awty.cancel(j.entity_name, j.entity_key); RETURN 'infinity';
        WHEN 'replace' THEN PERFORM awty.schedule(j.entity_name, j.entity_key, j.job, after => '1 h'); RETURN 'infinity';
        WHEN 'row' THEN RAISE '%', (j.id > 0, j.job, j.entity_name, j.entity_key, j.first_check_at = j.next_check_at, j.check_count, j.attempt, j.held, j.scheduled_by::regrole);
        ELSE NULL;
    END CASE;
    RETURN NULL;
END $$;
SELECT awty.register('try', 'shop.try', timeout => '100 ms', max_attempts => 2);
-- A superuser calls awty.dry_run() after SET ROLE. The function must not regain the superuser's rights.
CREATE FUNCTION shop.escape(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF j.args ->> 0 IS NOT NULL THEN EXECUTE j.args ->> 0; END IF;
    RAISE '% with the rights of %', current_user, current_setting('role');
END $$;
CREATE TABLE shop.escaped (n integer);
CREATE FUNCTION shop.at_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RESET ROLE; RETURN NULL; END';
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON shop.escaped DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shop.at_commit();
CREATE FUNCTION shop.as_other() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ SELECT set_config('role', 'none', false) $$;
SELECT awty.register('escape', 'shop.escape');
SELECT message FROM awty.dry_run('orders', 1, 'escape');
SELECT what, t.sqlstate, t.message FROM unnest(ARRAY['RESET ROLE', 'SET ROLE postgres', 'SET LOCAL ROLE NONE', 'SET SESSION AUTHORIZATION DEFAULT', 'RESET ALL',
    $$SELECT set_config('role', 'none', true)$$, 'SELECT shop.as_other()', 'INSERT INTO shop.escaped VALUES (1)', 'CREATE TEMP TABLE t (n integer)', 'PREPARE p AS SELECT 1',
    'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'LISTEN c', 'DISCARD ALL', 'COMMIT', $$SELECT awty.schedule('orders', 2, 'escape', after => '1 h')$$,
    $$SELECT awty.dry_run('orders', 2, 'escape')$$]) AS what
    CROSS JOIN LATERAL awty.dry_run('orders', 1, 'escape', to_jsonb(what)) AS t;
ALTER FUNCTION shop.escape SET role = 'postgres';
SELECT sqlstate, message FROM awty.dry_run('orders', 1, 'escape');
ALTER FUNCTION shop.escape RESET role;
ALTER FUNCTION shop.escape SECURITY DEFINER;
SELECT sqlstate, message FROM awty.dry_run('orders', 1, 'escape', '["RESET ROLE"]');
SELECT current_user, current_setting('role');
SELECT count(*) FROM awty.future_job;
SELECT awty.unregister('escape');
-- In awty.dry_run(), the call function of a rule cannot change the role, either.
CREATE TABLE shop.orders (id integer PRIMARY KEY, placed_at timestamptz NOT NULL, status text);
CREATE FUNCTION shop.tell(alert awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RESET ROLE; END $$;
SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status = 'SHIPPED'$$, within => '1 h', rule => 'late', call => 'shop.tell');
INSERT INTO shop.orders VALUES (1, now(), 'NEW'), (2, now() - interval '1 d', 'NEW');
SELECT outcome, next_check_at > now(), sqlstate, message FROM unnest('{1,2}'::text[]) AS key CROSS JOIN LATERAL awty.dry_run('orders', key, 'late');
SELECT awty.unwatch('late') > 0;
DROP FUNCTION shop.tell;
DROP TABLE shop.orders;
DROP TABLE shop.escaped;
DROP FUNCTION shop.escape, shop.as_other, shop.at_commit;
RESET ROLE;
SELECT test.raises($$SELECT awty.dry_run('orders', 1, 'try')$$);

\c - regress_shop
\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
-- Slots are compared with those of the statement's start and end, because a minute may begin meanwhile.
SELECT what, t.id IS NULL AS none, t.job, t.entity_name, t.entity_key, t.slot BETWEEN awty.next_slot(now()) AND awty.next_slot(clock_timestamp()) AS next_slot,
    t.outcome, (SELECT d FROM unnest('{1 min, 1 day}'::interval[]) AS d WHERE t.next_check_at - d BETWEEN awty.next_slot(now()) AND awty.next_slot(clock_timestamp())) AS again,
    t.sqlstate, t.message
FROM unnest('{done,again,past,far,raise,deferred,slow,cancel,row}'::text[]) AS what CROSS JOIN LATERAL awty.dry_run('orders', 1, 'try', jsonb_build_object('do', what)) AS t;
SELECT (SELECT count(*) FROM shop.tried), (SELECT count(*) FROM awty.future_job), (SELECT count(*) FROM awty.future_job_history WHERE job = 'try');

-- awty.dry_run() calls the function with the pending check's own args, even if the check is held or not due.
SELECT awty.schedule('orders', what, 'try', after => '1 day', args => jsonb_build_object('do', what)) > 0 FROM unnest('{done,again,raise,cancel,replace}'::text[]) AS what;
SELECT awty.hold('orders', 'again');
CREATE TEMP TABLE was AS SELECT f.id, f.ctid::text AS place, f.xmin::text AS made, f.xmax::text AS locked FROM awty.future_job AS f;
SELECT t.entity_key, t.id = f.id AS same, t.slot = f.next_check_at AS slot, t.outcome, t.next_check_at > now() AS again, t.sqlstate, t.message
FROM awty.future_job AS f CROSS JOIN LATERAL awty.dry_run(f.entity_name, f.entity_key, f.job, '{"do": "past"}') AS t ORDER BY 1;
-- The call neither changes nor locks the check, so a worker may run it meanwhile.
BEGIN;
SELECT outcome FROM awty.dry_run('orders', 'done', 'try');
SELECT count(*) FROM awty.future_job AS f JOIN was AS w ON w.id = f.id AND w.place = f.ctid::text AND w.made = f.xmin::text AND w.locked = f.xmax::text;
COMMIT;
SELECT count(*) FROM shop.tried;

-- A failure of the last attempt ends the check.
RESET ROLE;
SELECT awty.alter('try', max_attempts => 1);
SELECT outcome, sqlstate, message FROM awty.dry_run('orders', 'raise', 'try');
SELECT outcome, sqlstate, message FROM awty.dry_run('orders', 'none', 'try', '{"do": "slow"}');
-- If another session cancels the statement, the statement ends, and no failure of the job is reported.
SET statement_timeout = '50 ms';
SELECT awty.dry_run('orders', 'none', 'try', '{"do": "slow"}');
RESET statement_timeout;

-- The client's transaction continues, with its work, settings, cursors and deferred constraints.
BEGIN;
INSERT INTO shop.tried VALUES (7, 'mine');
DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 3);
FETCH c;
SELECT outcome, sqlstate FROM awty.dry_run('orders', 1, 'try', '{"do": "raise"}');
SELECT outcome, sqlstate FROM awty.dry_run('orders', 1, 'try');
FETCH c;
INSERT INTO shop.tried VALUES (7, 'again');
UPDATE shop.tried SET n = 8 WHERE key = 'again';
COMMIT;
SELECT * FROM shop.tried ORDER BY n;
FETCH c;
CLOSE c;
SELECT current_setting('search_path'), current_user = 'regress_shop';

CREATE FUNCTION shop.tidy() RETURNS void LANGUAGE sql AS 'INSERT INTO shop.tried VALUES (9)';
CREATE FUNCTION shop.set(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS $$ SELECT CASE WHEN j[1].args IS NULL THEN ARRAY[j[1].next_check_at + interval '1 h'] ELSE '{}' END $$;
SELECT awty.register('tidy', 'shop.tidy'), awty.register('set', 'shop.set');
SELECT job, outcome, next_check_at - slot AS again, sqlstate, message FROM awty.dry_run('orders', 1, 'tidy')
UNION ALL SELECT job, outcome, next_check_at - slot, sqlstate, message FROM awty.dry_run('orders', 1, 'set')
UNION ALL SELECT job, outcome, next_check_at - slot, sqlstate, message FROM awty.dry_run('orders', 1, 'set', '1') ORDER BY 1, 4 NULLS FIRST;
DROP FUNCTION shop.tidy;
SELECT next_check_at > now() AS again, outcome, sqlstate, message FROM awty.dry_run('orders', 1, 'tidy');
SELECT count(*) FROM shop.tried WHERE n = 9;

SELECT test.raises(call) FROM unnest(ARRAY[$$SELECT awty.dry_run('orders', 1, 'tyr')$$, $$SELECT awty.dry_run('orders', NULL::text, 'try')$$,
    $$SELECT awty.dry_run('orders', 1, NULL)$$, $$SELECT awty.dry_run('orders', '', 'try')$$]) AS call;
SELECT test.sqlstate($$SELECT awty.dry_run('orders', 1)$$);
\c - regress_eve
\pset format unaligned
\pset tuples_only on
SELECT test.raises($$SELECT awty.dry_run('orders', 1, 'try')$$);
\c - postgres
\pset format unaligned
\pset tuples_only on
SELECT awty.unregister(job) >= 0 FROM awty.job;
DROP FUNCTION shop.try, shop.set;
DROP TABLE shop.tried;
