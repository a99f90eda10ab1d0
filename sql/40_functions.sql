-- awty, part 8: the functions that users call. Each checks its arguments and rights itself; none is SECURITY DEFINER,
-- because each has to know who calls it.

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

CREATE FUNCTION awty.schedule(
    entity_name text,
    entity_key text,
    job text,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_wrapper';

-- One overload for keys that are numbers, uuids and the like; literals and parameters without a type are text.
CREATE FUNCTION awty.schedule(
    entity_name text,
    entity_key anynonarray,
    job text,
    at timestamptz DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_wrapper';

COMMENT ON FUNCTION awty.schedule(text, anynonarray, text, timestamptz, interval, jsonb, text)
    IS 'The same for a key of another type than text';
COMMENT ON FUNCTION awty.schedule(text, text, text, timestamptz, interval, jsonb, text)
    IS 'Schedules one check of an entity, at a time or after an interval from now(), rounded up to a slot; returns its id; on_conflict is replace, keep, earliest, latest or error';

CREATE FUNCTION awty.cancel(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

CREATE FUNCTION awty.cancel(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_wrapper';

COMMENT ON FUNCTION awty.cancel(text, anynonarray, text) IS 'The same for a key of another type than text';
COMMENT ON FUNCTION awty.cancel(text, text, text) IS 'Cancels the pending checks of an entity, of one job or of all that the caller may schedule; returns how many';

CREATE FUNCTION awty.schedule_many(
    entity_name text,
    entity_keys text[],
    job text,
    at timestamptz[] DEFAULT NULL,
    after interval DEFAULT NULL,
    args jsonb[] DEFAULT NULL,
    on_conflict text DEFAULT 'replace'
) RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'schedule_many_wrapper';

COMMENT ON FUNCTION awty.schedule_many(text, text[], text, timestamptz[], interval, jsonb[], text)
    IS 'Schedules one check of each of many entities, all or none; returns how many were written, without those that on_conflict kept';

CREATE FUNCTION awty.cancel_many(entity_name text, entity_keys text[], job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cancel_many_wrapper';

COMMENT ON FUNCTION awty.cancel_many(text, text[], text) IS 'Cancels the pending checks of many entities, of one job or of all that the caller may schedule; returns how many';

CREATE FUNCTION awty.key(VARIADIC "any") RETURNS text
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'key_wrapper';

COMMENT ON FUNCTION awty.key("any") IS 'One key of several columns: a JSON array of texts, the same in every session';

CREATE FUNCTION awty.repeat(
    job text,
    every interval DEFAULT NULL,
    cron text DEFAULT NULL,
    zone text DEFAULT NULL,
    entity_name text DEFAULT 'job',
    entity_key text DEFAULT NULL,
    starts timestamptz DEFAULT NULL,
    ends timestamptz DEFAULT NULL,
    jitter interval DEFAULT '0',
    catch_up interval DEFAULT '0',
    args jsonb DEFAULT NULL
) RETURNS timestamptz LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'repeat_wrapper';

COMMENT ON FUNCTION awty.repeat(text, interval, text, text, text, text, timestamptz, timestamptz, interval, interval, jsonb)
    IS 'Asks a job again and again, at the moments of every or cron in a time zone; returns the next slot; awty.cancel() ends it';

CREATE FUNCTION awty.occurrences(
    every interval DEFAULT NULL,
    cron text DEFAULT NULL,
    zone text DEFAULT NULL,
    after timestamptz DEFAULT now(),
    max integer DEFAULT 10,
    starts timestamptz DEFAULT NULL
) RETURNS SETOF timestamptz LANGUAGE c STABLE PARALLEL RESTRICTED ROWS 10 AS 'MODULE_PATHNAME', 'occurrences_wrapper';

COMMENT ON FUNCTION awty.occurrences(interval, text, text, timestamptz, integer, timestamptz)
    IS 'The next moments of every or cron in a time zone after a time, as awty.repeat() would take them';

CREATE FUNCTION awty.watch(
    relation regclass,
    until text,
    within interval,
    escalate interval[] DEFAULT '{}',
    since text DEFAULT NULL,
    call text DEFAULT NULL,
    notify text DEFAULT NULL,
    existing text DEFAULT 'upcoming',
    rule text DEFAULT NULL,
    run_as name DEFAULT NULL,
    replace boolean DEFAULT false
) RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'watch_wrapper';

COMMENT ON FUNCTION awty.watch(regclass, text, interval, interval[], text, text, text, text, text, name, boolean)
    IS 'Watches a table: a row for which until is not true within a time, counted from since, gets an alert in awty.alert; returns the name of the rule; for the table''s owner';

CREATE FUNCTION awty.unwatch(rule text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'unwatch_wrapper';

COMMENT ON FUNCTION awty.unwatch(text) IS 'Ends a rule, clears its open alerts and archives its pending checks as cancelled; returns how many those were; for the table''s owner';

CREATE FUNCTION awty_internal.row_changed() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'row_changed_wrapper';

COMMENT ON FUNCTION awty_internal.row_changed() IS 'Has the checks and alerts of a rule say what the rows of its table say; its triggers call it';

CREATE FUNCTION awty_internal.check_rows(checks awty.future_job[]) RETURNS timestamptz[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE STRICT AS 'MODULE_PATHNAME', 'check_rows_wrapper';

CREATE FUNCTION awty_internal.cannot_watch(rule text) RETURNS text[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cannot_watch_wrapper';

COMMENT ON FUNCTION awty_internal.cannot_watch(text) IS 'Why a rule has stopped, and the command that repairs the rule; NULL: the rule works';

CREATE FUNCTION awty_internal.is_trigger_of(rule text, trigger text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'is_trigger_of_wrapper';

COMMENT ON FUNCTION awty_internal.is_trigger_of(text, text) IS 'Is this the name of a trigger of the rule?';

-- A caller may ask without the right to read the rule.
CREATE FUNCTION awty_internal.is_rule(rule text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'is_rule_wrapper';

COMMENT ON FUNCTION awty_internal.is_rule(text) IS 'Is there a rule of that name?';

-- DROP … CASCADE takes triggers along that use a column or a function. A rule without them would die silently. DROP TRIGGER by name is
-- deliberate, as in the script of pg_dump --clean, and gets a warning.
CREATE FUNCTION awty_internal.refuse_drop() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lost record;
BEGIN
    SELECT r.rule, r.relation, o.original, (awty_internal.cannot_watch(r.rule))[1] AS why INTO lost
    FROM pg_event_trigger_dropped_objects() AS o
    JOIN awty.rule AS r ON r.relation::oid = to_regclass(format('%I.%I', o.address_names[1], o.address_names[2]))::oid
    WHERE o.object_type = 'trigger' AND awty_internal.is_trigger_of(r.rule, o.address_names[3]) LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    ELSIF lost.original THEN
        RAISE WARNING USING MESSAGE = format('rule "%s" has stopped: %s', lost.rule, lost.why),
            HINT = format('SELECT awty.unwatch(%L); ends the rule, and awty.watch() repairs it.', lost.rule);
    ELSE
        RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
            MESSAGE = format('cannot drop this, because rule "%s" on table %s needs it', lost.rule, lost.relation),
            DETAIL = format('Without it, %s.', lost.why), HINT = format('SELECT awty.unwatch(%L);', lost.rule);
    END IF;
END
$$;

COMMENT ON FUNCTION awty_internal.refuse_drop() IS 'Refuses a DROP … CASCADE that takes triggers of a rule along while its table stays, and warns of DROP TRIGGER';

COMMENT ON FUNCTION awty_internal.check_rows(awty.future_job[]) IS 'The function of the jobs of rules: reads rows and raises the alerts of those that are late';

CREATE FUNCTION awty.next_slot(t timestamptz, job text DEFAULT NULL) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'next_slot_wrapper';

COMMENT ON FUNCTION awty.next_slot(timestamptz, text) IS 'The slot that a time rounds up to, of a job or of the server; of a past time, the next slot from now';

CREATE FUNCTION awty.check_now(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'check_now_wrapper';

CREATE FUNCTION awty.check_now(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'check_now_wrapper';

COMMENT ON FUNCTION awty.check_now(text, text, text) IS 'Asks about an entity now instead of at its slot; returns the id of the check; the job may be left out where the entity has one check';
COMMENT ON FUNCTION awty.check_now(text, anynonarray, text) IS 'The same for a key of another type than text';

CREATE FUNCTION awty.hold(entity_name text, entity_key text, job text DEFAULT NULL, note text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'hold_wrapper';

CREATE FUNCTION awty.hold(entity_name text, entity_key anynonarray, job text DEFAULT NULL, note text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'hold_wrapper';

COMMENT ON FUNCTION awty.hold(text, text, text, text) IS 'Keeps the pending check of an entity from running until awty.release(), with a note that says why; a run under way ends as it would';
COMMENT ON FUNCTION awty.hold(text, anynonarray, text, text) IS 'The same for a key of another type than text';

CREATE FUNCTION awty.release(entity_name text, entity_key text, job text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

CREATE FUNCTION awty.release(entity_name text, entity_key anynonarray, job text DEFAULT NULL) RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'release_wrapper';

COMMENT ON FUNCTION awty.release(text, text, text) IS 'Lets a held check run again; what fell due meanwhile follows the on_missed of its job; the job may be left out where the entity has one check';
COMMENT ON FUNCTION awty.release(text, anynonarray, text) IS 'The same for a key of another type than text';

-- A row of awty.dry_run(), whose columns have the names of its arguments.
CREATE TYPE awty_internal.tried AS (
    id bigint,
    job text,
    entity_name text,
    entity_key text,
    slot timestamptz,
    outcome text,
    next_check_at timestamptz,
    sqlstate text,
    message text
);

CREATE FUNCTION awty.dry_run(entity_name text, entity_key text, job text, args jsonb DEFAULT NULL) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'dry_run_wrapper';

CREATE FUNCTION awty.dry_run(entity_name text, entity_key anynonarray, job text, args jsonb DEFAULT NULL) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'dry_run_wrapper';

COMMENT ON FUNCTION awty.dry_run(text, text, text, jsonb)
    IS 'Runs the function of a job for an entity, says what would become of the check, and undoes it all; args are for an entity without a pending check; for the job''s role itself';
COMMENT ON FUNCTION awty.dry_run(text, anynonarray, text, jsonb) IS 'The same for a key of another type than text';

CREATE FUNCTION awty.adopt() RETURNS void
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'adopt_wrapper';

COMMENT ON FUNCTION awty.adopt() IS 'Says that this restored or cloned database is the one to run its checks; for the owner of the database';

-- Behind awty.status: what the processes know about this database. Shows no job, entity or error text.
-- Drops what awty's processes remember of jobs in each session, after any change of the table.
CREATE FUNCTION awty.travel(ahead interval, max integer DEFAULT 1000) RETURNS SETOF awty_internal.tried
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'travel_wrapper';

COMMENT ON FUNCTION awty.travel(interval, integer) IS 'For tests, where awty.time_travel is on: moves the clock of this transaction ahead and runs what falls due for the caller''s jobs; the transaction cannot commit any more';

CREATE FUNCTION awty.now() RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'now_wrapper';

COMMENT ON FUNCTION awty.now() IS 'now(), or the travelled clock in a transaction that has called awty.travel()';

CREATE FUNCTION awty_internal.job_changed() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'job_changed_wrapper';

COMMENT ON FUNCTION awty_internal.job_changed() IS 'Tells every session that awty.job or awty.rule has changed; the triggers on these tables call it';
