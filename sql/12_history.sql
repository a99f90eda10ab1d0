-- The history of finished checks.

-- What is finished. One row per check, written in the transaction that ends it.
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
    -- No CHECK here: PostgreSQL would read its expression again for each row that is archived, and only awty writes.
) PARTITION BY RANGE (finished_at);

-- Takes what no daily partition is there for, so that nothing ever fails for want of one. awty makes the daily ones
-- ahead of time, with the same keys, so this one stays empty.
--
-- Each partition has its primary key and index, and the table as a whole has none. If it had, no dump could be restored:
-- pg_dump carries the daily partitions as ordinary tables with keys of their own, which would collide with those that a
-- partition gets from its parent when it is attached.
CREATE TABLE awty_internal.future_job_history_default PARTITION OF awty.future_job_history (
    CONSTRAINT future_job_history_default_pkey PRIMARY KEY (id, finished_at)
) DEFAULT;

CREATE INDEX future_job_history_default_entity_idx ON awty_internal.future_job_history_default (entity_name, entity_key);

-- For ORDER BY finished_at DESC LIMIT 20: what has just ended.
CREATE INDEX future_job_history_default_newest_idx ON awty_internal.future_job_history_default (finished_at);

-- For the last problems of one job, however many rows other jobs have. Partial, because most runs are done: the INSERT of such a row takes 9 %
-- more instructions with this index, and 16 % more with an index of all rows.
CREATE INDEX future_job_history_default_problems_idx ON awty_internal.future_job_history_default (job, finished_at)
    WHERE outcome <> ALL ('{done,met,cancelled,replaced}');

COMMENT ON TABLE awty.future_job_history IS 'What is finished: one row per check, written in the transaction that ends it; kept for awty.history_retention';
COMMENT ON COLUMN awty.future_job_history.id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty.future_job_history.job IS 'Name of the job that asked';
COMMENT ON COLUMN awty.future_job_history.entity_name IS 'What was asked about';
COMMENT ON COLUMN awty.future_job_history.entity_key IS 'Which one';
COMMENT ON COLUMN awty.future_job_history.args IS 'What was passed to the function';
COMMENT ON COLUMN awty.future_job_history.first_check_at IS 'The first slot';
COMMENT ON COLUMN awty.future_job_history.next_check_at IS 'The last slot at which the check was due';
COMMENT ON COLUMN awty.future_job_history.scheduled_by IS 'Who scheduled it';
COMMENT ON COLUMN awty.future_job_history.scheduled_at IS 'When it was scheduled';
COMMENT ON COLUMN awty.future_job_history.started_at IS 'Start of the last run; NULL: it never ran';
COMMENT ON COLUMN awty.future_job_history.finished_at IS 'End of the last run, or when the check ended without one';
COMMENT ON COLUMN awty.future_job_history.run_time IS 'Time of all its runs together';
COMMENT ON COLUMN awty.future_job_history.lateness IS 'Start of the last run minus its slot; NULL: it never ran';
COMMENT ON COLUMN awty.future_job_history.check_count IS 'Checks done';
COMMENT ON COLUMN awty.future_job_history.attempts IS 'Runs in all, failed ones too';
COMMENT ON COLUMN awty.future_job_history.outcome IS 'Why it ended: done, cancelled, replaced, exhausted, past, beyond_horizon, failed, timed_out, missed or expired';
COMMENT ON COLUMN awty.future_job_history.sqlstate IS 'SQLSTATE of the last error, where an error ended it';
COMMENT ON COLUMN awty.future_job_history.message IS 'Message of the last error, cut at 4096 bytes';
COMMENT ON COLUMN awty.future_job_history.role IS 'Role of the job, which may read this row also when the job is gone';
COMMENT ON COLUMN awty.future_job_history.context IS 'Where the last error was raised, cut at 4096 bytes; NULL: not known';
COMMENT ON TABLE awty_internal.future_job_history_default IS 'History of days that have no partition of their own';

SELECT pg_extension_config_dump('awty.future_job_history', '');
SELECT pg_extension_config_dump('awty_internal.future_job_history_default', '');
