-- Lists each catalog entry of an extension in a line, without OIDs. All lines together are the extension's picture.
-- Only pictures of one server are comparable, because versions of PostgreSQL differ.
WITH ext AS (
    SELECT * FROM pg_extension WHERE extname = $1
), member AS (
    SELECT d.classid, d.objid FROM pg_depend AS d, ext
    WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = ext.oid AND d.deptype = 'e'
), rel AS (
    SELECT c.*, c.oid::regclass::text AS name FROM pg_class AS c JOIN member AS m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
), index AS (
    SELECT i.*, rel.name, c.reloptions FROM pg_index AS i JOIN rel ON rel.oid = i.indrelid JOIN pg_class AS c ON c.oid = i.indexrelid
), part AS ( -- parts of members, which are no members themselves
    SELECT 'pg_class'::regclass AS classid, indexrelid AS objid FROM index
    UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c JOIN rel ON rel.oid = c.conrelid
    UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger AS t JOIN rel ON rel.oid = t.tgrelid
    UNION ALL SELECT 'pg_policy'::regclass, p.oid FROM pg_policy AS p JOIN rel ON rel.oid = p.polrelid
    UNION ALL SELECT 'pg_type'::regclass, t.oid FROM pg_type AS t JOIN rel ON t.oid = rel.reltype
    UNION ALL SELECT 'pg_extension'::regclass, ext.oid FROM ext
)
SELECT line FROM (
    SELECT 'member: ' || pg_describe_object(classid, objid, 0) AS line FROM member
    UNION ALL
    -- Shows objects of classes that this query does not list yet.
    SELECT 'not shown: ' || pg_describe_object(classid, objid, 0) FROM member
    WHERE classid <> ALL ('{pg_class,pg_proc,pg_namespace,pg_event_trigger}'::regclass[])
      AND (classid <> 'pg_type'::regclass OR objid IN (SELECT t.oid FROM pg_type AS t WHERE t.typtype NOT IN ('c', 'b') OR t.typtype = 'b' AND t.typelem = 0))
    UNION ALL
    SELECT concat_ws(' ', 'extension:', extowner::regrole, extnamespace::regnamespace, extrelocatable) FROM ext
    UNION ALL
    SELECT concat_ws(' ', 'dumped:', c.oid::regclass, nullif(c.condition, '')) FROM ext, unnest(extconfig, extcondition) AS c (oid, condition)
    UNION ALL
    SELECT concat_ws(' ', 'schema:', n.nspname, n.nspowner::regrole, (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(n.nspacl) AS a))
    FROM pg_namespace AS n JOIN member AS m ON m.classid = 'pg_namespace'::regclass AND m.objid = n.oid
    UNION ALL
    SELECT concat_ws(' ', 'relation:', name, relkind, relpersistence, relowner::regrole, 'options', reloptions,
        'toast', (SELECT t.reloptions FROM pg_class AS t WHERE t.oid = rel.reltoastrelid), 'am', (SELECT amname FROM pg_am WHERE oid = relam),
        'security', relrowsecurity, relforcerowsecurity, 'identity', relreplident, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid),
        'acl', (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(relacl) AS a))
    FROM rel
    UNION ALL
    -- Includes column numbers, by which the library reads rows. Omits pg_attver, which only says when a column was last
    -- altered.
    SELECT concat_ws(' ', 'column:', name, attnum, attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'not null' END,
        'collation', CASE WHEN attcollation <> 0 THEN attcollation::regcollation END, 'default', pg_get_expr(d.adbin, d.adrelid), 'identity',
        nullif(attidentity, ''), 'generated', nullif(attgenerated, ''), 'storage', attstorage, attcompression, 'statistics',
        coalesce(attstattarget::integer, -1), 'options',
        (SELECT array_agg(o ORDER BY o) FROM unnest(attoptions) AS o WHERE o NOT LIKE 'pg_attver=%'), 'dropped', attisdropped, 'acl', attacl)
    FROM pg_attribute AS a JOIN rel ON rel.oid = a.attrelid LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attnum > 0
    UNION ALL
    SELECT concat_ws(' ', 'constraint:', name, conname, contype, pg_get_constraintdef(c.oid), 'validated', convalidated, 'inherited', coninhcount, conislocal)
    FROM pg_constraint AS c JOIN rel ON rel.oid = c.conrelid
    UNION ALL
    SELECT concat_ws(' ', 'index:', pg_get_indexdef(indexrelid), reloptions, 'valid', indisvalid, 'clustered', indisclustered, 'identity',
        indisreplident)
    FROM index
    UNION ALL
    SELECT concat_ws(' ', 'view:', name, pg_get_viewdef(oid)) FROM rel WHERE relkind IN ('v', 'm')
    UNION ALL
    SELECT concat_ws(' ', 'sequence:', name, s.seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle, 'of',
        (SELECT pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) FROM pg_depend AS d
         WHERE d.classid = 'pg_class'::regclass AND d.objid = rel.oid AND d.deptype IN ('a', 'i')))
    FROM pg_sequence AS s JOIN rel ON rel.oid = s.seqrelid
    UNION ALL
    SELECT concat_ws(' ', 'function:',
        CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid)
            ELSE (SELECT concat_ws(' ', p.oid::regprocedure, p.proparallel, to_jsonb(a) - 'aggfnoid') FROM pg_aggregate AS a WHERE a.aggfnoid = p.oid) END, p.proowner::regrole, 'support', p.prosupport::regproc,
        'acl', (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(p.proacl) AS a))
    FROM pg_proc AS p JOIN member AS m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
    UNION ALL
    SELECT concat_ws(' ', 'row type:', t.oid::regtype, t.typowner::regrole, 'acl', t.typacl) FROM pg_type AS t JOIN rel ON t.oid = rel.reltype
    UNION ALL
    SELECT concat_ws(' ', 'trigger:', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled) FROM pg_trigger AS t JOIN rel ON rel.oid = t.tgrelid
    UNION ALL
    SELECT concat_ws(' ', 'event trigger:', e.evtname, e.evtevent, e.evtowner::regrole, e.evtfoid::regprocedure, 'enabled', e.evtenabled, e.evttags)
    FROM pg_event_trigger AS e JOIN member AS m ON m.classid = 'pg_event_trigger'::regclass AND m.objid = e.oid
    UNION ALL
    SELECT concat_ws(' ', 'policy:', name, polname, polcmd, polpermissive, CASE WHEN polroles <> '{0}' THEN polroles::regrole[] END, 'using',
        pg_get_expr(polqual, polrelid), 'check', pg_get_expr(polwithcheck, polrelid))
    FROM pg_policy AS p JOIN rel ON rel.oid = p.polrelid
    UNION ALL
    SELECT concat_ws(' ', 'comment:', pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description) FROM pg_description AS d
    WHERE (d.classoid, d.objoid) IN (SELECT classid, objid FROM member UNION ALL SELECT classid, objid FROM part)
    UNION ALL
    -- pg_dump assumes that an extension's objects have their initial privileges.
    SELECT concat_ws(' ', 'initial privileges:', pg_describe_object(i.classoid, i.objoid, i.objsubid),
        (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(i.initprivs) AS a))
    FROM pg_init_privs AS i JOIN member AS m ON (m.classid, m.objid) = (i.classoid, i.objoid)
) AS picture
ORDER BY line COLLATE "C"
