-- A job's role is the caller, or a role that the caller can become. The role must be able to connect, and must not have
-- more rights than the owner of the function.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_team LOGIN;
CREATE ROLE "regress ""odd"" role" LOGIN;
GRANT regress_team TO regress_shop;
CREATE FUNCTION test.register(role name, function text DEFAULT 'shop.unpaid') RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.register(%L, %L, run_as => %L)', 'team', function, role)) $$;

CREATE FUNCTION test.anybodys(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';

SET ROLE regress_shop;
SELECT test.register('regress_team');
SELECT role, registered_by FROM awty.job WHERE job = 'team';
SELECT awty.unregister('team');
SELECT test.register('regress_eve');
SELECT test.register('postgres');
SELECT test.register('regress ""odd"" role');
SELECT test.register('regress "odd" role');
SELECT test.register('regress_nobody');
SELECT test.register('');
SELECT test.register('public');
SELECT test.raises($$SELECT awty.allow('team', 'regress_nobody')$$);
SELECT count(*) FROM awty.job;

-- A caller that has lost its membership can no longer change the job.
SELECT test.register('regress_team');
RESET ROLE;
REVOKE regress_team FROM regress_shop;
SET ROLE regress_shop;
SELECT test.raises($$SELECT awty.alter('team', max_checks => 1)$$);
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'team', after => '1 hour')$$);
SELECT count(*) FROM awty.job;
SET ROLE regress_team;
SELECT test.sqlstate($$SELECT awty.unregister('team')$$);
RESET ROLE;
GRANT USAGE ON SCHEMA awty TO regress_team;
SET ROLE regress_team;
SELECT awty.unregister('team');
RESET ROLE;

-- Without CONNECT on the database, no worker can run the job.
SELECT current_database() AS database
\gset
REVOKE CONNECT ON DATABASE :"database" FROM PUBLIC;
SET ROLE regress_team;
SELECT replace(test.register('regress_team'), :'database', 'DATABASE');
RESET ROLE;
GRANT CONNECT ON DATABASE :"database" TO regress_team;
SET ROLE regress_team;
SELECT test.register('regress_team', 'test.anybodys'), awty.unregister('team');
RESET ROLE;
GRANT CONNECT ON DATABASE :"database" TO PUBLIC;

-- Before PostgreSQL 17, a worker cannot connect as a role without LOGIN.
CREATE ROLE regress_group NOLOGIN;
SET client_min_messages = warning;
SELECT CASE WHEN current_setting('server_version_num')::integer >= 170000 THEN 'ok'
    ELSE format(E'28000: role "regress_group" is not permitted to log in\nHINT: Use run_as => %L.', current_user) END
    = test.register('regress_group', 'test.anybodys') AS no_login_before_17;
RESET client_min_messages;
SELECT count(awty.unregister(job)) >= 0 FROM awty.job;

