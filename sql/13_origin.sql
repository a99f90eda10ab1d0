-- pg_dump dumps this table's row, but not the sequence awty_internal.identity. If their values differ, the database was
-- restored from a dump.
CREATE TABLE awty_internal.origin (
    identity        bigint NOT NULL,
    database        oid NOT NULL,
    restored_at     timestamptz,
    CONSTRAINT origin_pkey PRIMARY KEY (identity)
);

COMMENT ON TABLE awty_internal.origin IS 'Database in which the rows of awty were written; see awty.adopt()';
COMMENT ON COLUMN awty_internal.origin.identity IS 'Value of awty_internal.identity in that database';
COMMENT ON COLUMN awty_internal.origin.database IS 'OID of that database; 0: the server has been restored from a backup since';
COMMENT ON COLUMN awty_internal.origin.restored_at IS 'Restore of the server after which the rows were adopted; NULL: none';

CREATE SEQUENCE awty_internal.identity;
COMMENT ON SEQUENCE awty_internal.identity IS 'Random number of this installation, drawn once; pg_upgrade keeps it, and a dump does not contain it';

SELECT setval('awty_internal.identity'::regclass,
    ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::pg_catalog.bit(60)::int8 + 1);

SELECT pg_extension_config_dump('awty_internal.origin', '');

CREATE FUNCTION awty.adopt() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'adopt_wrapper';

COMMENT ON FUNCTION awty.adopt() IS 'Declares that this restored or cloned database is the one that runs its checks; for the owner of the database';
