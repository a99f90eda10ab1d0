\pset format unaligned
\pset tuples_only on

-- Lists the objects without a COMMENT: none. From PostgreSQL 17 on, row types are members of the extension too.
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

SELECT description FROM pg_description AS d JOIN pg_depend AS e ON (e.classid, e.objid) = (d.classoid, d.objoid)
WHERE e.refclassid = 'pg_extension'::regclass AND e.deptype = 'e'
    AND e.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty')
    AND (description ~ E'\\.$|\n' OR description !~ '^([A-Z]|awty\.)');
-- The description of a setting is a sentence, as in PostgreSQL's own settings.
SELECT name, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'awty.%'
    AND NOT (short_desc ~ '^[A-Z].*\.$' AND extra_desc ~ '^[A-Z].*\.$');

SELECT obj_description('awty.schedule(text, text, text, timestamptz, interval, jsonb, text)'::regprocedure, 'pg_proc');
SELECT col_description('awty.future_job_history'::regclass, attnum) FROM pg_attribute
WHERE attrelid = 'awty.future_job_history'::regclass AND attname = 'outcome';

-- Lists the reading functions without jit = off: none. JIT is off, because their plans are long and read few rows.
SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
WHERE p.pronamespace = 'awty'::regnamespace AND l.lanname = 'sql' AND 'jit=off' <> ALL (coalesce(p.proconfig, '{}'));
