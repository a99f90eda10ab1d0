-- awty, part 2: jobs.
--
-- Names are text COLLATE "C": their order then depends on no locale, so that no upgrade of the operating system can
-- corrupt an index. Roles are regrole, which follows a renamed role and which pg_upgrade keeps; there is no column of
-- type regproc or regprocedure, which would stop pg_upgrade. There are no foreign keys between the tables: a check is
-- scheduled without touching the row of its job, so that two sessions never meet there.

-- What is registered. One row per job.
CREATE TABLE awty.job (
    job             text COLLATE "C" NOT NULL,
    function_schema text COLLATE "C",
    function_name   text COLLATE "C",
    role            regrole NOT NULL,
    set_based       boolean NOT NULL,
    slot            interval,
    timeout         interval NOT NULL,
    max_checks      integer NOT NULL,
    max_horizon     interval NOT NULL,
    max_attempts    integer NOT NULL,
    retry_after     interval NOT NULL,
    on_missed       text COLLATE "C" NOT NULL,
    max_lateness    interval,
    keep_history    text COLLATE "C" NOT NULL,
    notify          text COLLATE "C",
    readers         regrole[] NOT NULL DEFAULT '{}',
    allowed         regrole[] NOT NULL DEFAULT '{}',
    claimers        regrole[] NOT NULL DEFAULT '{}',
    paused          boolean NOT NULL DEFAULT false,
    paused_at       timestamptz,
    paused_by       regrole,
    paused_note     text COLLATE "C",
    resumed_at      timestamptz,
    registered_by   regrole NOT NULL,
    registered_at   timestamptz NOT NULL,
    repeats         boolean NOT NULL DEFAULT false,
    heartbeat       interval,
    delivery        text COLLATE "C" NOT NULL DEFAULT 'at_least_once',
    keep_attempts   text COLLATE "C" NOT NULL DEFAULT 'all',
    CONSTRAINT job_pkey PRIMARY KEY (job),
    CONSTRAINT job_name_is_1_to_63_bytes CHECK (octet_length(job) BETWEEN 1 AND 63),
    CONSTRAINT job_on_missed_is_known CHECK (on_missed IN ('run', 'next_slot', 'skip')),
    CONSTRAINT job_keep_history_is_known CHECK (keep_history IN ('all', 'ran', 'problems', 'none')),
    CONSTRAINT job_delivery_is_known CHECK (delivery IN ('at_least_once', 'at_most_once')),
    CONSTRAINT job_keep_attempts_is_known CHECK (keep_attempts IN ('all', 'problems', 'none')),
    CONSTRAINT job_function_has_a_schema CHECK ((function_schema IS NULL) = (function_name IS NULL)),
    CONSTRAINT job_notify_is_1_to_63_bytes CHECK (octet_length(notify) BETWEEN 1 AND 63)
);

-- The jobs of a role, for its workers.
CREATE INDEX job_role_idx ON awty.job (role);

COMMENT ON TABLE awty.job IS 'What is registered: one row per job; awty.register() and awty.alter() write it';
COMMENT ON COLUMN awty.job.job IS 'Name of the job, 1 to 63 bytes';
COMMENT ON COLUMN awty.job.function_schema IS 'Schema of its function; NULL: it has none, and workers outside claim its checks';
COMMENT ON COLUMN awty.job.function_name IS 'Name of its function; looked up again, with its exact signature, at each run; NULL: none';
COMMENT ON COLUMN awty.job.role IS 'Runs as this role, with its rights and no more';
COMMENT ON COLUMN awty.job.set_based IS 'The function takes an array of checks and answers with an array of times';
COMMENT ON COLUMN awty.job.slot IS 'A coarser slot for this job, a multiple of awty.slot; NULL: awty.slot';
COMMENT ON COLUMN awty.job.timeout IS 'Time of one run, 1 ms to 1 day; then it is cancelled, and ended if it ignores that';
COMMENT ON COLUMN awty.job.max_checks IS 'Checks in all, up to 1000000; asking for more ends a check as exhausted; 0: no limit';
COMMENT ON COLUMN awty.job.max_horizon IS 'Furthest ahead that a check may lie, 1 s to 36525 days';
COMMENT ON COLUMN awty.job.max_attempts IS 'Failed runs in a row, up to 1000, before a check ends as failed or timed_out; 0: no limit';
COMMENT ON COLUMN awty.job.retry_after IS 'Wait after a failed run, 1 ms to 366 days, doubled each time up to 366 days, at slots';
COMMENT ON COLUMN awty.job.on_missed IS 'A slot that passed while nothing could run: run it late, move it to the next_slot, or skip it (ends as missed)';
COMMENT ON COLUMN awty.job.max_lateness IS 'A check later than this ends as expired instead of running, 1 us to 36525 days; NULL: never';
COMMENT ON COLUMN awty.job.keep_history IS 'Which finished checks are archived: all, those that ran at least once, those that ended with a problem, or none';
COMMENT ON COLUMN awty.job.notify IS 'Channel, 1 to 63 bytes, that gets the number of each check that ends with a problem; NULL: none';
COMMENT ON COLUMN awty.job.readers IS 'Roles that may read the job and its checks, besides members of its own; see awty.allow()';
COMMENT ON COLUMN awty.job.allowed IS 'Roles that may schedule the job, too';
COMMENT ON COLUMN awty.job.claimers IS 'Roles that may take its checks as workers outside, and read';
COMMENT ON COLUMN awty.job.paused IS 'No runs until awty.resume()';
COMMENT ON COLUMN awty.job.paused_at IS 'Since when it is paused';
COMMENT ON COLUMN awty.job.paused_by IS 'Who paused it';
COMMENT ON COLUMN awty.job.paused_note IS 'Why, in the words of awty.pause()';
COMMENT ON COLUMN awty.job.resumed_at IS 'When it was last resumed; slots before that were missed';
COMMENT ON COLUMN awty.job.registered_by IS 'Who registered it';
COMMENT ON COLUMN awty.job.registered_at IS 'When it was registered';
COMMENT ON COLUMN awty.job.repeats IS 'It has been repeated: its checks may be occurrences';
COMMENT ON COLUMN awty.job.heartbeat IS 'A lease without a sign of life for so long, 1 s to 1 day, expires; NULL: it lasts until its timeout';
COMMENT ON COLUMN awty.job.delivery IS 'How often a check may be handed out to workers outside: at_least_once or at_most_once';
COMMENT ON COLUMN awty.job.keep_attempts IS 'Which ended leases awty.attempt keeps: all, problems or none';
