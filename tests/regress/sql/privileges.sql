-- Only awty's functions write to its tables. Roles have SELECT on some tables, and no other right.
\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour') > 0;
RESET ROLE;
CREATE FUNCTION test.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION test.attempts() RETURNS TABLE (relation text, statement text, state text) LANGUAGE sql AS $_$
    SELECT relation, statement, test.sqlstate(statement)
    FROM unnest('{awty.job, awty.future_job, awty.future_job_history, awty_internal.future_job_history_default, awty_internal.check_stat, awty_internal.in_flight, awty_internal.origin, awty.status}'::text[]) AS relation,
         unnest(ARRAY['SELECT * FROM %s', 'SELECT * FROM %s FOR UPDATE', 'SELECT * FROM %s FOR KEY SHARE', 'INSERT INTO %s DEFAULT VALUES',
            'DELETE FROM %s', 'TRUNCATE %s',
            'CREATE TRIGGER t BEFORE INSERT ON %s FOR EACH STATEMENT EXECUTE FUNCTION test.nothing()',
            'CREATE RULE r AS ON INSERT TO %s DO INSTEAD NOTHING', 'CREATE POLICY p ON %s USING (true)',
            'ALTER TABLE %s DISABLE ROW LEVEL SECURITY', 'ALTER TABLE %s ADD COLUMN x integer', 'ALTER TABLE %s OWNER TO CURRENT_USER',
            'DROP TABLE %s', 'CREATE INDEX ON %s ((1))', 'COMMENT ON TABLE %s IS ''x''',
            'CREATE TABLE test.child () INHERITS (%s)', 'CREATE STATISTICS test.st ON (1), (2) FROM %s', 'CREATE VIEW awty.v AS SELECT * FROM %s',
            'LOCK TABLE %s IN ROW SHARE MODE', 'LOCK TABLE %s IN ROW EXCLUSIVE MODE', 'LOCK TABLE %s IN SHARE MODE', 'LOCK TABLE %s IN ACCESS EXCLUSIVE MODE']) AS template,
         format(template, relation) AS statement
    UNION ALL
    SELECT 'awty.future_job_history', statement, test.sqlstate(statement)
    FROM unnest('{UPDATE awty.future_job_history SET message = NULL}'::text[]) AS statement
    UNION ALL
    SELECT relation, statement, test.sqlstate(statement)
    FROM (VALUES ('awty.job', 'max_checks = 1', 'x text REFERENCES awty.job'), ('awty.future_job', 'held = true', 'x bigint REFERENCES awty.future_job'),
            ('awty_internal.future_job_history_default', 'message = NULL', 'x bigint, y timestamptz, FOREIGN KEY (x, y) REFERENCES awty_internal.future_job_history_default'),
            ('awty_internal.check_stat', 'crashes = 0', 'x bigint REFERENCES awty_internal.check_stat'), ('awty_internal.in_flight', 'check_ids = ''{}''', 'x integer REFERENCES awty_internal.in_flight'),
            ('awty_internal.origin', 'database = 1', 'x bigint REFERENCES awty_internal.origin'), ('awty.status', 'database_held = false', 'x boolean REFERENCES awty.status (database_held)')) AS u (relation, change, refers),
         unnest(ARRAY[format('UPDATE %s SET %s', relation, change), format('CREATE TABLE test.refers (%s)', refers)]) AS statement
$_$;

-- PostgreSQL answers statements other than SELECT with 42501 or another error.
SET ROLE regress_shop;
SELECT count(*), count(*) FILTER (WHERE state = '42501') AS denied FROM test.attempts();
SELECT statement, state FROM test.attempts() WHERE state <> '42501' ORDER BY relation, statement;
SET ROLE regress_eve;
SELECT statement, state FROM test.attempts() WHERE state = 'ok' ORDER BY relation, statement;

\set VERBOSITY sqlstate
COPY awty_internal.check_stat TO STDOUT;
\set VERBOSITY default

SELECT statement, test.sqlstate(statement) FROM unnest(ARRAY[
    $$SELECT nextval('awty.future_job_id_seq')$$, $$SELECT setval('awty.future_job_id_seq', 1)$$, $$SELECT last_value FROM awty.future_job_id_seq$$,
    $$SELECT last_value FROM awty_internal.identity$$, $$SELECT nextval('awty_internal.identity')$$, $$SELECT awty_internal.job_changed()$$,
    'CREATE TABLE awty.mine ()', 'CREATE FUNCTION awty.mine() RETURNS integer LANGUAGE sql AS ''SELECT 1''', 'ALTER SCHEMA awty RENAME TO theirs', 'DROP SCHEMA awty CASCADE', 'CREATE TABLE awty_internal.mine ()', 'DROP SCHEMA awty_internal CASCADE',
    $$CREATE OR REPLACE FUNCTION awty.cancel(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint LANGUAGE sql AS 'SELECT 1'$$,
    'DROP EXTENSION awty', 'ALTER EXTENSION awty DROP TABLE awty.job', 'ALTER EXTENSION awty UPDATE', 'ALTER FUNCTION awty.adopt() SECURITY DEFINER']) AS statement;
CREATE TABLE test.own ();
SELECT test.sqlstate('CREATE TRIGGER t BEFORE INSERT ON test.own FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed()');
DROP TABLE test.own;

-- A role that may read all data reads every row, because a backup needs all rows.
RESET ROLE;
CREATE ROLE regress_reader IN ROLE pg_read_all_data, pg_write_all_data;
SET ROLE regress_reader;
SELECT (SELECT count(*) > 0 FROM awty.job), (SELECT count(*) > 0 FROM awty.future_job), (SELECT count(*) > 0 FROM awty.future_job_history), (SELECT count(*) > 0 FROM awty_internal.origin);
SELECT statement, test.sqlstate(statement) FROM unnest(ARRAY['INSERT INTO awty_internal.in_flight VALUES (1, ''{1}'')', 'INSERT INTO awty_internal.check_stat VALUES (1)', 'INSERT INTO awty_internal.origin VALUES (1, 1)',
    $$INSERT INTO awty.job (job, function_schema, function_name, role, set_based, timeout, max_checks, max_horizon, max_attempts, retry_after, on_missed, keep_history, registered_by, registered_at)
      VALUES ('evil', 'shop', 'unpaid', 'postgres', false, '1 s', 1, '1 day', 1, '1 s', 'run', 'all', 'postgres', now())$$]) AS statement;
WITH changed AS (DELETE FROM awty.future_job RETURNING 1) SELECT count(*) FROM changed;
WITH changed AS (UPDATE awty.job SET role = 'postgres' RETURNING 1) SELECT count(*) FROM changed;
WITH changed AS (DELETE FROM awty_internal.origin RETURNING 1) SELECT count(*) FROM changed;
RESET ROLE;
DROP ROLE regress_reader;
SELECT count(*) FROM awty.future_job;

SELECT awty.unregister('unpaid');
DROP FUNCTION test.attempts, test.nothing;
