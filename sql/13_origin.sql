-- The database in which the rows of awty were written, by which awty recognises a restored or cloned database.

-- Which database the rows of awty were written in. pg_dump carries this row, and not the sequence below.
CREATE TABLE awty_internal.origin (
    identity        bigint NOT NULL,
    database        oid NOT NULL,
    restored_at     timestamptz,
    CONSTRAINT origin_pkey PRIMARY KEY (identity)
);

COMMENT ON TABLE awty_internal.origin IS 'Which database the rows of awty were written in; see awty.adopt()';
COMMENT ON COLUMN awty_internal.origin.identity IS 'Value of awty_internal.identity there';
COMMENT ON COLUMN awty_internal.origin.database IS 'OID of the database there; 0: the server was restored from a backup since';
COMMENT ON COLUMN awty_internal.origin.restored_at IS 'Restore of the server after which the rows were adopted; NULL: none';

-- The identity of this installation: a random number, drawn once. It is kept in a sequence because that is what
-- pg_upgrade carries along, while pg_dump (the sequence is not registered below) and logical replication leave it
-- behind. An OID would not do: two fresh servers, loaded with the same script, give the same OIDs.
CREATE SEQUENCE awty_internal.identity;
COMMENT ON SEQUENCE awty_internal.identity IS 'Random number of this installation, drawn once; pg_upgrade carries it along, a dump does not';

SELECT setval('awty_internal.identity'::regclass,
    ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::pg_catalog.bit(60)::int8 + 1);

SELECT pg_extension_config_dump('awty_internal.origin', '');

CREATE FUNCTION awty.adopt() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'adopt_wrapper';

COMMENT ON FUNCTION awty.adopt() IS 'Says that this restored or cloned database is the one to run its checks; for the owner of the database';
