-- awty, part 3: what awty keeps for itself. Nobody else may read or write these.

-- What a pending check has used so far. A row appears when a run did not end its check, and leaves with the check.
--
-- Columns:
--   check_id         awty.future_job.id
--   runs, run_time   runs in all, failed ones too, and their time
--   started_at, lateness
--                    of the last run
--   crashes          how often the server went down while this check was about to run or running; back to 0 when a run ends
--   exits            how often a run ended its own process; back to 0 when a run ends
CREATE TABLE awty.tally (
    check_id        bigint NOT NULL,
    runs            integer NOT NULL DEFAULT 0,
    run_time        interval NOT NULL DEFAULT '0',
    started_at      timestamptz,
    lateness        interval,
    crashes         integer NOT NULL DEFAULT 0,
    exits           integer NOT NULL DEFAULT 0,
    CONSTRAINT tally_pkey PRIMARY KEY (check_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- Checks that run alone, because the server or a process went down with them.
CREATE INDEX tally_suspects_idx ON awty.tally (check_id) WHERE crashes OPERATOR(pg_catalog.>) 0 OR exits OPERATOR(pg_catalog.>) 0;

-- The checks that a worker is about to run, written and flushed before it runs them. A row that is still there after a
-- crash names the suspects.
--
-- Columns:
--   worker           the worker's seat in shared memory
--   check_ids        awty.future_job.id of each check of the batch
CREATE TABLE awty.intent (
    worker          integer NOT NULL,
    check_ids       bigint[] NOT NULL,
    CONSTRAINT intent_pkey PRIMARY KEY (worker)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_cost_delay = 0,
    -- Written anew for each turn of a worker: to compress it would take longer than many a run.
    toast_tuple_target = 8160
);

-- Which database the rows of awty were written in. pg_dump carries this row, and not the sequence below.
--
-- Columns:
--   identity         awty.identity there
--   database         the database's OID there
CREATE TABLE awty.origin (
    identity        bigint NOT NULL,
    database        oid NOT NULL,
    CONSTRAINT origin_pkey PRIMARY KEY (identity)
);

-- The identity of this installation: a random number, drawn once. It is kept in a sequence because that is what
-- pg_upgrade carries along, while pg_dump (the sequence is not registered below) and logical replication leave it
-- behind. An OID would not do: two fresh servers, loaded with the same script, give the same OIDs.
CREATE SEQUENCE awty.identity;

SELECT pg_catalog.setval('awty.identity'::pg_catalog.regclass,
    ('x' || pg_catalog.substr(pg_catalog.md5(pg_catalog.gen_random_uuid()::pg_catalog.text), 1, 15))::pg_catalog.bit(60)::pg_catalog.int8 + 1);

-- What a dump has to carry: the registered jobs, what is pending and what it has used, what is finished and lies in no
-- daily partition (those are ordinary tables to pg_dump), and where all that came from.
SELECT pg_catalog.pg_extension_config_dump('awty.job', '');
SELECT pg_catalog.pg_extension_config_dump('awty.future_job', '');
SELECT pg_catalog.pg_extension_config_dump('awty.future_job_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('awty.future_job_history', '');
SELECT pg_catalog.pg_extension_config_dump('awty.future_job_history_default', '');
SELECT pg_catalog.pg_extension_config_dump('awty.tally', '');
SELECT pg_catalog.pg_extension_config_dump('awty.origin', '');
