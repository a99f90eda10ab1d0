-- Whatever \d+, \df+ or a schema browser shows of awty says what it is.
\pset format unaligned
\pset tuples_only on

-- Without a comment: none. (Row types are members too from PostgreSQL 17 on.)
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

-- In one style: a capital first, no final dot, on one line.
SELECT description FROM pg_description AS d JOIN pg_depend AS e ON (e.classid, e.objid) = (d.classoid, d.objoid)
WHERE e.refclassid = 'pg_extension'::regclass AND e.deptype = 'e'
    AND e.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty')
    AND (description ~ E'\\.$|\n' OR description !~ '^([A-Z]|awty\.)');
-- Settings as PostgreSQL's own: sentences.
SELECT name, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'awty.%'
    AND NOT (short_desc ~ '^[A-Z].*\.$' AND extra_desc ~ '^[A-Z].*\.$');

-- What a function's comment says of its choices is what the function accepts.
SELECT obj_description('awty.schedule(text, text, text, timestamptz, interval, jsonb, text)'::regprocedure, 'pg_proc');
SELECT col_description('awty.future_job_history'::regclass, attnum) FROM pg_attribute
WHERE attrelid = 'awty.future_job_history'::regclass AND attname = 'outcome';

-- Functions that look are not compiled: their plans are long, and what they read is short. Without the setting: none.
SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
WHERE p.pronamespace = 'awty'::regnamespace AND l.lanname = 'sql' AND 'jit=off' <> ALL (coalesce(p.proconfig, '{}'));
