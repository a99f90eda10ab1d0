CREATE TABLE awty.future_job_history (
    id              bigint NOT NULL,
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    args            jsonb,
    first_check_at  timestamptz NOT NULL,
    next_check_at   timestamptz NOT NULL,
    scheduled_by    regrole NOT NULL,
    scheduled_at    timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz NOT NULL,
    run_time        interval NOT NULL,
    lateness        interval,
    check_count     integer NOT NULL,
    attempts        integer NOT NULL,
    outcome         text COLLATE "C" NOT NULL,
    sqlstate        text COLLATE "C",
    message         text,
    role            regrole,
    context         text
) PARTITION BY RANGE (finished_at);

-- The parent table must have no primary key. Otherwise, restoring a dump would fail, because both ATTACH PARTITION and
-- the dump would create the primary key of a partition.
CREATE TABLE awty_internal.future_job_history_default PARTITION OF awty.future_job_history (
    CONSTRAINT future_job_history_default_pkey PRIMARY KEY (id, finished_at)
) DEFAULT;

CREATE INDEX future_job_history_default_entity_idx ON awty_internal.future_job_history_default (entity_name, entity_key);

CREATE INDEX future_job_history_default_newest_idx ON awty_internal.future_job_history_default (finished_at);

-- The index omits checks that ended well, because an index of all rows would slow down each INSERT.
CREATE INDEX future_job_history_default_problems_idx ON awty_internal.future_job_history_default (job, finished_at)
    WHERE outcome <> ALL ('{done,met,cancelled,replaced}');

COMMENT ON TABLE awty.future_job_history IS 'Finished checks, one row each, written in the transaction that ends the check; kept for awty.history_retention';
COMMENT ON COLUMN awty.future_job_history.id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty.future_job_history.job IS 'Name of the job';
COMMENT ON COLUMN awty.future_job_history.entity_name IS 'Kind of thing that was checked';
COMMENT ON COLUMN awty.future_job_history.entity_key IS 'Key of the thing';
COMMENT ON COLUMN awty.future_job_history.args IS 'Arguments for the job function';
COMMENT ON COLUMN awty.future_job_history.first_check_at IS 'First slot of the check';
COMMENT ON COLUMN awty.future_job_history.next_check_at IS 'Last slot at which the check was due';
COMMENT ON COLUMN awty.future_job_history.scheduled_by IS 'Role that scheduled the check';
COMMENT ON COLUMN awty.future_job_history.scheduled_at IS 'Time of awty.schedule()';
COMMENT ON COLUMN awty.future_job_history.started_at IS 'Start of the last run; NULL: the check never ran';
COMMENT ON COLUMN awty.future_job_history.finished_at IS 'End of the last run, or the time at which the check ended without one';
COMMENT ON COLUMN awty.future_job_history.run_time IS 'Total time of all runs';
COMMENT ON COLUMN awty.future_job_history.lateness IS 'Start of the last run minus its slot; NULL: the check never ran';
COMMENT ON COLUMN awty.future_job_history.check_count IS 'Completed runs';
COMMENT ON COLUMN awty.future_job_history.attempts IS 'Runs in all, including failed ones';
COMMENT ON COLUMN awty.future_job_history.outcome IS 'Why the check ended: done, met, cancelled, replaced, exhausted, past, beyond_horizon, failed, timed_out, missed or expired';
COMMENT ON COLUMN awty.future_job_history.sqlstate IS 'SQLSTATE of the last error, if an error ended the check';
COMMENT ON COLUMN awty.future_job_history.message IS 'Message of that error, cut at 4096 bytes';
COMMENT ON COLUMN awty.future_job_history.role IS 'Role of the job, which may read this row even if the job is gone';
COMMENT ON COLUMN awty.future_job_history.context IS 'Place where that error was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON TABLE awty_internal.future_job_history_default IS 'History of days that have no partition of their own';

SELECT pg_extension_config_dump('awty.future_job_history', '');
SELECT pg_extension_config_dump('awty_internal.future_job_history_default', '');
