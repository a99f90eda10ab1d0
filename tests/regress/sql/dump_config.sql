-- A dump contains the tables and sequences that have users' data.
\pset format unaligned
\pset tuples_only on
SELECT 'carried', config::regclass, filter = '' AS whole
FROM pg_extension, unnest(extconfig, extcondition) AS c (config, filter) WHERE extname = 'awty' ORDER BY config::regclass::text;

-- Lists the tables that no dump contains, because they describe only this server.
SELECT 'left behind', c.oid::regclass
FROM pg_class AS c JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE e.extname = 'awty' AND c.relkind IN ('r', 'p', 'S') AND c.oid <> ALL (e.extconfig) ORDER BY c.oid::regclass::text;

-- An identity column's sequence must belong to the extension. Otherwise awty could not register the sequence for dumps.
SELECT pg_get_serial_sequence('awty.future_job', 'id');
SELECT deptype FROM pg_depend WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_extension'::regclass
    AND objid = 'awty.future_job_id_seq'::regclass;
