-- Names are text COLLATE "C", because an upgrade of the operating system may change the order of other collations and
-- so corrupt an index.
--
-- Roles are regrole, because a regrole follows renames and survives pg_upgrade. No column is regproc, because
-- pg_upgrade refuses it.
--
-- No table has a foreign key to awty.job, because two sessions that schedule checks of one job would wait for each
-- other.
--
-- No function for users is SECURITY DEFINER, because each must know its caller.

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
    paused_until    timestamptz,
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

CREATE INDEX job_role_idx ON awty.job (role);
CREATE INDEX job_paused_until_idx ON awty.job (paused_until) WHERE paused_until IS NOT NULL;

COMMENT ON TABLE awty.job IS 'Registered jobs, one row each; awty.register() and awty.alter() write them';
COMMENT ON COLUMN awty.job.job IS 'Name of the job, 1 to 63 bytes';
COMMENT ON COLUMN awty.job.function_schema IS 'Schema of the job''s function; NULL: the job has no function, and external workers claim its checks';
COMMENT ON COLUMN awty.job.function_name IS 'Name of the job''s function, which each run looks up again with its exact signature; NULL: the job has no function';
COMMENT ON COLUMN awty.job.role IS 'Role whose rights the job''s runs have, and no others';
COMMENT ON COLUMN awty.job.set_based IS 'True if the function takes an array of checks and returns an array of times';
COMMENT ON COLUMN awty.job.slot IS 'Coarser slot of this job, a multiple of awty.slot; NULL: awty.slot';
COMMENT ON COLUMN awty.job.timeout IS 'Longest time of one run, 1 ms to 1 day; after it the run is cancelled, and its process ended if the run ignores that';
COMMENT ON COLUMN awty.job.max_checks IS 'Completed runs of one check, up to 1000000; a check that asks for one more ends as exhausted; 0: no limit';
COMMENT ON COLUMN awty.job.max_horizon IS 'How far ahead a check may be scheduled, 1 s to 36525 days';
COMMENT ON COLUMN awty.job.max_attempts IS 'Failed runs in a row, up to 1000, after which a check ends as failed or timed_out; 0: no limit';
COMMENT ON COLUMN awty.job.retry_after IS 'Wait after the first failed run, 1 ms to 366 days; it doubles with each further failure, up to 366 days, and ends at a slot';
COMMENT ON COLUMN awty.job.on_missed IS 'What happens to a slot that passed while nothing could run: run (late), next_slot (moved), or skip (the check ends as missed)';
COMMENT ON COLUMN awty.job.max_lateness IS 'A check that is later than this ends as expired and does not run, 1 us to 36525 days; NULL: no limit';
COMMENT ON COLUMN awty.job.keep_history IS 'Which finished checks the history keeps: all, ran (those that ran at least once), problems, or none';
COMMENT ON COLUMN awty.job.notify IS 'Channel, 1 to 63 bytes, that gets the number of each check that ends with a problem; NULL: none';
COMMENT ON COLUMN awty.job.readers IS 'Roles that awty.allow() gave the right read: they read the job and its checks';
COMMENT ON COLUMN awty.job.allowed IS 'Roles that awty.allow() gave the right schedule: they schedule the job''s checks and read';
COMMENT ON COLUMN awty.job.claimers IS 'Roles that awty.allow() gave the right claim: they claim the job''s checks as external workers and read';
COMMENT ON COLUMN awty.job.paused IS 'True if the job is paused: none of its checks runs until awty.resume() or until paused_until';
COMMENT ON COLUMN awty.job.paused_at IS 'Time of the last awty.pause()';
COMMENT ON COLUMN awty.job.paused_by IS 'Role that paused the job';
COMMENT ON COLUMN awty.job.paused_note IS 'Note that was given to awty.pause()';
COMMENT ON COLUMN awty.job.paused_until IS 'Time at which the pause ends; NULL: awty.resume() ends it';
COMMENT ON COLUMN awty.job.resumed_at IS 'Time of the last awty.resume(), or the paused_until of the last pause that has ended by itself; slots before it count as missed';
COMMENT ON COLUMN awty.job.registered_by IS 'Role that registered the job';
COMMENT ON COLUMN awty.job.registered_at IS 'Time of awty.register()';
COMMENT ON COLUMN awty.job.repeats IS 'True if checks of this job may be occurrences of a repetition, because awty.repeat() was called for the job, or a role got the right schedule';
COMMENT ON COLUMN awty.job.heartbeat IS 'A lease whose worker sends no heartbeat for this long expires, 1 s to 1 day; NULL: a lease lasts until the timeout';
COMMENT ON COLUMN awty.job.delivery IS 'How often a check is handed out to external workers: at_least_once or at_most_once';
COMMENT ON COLUMN awty.job.keep_attempts IS 'Which ended leases awty.attempt keeps: all, problems or none';

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
    IS 'Registers a job. Its function is f(), f(awty.future_job) or, for sets, f(awty.future_job[]). The function returns void, or timestamptz (timestamptz[] for sets). void and NULL mean done; a time means: check again at that time. External workers run a job without a function';

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
    IS 'Changes the given options of a job, and sets the options that are named in reset to their defaults; for members of its role';

CREATE FUNCTION awty.unregister(job text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'unregister_wrapper';

COMMENT ON FUNCTION awty.unregister(text) IS 'Removes a job and archives its pending checks as cancelled; returns their number; for members of its role';

CREATE FUNCTION awty.pause(job text, note text DEFAULT NULL, paused_until timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pause_wrapper';

COMMENT ON FUNCTION awty.pause(text, text, timestamptz) IS 'Stops a job until awty.resume() or until a time, with a note that says why; a running check finishes; the last call replaces role, note and end; for members of its role';

CREATE FUNCTION awty.resume(job text) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'resume_wrapper';

COMMENT ON FUNCTION awty.resume(text) IS 'Lets a paused job run again; checks that fell due during the pause follow its on_missed; for members of its role';

CREATE FUNCTION awty.allow(job text, role name, "right" text DEFAULT 'schedule') RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'allow_wrapper';

COMMENT ON FUNCTION awty.allow(text, name, text) IS 'Gives a role a right to a job and replaces the right that the role had before. read: read the job and its checks. schedule: also schedule, cancel, hold and release checks. claim: read, and claim checks as an external worker. For members of the job''s role';

CREATE FUNCTION awty.disallow(job text, role name) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'disallow_wrapper';

COMMENT ON FUNCTION awty.disallow(text, name) IS 'Takes back the right that awty.allow() gave a role; for members of the job''s role';

-- A cache invalidation of this type tells sessions that a job has changed; see src/pg/changes.rs.
CREATE TYPE awty_internal.change AS ();

COMMENT ON TYPE awty_internal.change IS 'Named by the invalidations that job_changed() sends; no column or function has this type';

CREATE FUNCTION awty_internal.job_changed() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_changed_wrapper';

COMMENT ON FUNCTION awty_internal.job_changed() IS 'Tells every session that awty.job, awty.rule or awty.calendar has changed, so that it reads them again; triggers on these tables call it';

CREATE TRIGGER job_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.job
    FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();

-- ALWAYS, so that the trigger also fires if session_replication_role is replica.
ALTER TABLE awty.job ENABLE ALWAYS TRIGGER job_changed;