-- A role with extraordinary rights runs no function that a role with fewer rights may change.
CREATE FUNCTION test.trusted(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
CREATE FUNCTION test.trusted_set(awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql AS $$ SELECT '{}'::timestamptz[] $$;
CREATE FUNCTION test.attribute(attribute text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE ROLE regress_mighty LOGIN ' || attribute;
    GRANT regress_shop TO regress_mighty;
    RETURN NEXT attribute || ':';
    RETURN NEXT '  a lesser role''s function: ' || split_part(test.register('regress_mighty'), E'\n', 1);
    PERFORM awty.unregister(job) FROM awty.job;
    RETURN NEXT '  a superuser''s: ' || test.register('regress_mighty', 'test.trusted');
    PERFORM awty.unregister(job) FROM awty.job;
    DROP ROLE regress_mighty;
END $$;
SELECT test.attribute('SUPERUSER');
SELECT test.attribute('BYPASSRLS');
SELECT test.attribute('CREATEROLE');
SELECT test.attribute('REPLICATION');
SELECT test.attribute('IN ROLE pg_monitor');
SELECT test.attribute('IN ROLE pg_read_all_data');
SELECT test.attribute('CREATEDB');
SELECT test.attribute('INHERIT CONNECTION LIMIT 0');
CREATE ROLE regress_between IN ROLE pg_monitor;
SELECT test.attribute('IN ROLE regress_between');
SELECT test.attribute('NOINHERIT IN ROLE regress_between');
CREATE ROLE regress_above SUPERUSER;
SELECT test.attribute('IN ROLE regress_above');
DROP ROLE regress_between, regress_above;
-- The owner of the database does not count as a role with extraordinary rights.
ALTER DATABASE :"database" OWNER TO regress_team;
GRANT regress_shop TO regress_team;
SELECT test.register('regress_team'), awty.unregister('team');
ALTER DATABASE :"database" OWNER TO postgres;

-- awty examines the function again for each check, because its owner and the role may change.
SELECT awty.register('mighty', 'test.trusted'), awty.register('mighty_set', 'test.trusted_set'), awty.register('team', 'shop.unpaid', run_as => 'regress_team');
SELECT awty.schedule('orders', '1', 'mighty', after => '1 hour') > 0, awty.schedule('orders', '1', 'team', after => '1 hour') > 0;
ALTER FUNCTION test.trusted(awty.future_job) OWNER TO regress_shop;
ALTER FUNCTION test.trusted_set(awty.future_job[]) OWNER TO regress_shop;
ALTER ROLE regress_team CREATEROLE;
SELECT test.raises(format('SELECT awty.schedule(%L, %L, %L, after => %L)', 'orders', '1', job, '1 hour')) FROM unnest('{mighty, mighty_set, team}'::text[]) AS job;
SELECT awty.unregister('mighty'), awty.unregister('mighty_set'), awty.unregister('team');
ALTER ROLE regress_team NOCREATEROLE;
REVOKE regress_shop FROM regress_team;

-- A superuser writes to mallory's table, whose trigger tries to run mallory's function as superuser.
CREATE SCHEMA mallory AUTHORIZATION regress_mallory;
SET ROLE regress_mallory;
CREATE FUNCTION mallory.takeover(awty.future_job) RETURNS timestamptz LANGUAGE plpgsql
    AS $$ BEGIN ALTER ROLE regress_mallory SUPERUSER; RETURN NULL; END $$;
CREATE TABLE mallory.bait (id integer);
CREATE FUNCTION mallory.trap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM awty.register('takeover', 'mallory.takeover', run_as => current_user);
    PERFORM awty.schedule('x', '1', 'takeover', after => '0');
    RETURN NULL;
END $$;
CREATE TRIGGER trap AFTER INSERT ON mallory.bait FOR EACH ROW EXECUTE FUNCTION mallory.trap();
RESET ROLE;
SELECT test.raises('INSERT INTO mallory.bait VALUES (1)');
-- A check of mallory's own job runs as mallory, even if a superuser's INSERT schedules the check.
SET ROLE regress_mallory;
SELECT awty.register('bait', 'mallory.takeover');
CREATE OR REPLACE FUNCTION mallory.trap() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN PERFORM awty.schedule('bait', NEW.id::text, 'bait', after => '1 day'); RETURN NULL; END $$;
RESET ROLE;
INSERT INTO mallory.bait VALUES (2);
SELECT j.role, f.scheduled_by FROM awty.future_job AS f JOIN awty.job AS j ON j.job = f.job;
SELECT awty.unregister('bait');

SET client_min_messages = warning;
DROP SCHEMA mallory CASCADE;
DROP FUNCTION test.register, test.attribute, test.trusted, test.trusted_set, test.anybodys;
REVOKE ALL ON SCHEMA awty FROM regress_team;
REVOKE ALL ON DATABASE :"database" FROM regress_team;
DROP ROLE regress_team, regress_group, "regress ""odd"" role";
SELECT count(*) FROM awty.job;
