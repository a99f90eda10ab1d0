-- Lists the contract with users and their tools: names, signatures, columns, constraints, settings and rights.
\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;

SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ') → ' || pg_get_function_result(p.oid),
       p.prokind, p.provolatile AS volatile, p.proparallel AS parallel, p.prosecdef AS definer, p.proisstrict AS strict
FROM pg_proc AS p WHERE p.pronamespace = ANY ('{awty,awty_internal}'::regnamespace[]) ORDER BY 1;

SELECT a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attnotnull THEN 'not null' END, nullif(c.collname, 'default')
FROM pg_attribute AS a JOIN pg_class AS r ON r.oid = a.attrelid LEFT JOIN pg_collation AS c ON c.oid = a.attcollation
WHERE r.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND r.relkind IN ('r', 'p', 'v') AND NOT r.relispartition AND a.attnum > 0
ORDER BY a.attrelid::regclass::text, a.attnum;

-- Every constraint has an explicit name. From PostgreSQL 18 on, NOT NULL is a constraint too.
SELECT conrelid::regclass, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND contype <> 'n' AND conparentid = 0
    AND conrelid::regclass::text !~ '_\d+$'
ORDER BY conrelid::regclass::text, conname;
SELECT 'generated name', conrelid::regclass, conname
FROM pg_constraint WHERE connamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND contype = 'c' AND conname ~ '_check\d*$';

-- Lists tables without a primary key: none. Without a key, DELETE fails in a FOR ALL TABLES publication.
SELECT 'no primary key', c.oid::regclass
FROM pg_class AS c WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND c.relkind = 'r'
    AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary);

-- No column has a type that makes pg_upgrade refuse the cluster.
SELECT 'stops pg_upgrade', attrelid::regclass, attname, atttypid::regtype
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND attnum > 0 AND NOT attisdropped
    AND atttypid::regtype::text ~ '^reg' AND atttypid NOT IN ('regrole'::regtype, 'regrole[]'::regtype, 'regclass'::regtype);

SELECT pg_get_indexdef(i.indexrelid) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND NOT c.relispartition
    AND i.indrelid::regclass::text !~ '_\d+$' ORDER BY c.relname;

-- PUBLIC may only read six tables and call the functions.
SELECT c.relname, c.relkind, g.privilege_type, g.grantee::regrole
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS g
WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND g.grantee <> c.relowner ORDER BY c.relname, c.relkind, g.privilege_type, g.grantee;
SELECT 'not owned by the extension''s owner', c.oid::regclass FROM pg_class AS c, pg_extension AS e
WHERE e.extname = 'awty' AND c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND c.relowner <> e.extowner;
SELECT 'row security is off', c.oid::regclass FROM pg_class AS c
WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity
    AND c.relname !~ '^future_job_history_\d+$';
SELECT polrelid::regclass, polname, polcmd, polpermissive, polroles, polwithcheck IS NOT NULL FROM pg_policy
WHERE polrelid::regclass::text LIKE 'awty%.%' ORDER BY polname, polrelid::regclass::text;
SELECT p.proname FROM pg_proc AS p
WHERE p.pronamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND NOT has_function_privilege('regress_eve', p.oid, 'EXECUTE') ORDER BY 1;
SELECT t.typname, array_agg(g.privilege_type || ' ' || g.grantee::regrole) FROM pg_type AS t, aclexplode(t.typacl) AS g
WHERE t.typnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) GROUP BY 1;

-- Triggers fire with any session_replication_role, because restores and subscriptions also change jobs.
SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger
WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = ANY ('{awty,awty_internal}'::regnamespace[])) AND NOT tgisinternal ORDER BY tgname;

-- All settings apply to the whole server, so no role can change a setting for itself.
SELECT name, vartype, unit, context, min_val, max_val, boot_val FROM pg_settings WHERE name LIKE 'awty.%' ORDER BY name;
