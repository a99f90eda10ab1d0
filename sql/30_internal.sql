-- awty, part 7: what awty keeps for itself. Nobody else may read or write these.

-- What a pending check has used so far. A row appears when a run did not end its check, and leaves with the check.
CREATE TABLE awty_internal.check_stat (
    check_id        bigint NOT NULL,
    runs            integer NOT NULL DEFAULT 0,
    run_time        interval NOT NULL DEFAULT '0',
    started_at      timestamptz,
    lateness        interval,
    crashes         integer NOT NULL DEFAULT 0,
    exits           integer NOT NULL DEFAULT 0,
    sqlstate        text COLLATE "C",
    message         text,
    context         text,
    failed_at       timestamptz,
    used_before     timestamptz,
    used_through    timestamptz,
    CONSTRAINT check_stat_pkey PRIMARY KEY (check_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE awty_internal.check_stat IS 'What pending checks have used so far';
COMMENT ON COLUMN awty_internal.check_stat.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty_internal.check_stat.runs IS 'Runs in all, failed ones too';
COMMENT ON COLUMN awty_internal.check_stat.run_time IS 'Time of all its runs together';
COMMENT ON COLUMN awty_internal.check_stat.started_at IS 'Start of the last run';
COMMENT ON COLUMN awty_internal.check_stat.lateness IS 'Start of the last run minus its slot';
COMMENT ON COLUMN awty_internal.check_stat.crashes IS 'How often in a row the server went down while this check was about to run or running';
COMMENT ON COLUMN awty_internal.check_stat.exits IS 'How often in a row a run of this check ended its own process';
COMMENT ON COLUMN awty_internal.check_stat.sqlstate IS 'SQLSTATE of the last run, if it failed';
COMMENT ON COLUMN awty_internal.check_stat.message IS 'Message of that error, cut at 4096 bytes';
COMMENT ON COLUMN awty_internal.check_stat.context IS 'Where that error was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON COLUMN awty_internal.check_stat.failed_at IS 'When the last run failed; NULL: it did not';
COMMENT ON COLUMN awty_internal.check_stat.used_before IS 'Of a repetition: slots of the plan before this one are used up, and not as the first slot says';
COMMENT ON COLUMN awty_internal.check_stat.used_through IS 'Of a repetition: moments that come by then are used up, and not as the first slot says';

-- Checks that run alone, because the server or a process went down with them.
CREATE INDEX check_stat_suspects_idx ON awty_internal.check_stat (check_id) WHERE crashes > 0 OR exits > 0;

-- Checks whose last run failed.
CREATE INDEX check_stat_failing_idx ON awty_internal.check_stat (check_id) WHERE failed_at IS NOT NULL;

-- What the runs of each job have come to. Workers count in shared memory; the maintainer stores it here once a minute, and reads it back
-- after a start. A dump leaves it behind.
CREATE TABLE awty_internal.job_stat (
    job             text COLLATE "C" NOT NULL,
    runs            bigint NOT NULL,
    done            bigint NOT NULL,
    failed          bigint NOT NULL,
    timed_out       bigint NOT NULL,
    retries         bigint NOT NULL,
    other           bigint NOT NULL,
    run_time        interval NOT NULL,
    max_run_time    interval NOT NULL,
    last_run_at     timestamptz,
    last_end_at     timestamptz,
    last_outcome    text COLLATE "C",
    last_success_at timestamptz,
    last_failure_at timestamptz,
    late_10ms       bigint NOT NULL,
    late_100ms      bigint NOT NULL,
    late_1s         bigint NOT NULL,
    late_10s        bigint NOT NULL,
    late_1min       bigint NOT NULL,
    later           bigint NOT NULL,
    stats_since     timestamptz NOT NULL,
    CONSTRAINT job_stat_pkey PRIMARY KEY (job)
) WITH (fillfactor = 50);

COMMENT ON TABLE awty_internal.job_stat IS 'What the runs of each job have come to, as it was last stored; see awty.job_status';
COMMENT ON COLUMN awty_internal.job_stat.job IS 'Name of the job; empty for the other jobs';
COMMENT ON COLUMN awty_internal.job_stat.runs IS 'Runs';
COMMENT ON COLUMN awty_internal.job_stat.done IS 'Checks that ended as done';
COMMENT ON COLUMN awty_internal.job_stat.failed IS 'Checks that ended as failed';
COMMENT ON COLUMN awty_internal.job_stat.timed_out IS 'Checks that ended as timed_out';
COMMENT ON COLUMN awty_internal.job_stat.retries IS 'Failed runs that are tried again';
COMMENT ON COLUMN awty_internal.job_stat.other IS 'Checks that a run ended otherwise';
COMMENT ON COLUMN awty_internal.job_stat.run_time IS 'Time of all runs together';
COMMENT ON COLUMN awty_internal.job_stat.max_run_time IS 'Time of the longest run';
COMMENT ON COLUMN awty_internal.job_stat.last_run_at IS 'Start of the last run';
COMMENT ON COLUMN awty_internal.job_stat.last_end_at IS 'When a run last ended a check';
COMMENT ON COLUMN awty_internal.job_stat.last_outcome IS 'How that check ended';
COMMENT ON COLUMN awty_internal.job_stat.last_success_at IS 'End of the last run that did not fail';
COMMENT ON COLUMN awty_internal.job_stat.last_failure_at IS 'End of the last run that failed or ended its check with a problem';
COMMENT ON COLUMN awty_internal.job_stat.late_10ms IS 'Runs that started up to 10 ms after their slot';
COMMENT ON COLUMN awty_internal.job_stat.late_100ms IS 'Later, up to 100 ms';
COMMENT ON COLUMN awty_internal.job_stat.late_1s IS 'Later, up to 1 s';
COMMENT ON COLUMN awty_internal.job_stat.late_10s IS 'Later, up to 10 s';
COMMENT ON COLUMN awty_internal.job_stat.late_1min IS 'Later, up to 1 min';
COMMENT ON COLUMN awty_internal.job_stat.later IS 'Later than that';
COMMENT ON COLUMN awty_internal.job_stat.stats_since IS 'Since when this is counted';

-- Who said that a check stands still, and why. A check that awty itself holds after crashes has no row here. The run of a check may
-- still be under way; what it leaves pending is held then.
CREATE TABLE awty_internal.hold (
    check_id        bigint NOT NULL,
    held_by         regrole NOT NULL,
    held_at         timestamptz NOT NULL,
    note            text,
    repetition_id   bigint,
    CONSTRAINT hold_pkey PRIMARY KEY (check_id)
);

CREATE INDEX hold_repetition_idx ON awty_internal.hold (repetition_id) WHERE repetition_id IS NOT NULL;

COMMENT ON TABLE awty_internal.hold IS 'Who said that a check stands still; see awty.hold()';
COMMENT ON COLUMN awty_internal.hold.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty_internal.hold.held_by IS 'Who said so';
COMMENT ON COLUMN awty_internal.hold.held_at IS 'Since when it is held';
COMMENT ON COLUMN awty_internal.hold.note IS 'Why, in that role''s words';
COMMENT ON COLUMN awty_internal.hold.repetition_id IS 'Whose occurrence it was, where its run was under way: the next one may be pending by the commit of awty.hold()';

-- The checks that a worker is about to run, written and flushed before it runs them. A row that is still there after a
-- crash names the suspects.
CREATE TABLE awty_internal.in_flight (
    worker          integer NOT NULL,
    check_ids       bigint[] NOT NULL,
    CONSTRAINT in_flight_pkey PRIMARY KEY (worker)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_cost_delay = 0,
    -- Written for each turn of a worker: to compress it would take longer than many a run.
    toast_tuple_target = 8160
);

COMMENT ON TABLE awty_internal.in_flight IS 'The checks that each worker is about to run; a row that outlives a crash names the suspects';
COMMENT ON COLUMN awty_internal.in_flight.worker IS 'The number of the worker''s entry in shared memory';
COMMENT ON COLUMN awty_internal.in_flight.check_ids IS 'Numbers of the checks, as in awty.future_job';

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

-- What a dump has to carry: the registered jobs, what is pending and what it has used, what is finished and lies in no
-- daily partition (those are ordinary tables to pg_dump), and where all that came from.
SELECT pg_extension_config_dump('awty.job', '');
SELECT pg_extension_config_dump('awty.future_job', '');
SELECT pg_extension_config_dump('awty.future_job_id_seq', '');
SELECT pg_extension_config_dump('awty_internal.repetition', '');
SELECT pg_extension_config_dump('awty.rule', '');
SELECT pg_extension_config_dump('awty_internal.rule_function', '');
SELECT pg_extension_config_dump('awty.alert', '');
SELECT pg_extension_config_dump('awty.future_job_history', '');
SELECT pg_extension_config_dump('awty_internal.future_job_history_default', '');
SELECT pg_extension_config_dump('awty_internal.check_stat', '');
SELECT pg_extension_config_dump('awty_internal.hold', '');
SELECT pg_extension_config_dump('awty_internal.origin', '');
