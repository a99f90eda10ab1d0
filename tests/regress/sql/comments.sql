-- Every object that \d+, \df+ or a schema browser shows has a COMMENT.
\pset format unaligned
\pset tuples_only on

-- Objects without a COMMENT: none. (From PostgreSQL 17 on, row types are members of the extension too.)
SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty')
    AND obj_description(objid, classid::regclass::name) IS NULL
    AND classid <> 'pg_type'::regclass;
SELECT a.attrelid::regclass, a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND (c.relkind IN ('r', 'p') OR c.relkind = 'v' AND c.relnamespace = 'awty'::regnamespace) AND NOT c.relispartition
    AND a.attnum > 0 AND NOT a.attisdropped AND col_description(a.attrelid, a.attnum) IS NULL;
SELECT name FROM pg_settings WHERE name LIKE 'awty.%' AND (coalesce(short_desc, '') = '' OR coalesce(extra_desc, '') = '');
SELECT 'extension' FROM pg_extension WHERE extname = 'awty' AND obj_description(oid, 'pg_extension') IS NULL;

-- One style: a capital first, no full stop at the end, on one line.
SELECT description FROM pg_description AS d JOIN pg_depend AS e ON (e.classid, e.objid) = (d.classoid, d.objoid)
WHERE e.refclassid = 'pg_extension'::regclass AND e.deptype = 'e'
    AND e.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty')
    AND (description ~ E'\\.$|\n' OR description !~ '^([A-Z]|awty\.)');
-- Descriptions of settings are sentences, as PostgreSQL's own.
SELECT name, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'awty.%'
    AND NOT (short_desc ~ '^[A-Z].*\.$' AND extra_desc ~ '^[A-Z].*\.$');

-- The COMMENTs list the choices that the functions accept.
SELECT obj_description('awty.schedule(text, text, text, timestamptz, interval, jsonb, text)'::regprocedure, 'pg_proc');
SELECT col_description('awty.future_job_history'::regclass, attnum) FROM pg_attribute
WHERE attrelid = 'awty.future_job_history'::regclass AND attname = 'outcome';

-- Reading functions run without JIT, because their plans are long and they read few rows. Functions without jit = off: none.
SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
WHERE p.pronamespace = 'awty'::regnamespace AND l.lanname = 'sql' AND 'jit=off' <> ALL (coalesce(p.proconfig, '{}'));
