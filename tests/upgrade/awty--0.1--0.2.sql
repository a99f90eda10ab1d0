-- An upgrade script to an invented version. made_up.rs makes the same changes to the install script.

\echo Use "ALTER EXTENSION awty UPDATE" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

-- The default is set in a separate statement. ADD COLUMN with a default fails if a user's table has a column of type awty.future_job.
ALTER TABLE awty.future_job ADD COLUMN priority integer;
ALTER TABLE awty.future_job ALTER COLUMN priority SET DEFAULT 0;
ALTER TABLE awty.future_job ADD CONSTRAINT future_job_priority_is_not_negative CHECK (priority >= 0);
COMMENT ON COLUMN awty.future_job.priority IS 'Which comes first';
CREATE INDEX future_job_priority_idx ON awty.future_job (priority, id) WHERE NOT held;
COMMENT ON INDEX awty.future_job_priority_idx IS 'What comes first';

CREATE TABLE awty.label (
    id      bigint GENERATED ALWAYS AS IDENTITY,
    job     text COLLATE "C" NOT NULL,
    CONSTRAINT label_pkey PRIMARY KEY (id)
) WITH (fillfactor = 80);
COMMENT ON TABLE awty.label IS 'Labels of jobs';
COMMENT ON COLUMN awty.label.id IS 'Number of the label';
COMMENT ON COLUMN awty.label.job IS 'Name of the job';
COMMENT ON SEQUENCE awty.label_id_seq IS 'Numbers of labels';
SELECT pg_catalog.pg_extension_config_dump('awty.label', '');
SELECT pg_catalog.pg_extension_config_dump('awty.label_id_seq', '');
REVOKE ALL ON awty.label, awty.label_id_seq FROM PUBLIC;
-- Revokes rights that ALTER DEFAULT PRIVILEGES may have given on the new objects. Rights on older objects stay.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('REVOKE ALL ON TABLE %s FROM %s', c.oid::pg_catalog.regclass, a.grantee::pg_catalog.regrole)
        FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.oid OPERATOR(pg_catalog.=) ANY ('{awty.label,awty.label_id_seq}'::pg_catalog.regclass[])
          AND a.grantee OPERATOR(pg_catalog.<>) c.relowner
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
GRANT SELECT ON awty.label TO PUBLIC;
ALTER TABLE awty.label ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_labels ON awty.label FOR SELECT TO PUBLIC USING (job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT j.job FROM awty.job AS j)));
CREATE TRIGGER label_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.label
    FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();
ALTER TABLE awty.label ENABLE ALWAYS TRIGGER label_changed;
ALTER TABLE awty.label ALTER job SET STATISTICS 0;

CREATE FUNCTION awty.waiting(job text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS 'SELECT pg_catalog.count(*) FROM awty.future_job AS f WHERE f.job OPERATOR(pg_catalog.=) waiting.job';
COMMENT ON FUNCTION awty.waiting(text) IS 'How many checks of a job wait';
GRANT EXECUTE ON FUNCTION awty.waiting(text) TO PUBLIC;

-- The previous version already has this function. CREATE OR REPLACE keeps its rights and its comment.
CREATE OR REPLACE FUNCTION awty.next_slot(t timestamptz, job text DEFAULT NULL) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'next_slot_wrapper';
