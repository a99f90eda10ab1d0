\pset format unaligned
\pset tuples_only on
SELECT current_database() AS database
\gset
CREATE DATABASE awty_regress_hostile;
\c awty_regress_hostile
\pset format unaligned
\pset tuples_only on

-- A schema named awty makes the installation fail, and stays unchanged.
CREATE SCHEMA awty AUTHORIZATION regress_mallory;
CREATE TABLE awty.job (name text);
\set VERBOSITY sqlstate
CREATE EXTENSION awty;
\set VERBOSITY default
SELECT count(*) FROM pg_extension WHERE extname = 'awty';
DROP SCHEMA awty CASCADE;

-- An ordinary role cannot install awty, even as the owner of the database.
ALTER DATABASE awty_regress_hostile OWNER TO regress_mallory;
SET ROLE regress_mallory;
\set VERBOSITY sqlstate
CREATE EXTENSION awty;
\set VERBOSITY default

-- PostgreSQL's own functions, operators, types and tables have namesakes in this schema. The install script must not
-- use them.
CREATE SCHEMA traps;
GRANT ALL ON SCHEMA traps TO PUBLIC;
CREATE FUNCTION traps.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped as %', current_user; END $$;
CREATE FUNCTION traps.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT clock_timestamp() WHERE traps.trap()';
CREATE FUNCTION traps.md5(text) RETURNS text LANGUAGE sql AS 'SELECT $1 WHERE traps.trap()';
CREATE FUNCTION traps.octet_length(text) RETURNS integer LANGUAGE sql AS 'SELECT 1 WHERE traps.trap()';
CREATE FUNCTION traps.pg_has_role(regrole, text) RETURNS boolean LANGUAGE sql AS 'SELECT traps.trap()';
CREATE FUNCTION traps.pg_has_role(oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT traps.trap()';
CREATE FUNCTION traps.pg_extension_config_dump(regclass, text) RETURNS void LANGUAGE sql AS 'SELECT FROM traps.trap()';
CREATE FUNCTION traps.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT traps.trap()';
CREATE OPERATOR traps.= (leftarg = text, rightarg = text, procedure = traps.equal);
CREATE FUNCTION traps.equal(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT traps.trap()';
CREATE OPERATOR traps.<> (leftarg = oid, rightarg = oid, procedure = traps.equal);
CREATE OPERATOR traps.= (leftarg = oid, rightarg = oid, procedure = traps.equal);
CREATE FUNCTION traps.less(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT traps.trap()';
CREATE OPERATOR traps.>= (leftarg = integer, rightarg = integer, procedure = traps.less);
CREATE OPERATOR traps.> (leftarg = integer, rightarg = integer, procedure = traps.less);
CREATE DOMAIN traps.text AS pg_catalog.text CHECK (traps.trap());
CREATE DOMAIN traps.interval AS pg_catalog.interval CHECK (traps.trap());
CREATE TABLE traps.pg_class (oid oid, relname name);
RESET ROLE;
SET search_path = traps, pg_catalog;
CREATE EXTENSION awty SCHEMA pg_catalog;
CREATE FUNCTION public.nothing(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
SELECT awty.register('job', 'public.nothing');
SELECT awty.schedule('orders', '1', 'job', after => '1 hour') OPERATOR(pg_catalog.>) 0;
SELECT awty.schedule('orders', '1', 'job', after => '2 hours') OPERATOR(pg_catalog.>) 0;
SELECT awty.next_slot('2099-01-01 00:00:01+00', 'job') OPERATOR(pg_catalog.=) '2099-01-01 00:01:00+00';
SELECT awty.allow('job', 'regress_eve'), awty.pause('job'), awty.resume('job'), awty.alter('job', max_checks => 3), awty.cancel('orders', '1');
SELECT pending, database_held FROM awty.status;
SELECT pg_catalog.pg_typeof(job), pg_catalog.pg_typeof(timeout) FROM awty.job;
GRANT USAGE ON SCHEMA awty TO regress_eve;
SET ROLE regress_eve;
SELECT job FROM awty.job;
SELECT entity_name FROM awty.future_job;
SELECT entity_name FROM awty.future_job_history;
-- PostgreSQL searches temporary objects before all schemas that are not in the search_path, such as awty.
CREATE TEMPORARY TABLE job (name text);
CREATE TEMPORARY TABLE future_job (id bigint);
CREATE TEMPORARY TABLE pg_authid (oid oid);
SELECT awty.schedule('orders', '2', 'job', after => '1 hour') OPERATOR(pg_catalog.>) 0;
RESET ROLE;
RESET search_path;

-- DROP EXTENSION is refused while functions take awty's type. CASCADE drops these functions.
\set VERBOSITY sqlstate
DROP EXTENSION awty;
\set VERBOSITY default
SET client_min_messages = warning;
DROP SCHEMA traps CASCADE;
DROP EXTENSION awty CASCADE;
RESET client_min_messages;
SELECT 'left', classid::regclass, objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid NOT IN (SELECT oid FROM pg_extension);
SELECT 'left', nspname FROM pg_namespace WHERE nspname = 'awty'
UNION ALL SELECT 'left', proname FROM pg_proc WHERE probin LIKE '%awty%'
UNION ALL SELECT 'left', relname FROM pg_class WHERE relname ~ 'future_job' AND relpersistence <> 't'
UNION ALL SELECT 'left', typname FROM pg_type AS t JOIN pg_class AS c ON c.oid = t.typrelid WHERE typname ~ 'future_job' AND relpersistence <> 't'
UNION ALL SELECT 'left', proname FROM pg_proc WHERE proname = 'nothing';
-- This session's prepared statements must also work with the tables of the new installation.
CREATE EXTENSION awty;
SELECT count(*) FROM awty.job;
CREATE FUNCTION public.nothing(awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
SELECT awty.register('job', 'public.nothing'), awty.schedule('orders', '1', 'job', after => '1 hour');
SELECT database_held FROM awty.status;
SELECT last_value AS identity FROM awty_internal.identity
\gset
DROP FUNCTION public.nothing CASCADE;
DROP EXTENSION awty;

-- ALTER DEFAULT PRIVILEGES gives other roles no rights on awty's objects, and takes no right from awty.
CREATE ROLE "regress Greedy" LOGIN;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO "regress Greedy", PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO "regress Greedy", PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO "regress Greedy", PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
CREATE EXTENSION awty;
SELECT last_value <> :identity AS another_identity FROM awty_internal.identity;
SELECT c.relname, g.privilege_type, g.grantee::regrole FROM pg_class AS c, aclexplode(c.relacl) AS g
WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND g.grantee <> c.relowner ORDER BY 1, 2, 3;
SELECT has_schema_privilege('regress Greedy', 'awty', 'USAGE'), has_schema_privilege('regress Greedy', 'awty', 'CREATE');
GRANT USAGE ON SCHEMA awty TO regress_shop;
SELECT count(*) FILTER (WHERE has_function_privilege('regress_shop', oid, 'EXECUTE')), count(*) FROM pg_proc WHERE pronamespace = ANY ('{awty,awty_internal}'::regnamespace[]);

\c :database
DROP DATABASE awty_regress_hostile;
DROP ROLE "regress Greedy";
