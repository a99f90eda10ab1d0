-- awty, part 4: the functions that users call. Each checks its arguments and rights itself; none is SECURITY DEFINER,
-- because each has to know who calls it.

CREATE FUNCTION awty.register(
    job text,
    function text,
    slot interval DEFAULT NULL,
    timeout interval DEFAULT '30 seconds',
    max_checks integer DEFAULT 5,
    max_horizon interval DEFAULT '366 days',
    max_attempts integer DEFAULT 3,
    retry_after interval DEFAULT '1 minute',
    on_missed text DEFAULT 'run',
    max_lateness interval DEFAULT NULL,
    keep_history text DEFAULT 'all',
    run_as name DEFAULT NULL
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'register_wrapper';

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
    reset text[] DEFAULT '{}'
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'alter_wrapper';

CREATE FUNCTION awty.unregister(job text) RETURNS integer
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'unregister_wrapper';

CREATE FUNCTION awty.pause(job text) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pause_wrapper';

CREATE FUNCTION awty.resume(job text) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'resume_wrapper';

CREATE FUNCTION awty.allow(job text, role name) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'allow_wrapper';

CREATE FUNCTION awty.disallow(job text, role name) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'disallow_wrapper';

CREATE FUNCTION awty.schedule(
    entity_name text,
    entity_key text,
    job text,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_wrapper';

CREATE FUNCTION awty.cancel(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS integer
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

CREATE FUNCTION awty.next_slot(t timestamptz, job text DEFAULT NULL) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'next_slot_wrapper';

CREATE FUNCTION awty.release(id bigint) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

CREATE FUNCTION awty.adopt() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'adopt_wrapper';

-- Behind awty.status: what the processes know about this database. Shows no job, entity or error text.
CREATE FUNCTION awty.runtime() RETURNS TABLE (
    enabled boolean,
    slot interval,
    last_slot_run timestamptz,
    workers integer,
    trouble text
) LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 1 AS 'MODULE_PATHNAME', 'runtime_wrapper';

-- Drops what awty's processes remember of jobs in each session, whoever changed the table.
CREATE FUNCTION awty.job_changed() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_changed_wrapper';
