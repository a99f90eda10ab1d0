-- Jobs: the table, and the functions that change it.
--
-- Names are text COLLATE "C", because their order then depends on no locale, and no upgrade of the operating system can corrupt an index.
-- Roles are regrole, which follows a renamed role and which pg_upgrade keeps. No column has type regproc or regprocedure, because
-- pg_upgrade refuses them. No table has a foreign key to awty.job: scheduling a check never touches the row of its job, so that two
-- sessions never wait for each other there.
--
-- Each function that a user calls checks its arguments and rights itself. None is SECURITY DEFINER, because each must know its caller.

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

-- What a dump has to carry: the registered jobs, what is pending and what it has used, what is finished and lies in no
-- daily partition (those are ordinary tables to pg_dump), and where all that came from.
SELECT pg_extension_config_dump('awty.job', '');

CREATE FUNCTION awty.register(
    job text,
    function text DEFAULT NULL,
    slot interval DEFAULT NULL,
    timeout interval DEFAULT '30 seconds',
    max_checks integer DEFAULT 5,
    max_horizon interval DEFAULT '366 days',
    max_attempts integer DEFAULT 3,
    retry_after interval DEFAULT '1 minute',
    on_missed text DEFAULT 'run',
    max_lateness interval DEFAULT NULL,
    keep_history text DEFAULT 'all',
    run_as name DEFAULT NULL,
    notify text DEFAULT NULL,
    heartbeat interval DEFAULT NULL,
    delivery text DEFAULT 'at_least_once',
    keep_attempts text DEFAULT 'all',
    replace boolean DEFAULT false
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'register_wrapper';

COMMENT ON FUNCTION awty.register(text, text, interval, interval, integer, interval, integer, interval, text, interval, text, name, text, interval, text, text, boolean)
    IS 'Registers a job, without a function for workers outside, or by its function: f(), f(awty.future_job) or, for sets, f(awty.future_job[]); it returns void or timestamptz (timestamptz[]): void and NULL mean done, a time means check again then';

CREATE FUNCTION awty.alter(
    job text,
    function text DEFAULT NULL,
    slot interval DEFAULT NULL,
    timeout interval DEFAULT NULL,
    max_checks integer DEFAULT NULL,
    max_horizon interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    retry_after interval DEFAULT NULL,
    on_missed text DEFAULT NULL,
    max_lateness interval DEFAULT NULL,
    keep_history text DEFAULT NULL,
    run_as name DEFAULT NULL,
    notify text DEFAULT NULL,
    heartbeat interval DEFAULT NULL,
    delivery text DEFAULT NULL,
    keep_attempts text DEFAULT NULL,
    reset text[] DEFAULT '{}'
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'alter_wrapper';

COMMENT ON FUNCTION awty.alter(text, text, interval, interval, integer, interval, integer, interval, text, interval, text, name, text, interval, text, text, text[])
    IS 'Changes options of a job: those given, and those named in reset back to their defaults; for members of its role';

CREATE FUNCTION awty.unregister(job text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'unregister_wrapper';

COMMENT ON FUNCTION awty.unregister(text) IS 'Removes a job, archives its pending checks as cancelled and returns how many those were; for members of its role';

CREATE FUNCTION awty.pause(job text, note text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pause_wrapper';

COMMENT ON FUNCTION awty.pause(text, text) IS 'Lets a job run no more until awty.resume(), and says why; for members of its role';

CREATE FUNCTION awty.resume(job text) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'resume_wrapper';

COMMENT ON FUNCTION awty.resume(text) IS 'Lets a paused job run again; what fell due meanwhile follows its on_missed; for members of its role';

CREATE FUNCTION awty.allow(job text, role name, "right" text DEFAULT 'schedule') RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'allow_wrapper';

COMMENT ON FUNCTION awty.allow(text, name, text) IS 'Gives a role a right to a job, instead of the one that it had: read; schedule, which is also to cancel, run now, hold and release its checks; or claim, for workers outside; for members of the job''s role';

CREATE FUNCTION awty.disallow(job text, role name) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'disallow_wrapper';

COMMENT ON FUNCTION awty.disallow(text, name) IS 'Takes back what awty.allow() gave; for members of the job''s role';

CREATE FUNCTION awty_internal.job_changed() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_changed_wrapper';

COMMENT ON FUNCTION awty_internal.job_changed() IS 'Tells every session that awty.job or awty.rule has changed; the triggers on these tables call it';

CREATE TRIGGER job_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.job
    FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();

-- Also where session_replication_role is replica.
ALTER TABLE awty.job ENABLE ALWAYS TRIGGER job_changed;
