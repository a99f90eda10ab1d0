CREATE TABLE awty.rule (
    rule            text COLLATE "C" NOT NULL,
    relation        regclass NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    since           text,
    due             text,
    until           text NOT NULL,
    within          interval,
    escalate        interval[] NOT NULL,
    calendar        text COLLATE "C",
    stopped         text,
    remind          interval[] NOT NULL,
    every           interval,
    call_schema     text COLLATE "C",
    call_name       text COLLATE "C",
    cleared_schema  text COLLATE "C",
    cleared_name    text COLLATE "C",
    notify          text COLLATE "C",
    existing        text COLLATE "C" NOT NULL,
    role            regrole NOT NULL,
    watched_by      regrole NOT NULL,
    watched_at      timestamptz NOT NULL,
    walk            text COLLATE "C" NOT NULL,
    walked_to       text COLLATE "C",
    walk_after      xid8,
    swept_at        timestamptz,
    swept_to        text COLLATE "C",
    CONSTRAINT rule_pkey PRIMARY KEY (rule),
    CONSTRAINT rule_name_is_1_to_63_bytes CHECK (octet_length(rule) BETWEEN 1 AND 63),
    CONSTRAINT rule_existing_is_known CHECK (existing IN ('upcoming', 'all', 'none')),
    CONSTRAINT rule_walk_is_known CHECK (walk IN ('new', 'changed', 'moved', 'again', 'done'))
);

COMMENT ON TABLE awty.rule IS 'Rules that watch tables, one row each; awty.watch() writes them, awty.unwatch() ends them';
COMMENT ON COLUMN awty.rule.rule IS 'Name of the rule and of its job, 1 to 63 bytes';
COMMENT ON COLUMN awty.rule.relation IS 'Watched table';
COMMENT ON COLUMN awty.rule.entity_name IS 'Entity name of the rule''s checks and alerts: the name of the table at awty.watch()';
COMMENT ON COLUMN awty.rule.since IS 'Expression that gives the start of a row''s clock; NULL: the clock starts when the row is inserted';
COMMENT ON COLUMN awty.rule.due IS 'Expression that gives the due time of level 1, instead of since and within';
COMMENT ON COLUMN awty.rule.until IS 'Condition that each row must meet in time';
COMMENT ON COLUMN awty.rule.within IS 'Time after the start of its clock at which a row that does not meet the condition becomes late; NULL: due says so';
COMMENT ON COLUMN awty.rule.escalate IS 'Times after the start of the clock, or after the due time, at which the alert of a row that is still late reaches level 2, 3 and so on';
COMMENT ON COLUMN awty.rule.calendar IS 'Calendar whose open time the rule counts; NULL: all time is open';
COMMENT ON COLUMN awty.rule.stopped IS 'Condition that stops the clock of a row while it is true; NULL: the clock never stops';
COMMENT ON COLUMN awty.rule.remind IS 'Times before level 1 at which the alert is told at level 0, as a reminder';
COMMENT ON COLUMN awty.rule.every IS 'Time after which the alert of the last level is told again, until it is cleared; NULL: it is told once';
COMMENT ON COLUMN awty.rule.call_schema IS 'Schema of the function that is called with the alert at each level; NULL: none';
COMMENT ON COLUMN awty.rule.call_name IS 'Name of that function';
COMMENT ON COLUMN awty.rule.cleared_schema IS 'Schema of the function call_cleared, which is called after a told alert was cleared; NULL: none';
COMMENT ON COLUMN awty.rule.cleared_name IS 'Name of that function';
COMMENT ON COLUMN awty.rule.notify IS 'Channel that gets the number of the alert at each level; NULL: none';
COMMENT ON COLUMN awty.rule.existing IS 'Which of the rows that existed at awty.watch() are watched: upcoming, all or none';
COMMENT ON COLUMN awty.rule.role IS 'Role that runs the rule''s job and calls the function; rows are read with the rights of the table''s owner';
COMMENT ON COLUMN awty.rule.watched_by IS 'Role that last called awty.watch() for this rule';
COMMENT ON COLUMN awty.rule.watched_at IS 'Time of that call';
COMMENT ON COLUMN awty.rule.walk IS 'State of the walk through the rows that existed at awty.watch(): new, changed (the rule has replaced another one), moved (the calendar was replaced, so that the walk goes through pending checks), again (the same, after the transactions that were open then) or done';
COMMENT ON COLUMN awty.rule.walked_to IS 'Last key that the walk has reached; NULL: the walk has not begun';
COMMENT ON COLUMN awty.rule.walk_after IS 'After a replaced calendar, the walk goes again when all transactions before this one have ended; 0: the first walk has not begun; NULL: no such walk is needed';
COMMENT ON COLUMN awty.rule.swept_at IS 'Time at which the last sweep began, which compares open alerts with their rows; NULL: none has begun, or another must follow because an alert was locked';
COMMENT ON COLUMN awty.rule.swept_to IS 'Last key that the sweep has reached; NULL: no sweep is under way';

CREATE TABLE awty_internal.rule_function (
    rule            text COLLATE "C" NOT NULL,
    argument        text COLLATE "C" NOT NULL,
    function        oid NOT NULL,
    numbers         smallint[] NOT NULL,
    columns         text[] COLLATE "C" NOT NULL,
    CONSTRAINT rule_function_pkey PRIMARY KEY (rule, argument),
    CONSTRAINT rule_function_argument_is_known CHECK (argument IN ('until', 'since', 'due', 'stopped', 'key'))
);

COMMENT ON TABLE awty_internal.rule_function IS 'Functions that evaluate the expressions of rules, and the primary keys of their tables';
COMMENT ON COLUMN awty_internal.rule_function.rule IS 'Name of the rule';
COMMENT ON COLUMN awty_internal.rule_function.argument IS 'Argument of awty.watch() that the function evaluates: until, since, due or stopped; key: the row has the primary key of the table at awty.watch()';
COMMENT ON COLUMN awty_internal.rule_function.function IS 'OID of the function when the row was written; 0: the function is found by name and signature, or there is none';
COMMENT ON COLUMN awty_internal.rule_function.numbers IS 'Numbers of the columns that the function takes, or of the primary key, in its order';
COMMENT ON COLUMN awty_internal.rule_function.columns IS 'Names of those columns at the last inspection';

CREATE TABLE awty.alert (
    id              bigint NOT NULL DEFAULT nextval('awty.future_job_id_seq'::regclass),
    rule            text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    level           integer NOT NULL,
    since           timestamptz,
    due_at          timestamptz NOT NULL,
    raised_at       timestamptz,
    escalated_at    timestamptz,
    cleared_at      timestamptz,
    role            regrole NOT NULL,
    told            bigint NOT NULL DEFAULT 0,
    told_at         timestamptz,
    reminded_at     timestamptz,
    held_by         regrole,
    held_until      timestamptz,
    note            text,
    CONSTRAINT alert_pkey PRIMARY KEY (id)
);

-- Allows two open alerts per watched row, one held and one not. Clients add held alerts and runs add the others, so
-- that clients and runs never wait for each other.
CREATE UNIQUE INDEX alert_one_is_open_idx ON awty.alert (rule, entity_key, (held_by IS NULL)) WHERE cleared_at IS NULL;
CREATE INDEX alert_entity_idx ON awty.alert (entity_name, entity_key);
CREATE INDEX alert_untold_idx ON awty.alert (rule, raised_at)
    WHERE cleared_at IS NULL AND level > 0 AND (told_at >= COALESCE(escalated_at, raised_at)) IS NOT TRUE;
CREATE INDEX alert_cleared_idx ON awty.alert (cleared_at) WHERE cleared_at IS NOT NULL;
-- With these indexes, a query finds the present and past alerts of one rule without reading the alerts of other rules.
CREATE INDEX alert_late_idx ON awty.alert (rule, due_at, id) WHERE cleared_at IS NULL AND level >= 1;
CREATE INDEX alert_cleared_of_rule_idx ON awty.alert (rule, cleared_at) WHERE cleared_at IS NOT NULL AND level >= 1;

COMMENT ON TABLE awty.alert IS 'Alerts, one row each: a row of a watched table is late (cleared_at IS NULL) or was late; rules raise and clear them';
COMMENT ON COLUMN awty.alert.id IS 'Number of the alert; no check has the same number';
COMMENT ON COLUMN awty.alert.rule IS 'Name of the rule';
COMMENT ON COLUMN awty.alert.entity_name IS 'Name of the table at awty.watch()';
COMMENT ON COLUMN awty.alert.entity_key IS 'Primary key of the row as text; for several columns, the text that awty.key() makes';
COMMENT ON COLUMN awty.alert.level IS 'Level of escalation, from 1; 0: the row is not late yet, but a reminder has come or its alert is held';
COMMENT ON COLUMN awty.alert.since IS 'Start of the row''s clock; NULL: the rule has due';
COMMENT ON COLUMN awty.alert.due_at IS 'Time at which the row became late: since + within, or due';
COMMENT ON COLUMN awty.alert.raised_at IS 'Time at which the alert was raised; NULL while its level is 0';
COMMENT ON COLUMN awty.alert.escalated_at IS 'Time at which the alert last rose to a higher level; NULL: it has not risen';
COMMENT ON COLUMN awty.alert.cleared_at IS 'Time at which the row met the condition, was deleted or was no longer late; NULL: the row is late';
COMMENT ON COLUMN awty.alert.role IS 'Role of the rule; if the alert is cleared, the role that the rule had then';
COMMENT ON COLUMN awty.alert.told IS 'How often the alert was told, to call and notify if the rule has them. If several levels are due, only the highest is raised and told';
COMMENT ON COLUMN awty.alert.told_at IS 'Time of the last telling; NULL: the alert has not been told, or not since awty.release()';
COMMENT ON COLUMN awty.alert.reminded_at IS 'Time of the last reminder; NULL: there was none';
COMMENT ON COLUMN awty.alert.held_by IS 'Role that has called awty.hold() for the row: the alert is not told; NULL: it is not held';
COMMENT ON COLUMN awty.alert.held_until IS 'Time at which the hold ends; NULL: awty.release() ends it';
COMMENT ON COLUMN awty.alert.note IS 'Note that was given to awty.hold()';

CREATE TABLE awty_internal.stop (
    rule            text COLLATE "C" NOT NULL,
    key             text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,
    stops           tstzmultirange NOT NULL,
    stopped_since   timestamptz,
    there_at        timestamptz,
    CONSTRAINT stop_pkey PRIMARY KEY (rule, key)
);

CREATE INDEX stop_there_idx ON awty_internal.stop (there_at) WHERE there_at IS NOT NULL;

COMMENT ON TABLE awty_internal.stop IS 'Stops of the clocks of watched rows, one row for each row that was stopped';
COMMENT ON COLUMN awty_internal.stop.rule IS 'Name of the rule';
COMMENT ON COLUMN awty_internal.stop.key IS 'Primary key of the row, as entity_key of its check';
COMMENT ON COLUMN awty_internal.stop.since IS 'Start of the row''s clock, or its due time if the rule has due; another start forgets the stops';
COMMENT ON COLUMN awty_internal.stop.stops IS 'Past stops, at most 1,000; of more, the two oldest are joined';
COMMENT ON COLUMN awty_internal.stop.stopped_since IS 'Begin of the present stop; NULL: the row is not stopped';
COMMENT ON COLUMN awty_internal.stop.there_at IS 'Time at which the row met the condition of the rule; NULL: it does not meet the condition';

-- Leaves out a rule whose table a restore would not find by its name, because one such name fails the COPY of all rules.
-- pg_dump creates no table that belongs to an extension, and it names a table that was renamed meanwhile in two ways.
SELECT pg_extension_config_dump('awty.rule', $$WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = relation AND (relation::pg_catalog.text <> pg_catalog.format('%I.%I', n.nspname, c.relname) OR EXISTS (
        SELECT FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e'
            AND (c.oid = ANY (e.extconfig)) IS NOT TRUE)))$$);
SELECT pg_extension_config_dump('awty_internal.stop', '');
SELECT pg_extension_config_dump('awty_internal.rule_function', '');
SELECT pg_extension_config_dump('awty.alert', '');

CREATE FUNCTION awty.watch(
    relation regclass,
    until text,
    within interval DEFAULT NULL,
    escalate interval[] DEFAULT '{}',
    since text DEFAULT NULL,
    call text DEFAULT NULL,
    notify text DEFAULT NULL,
    existing text DEFAULT 'upcoming',
    rule text DEFAULT NULL,
    run_as name DEFAULT NULL,
    replace boolean DEFAULT false,
    due text DEFAULT NULL,
    calendar text DEFAULT NULL,
    stopped text DEFAULT NULL,
    remind interval[] DEFAULT '{}',
    every interval DEFAULT NULL,
    call_cleared text DEFAULT NULL
) RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'watch_wrapper';

COMMENT ON FUNCTION awty.watch(regclass, text, interval, interval[], text, text, text, text, text, name, boolean, text, text, text, interval[], interval, text)
    IS 'Watches a table: a row that does not meet the condition until within a time, counted from since or given by due, gets an alert in awty.alert; returns the name of the rule; for the owner of the table';

CREATE FUNCTION awty.unwatch(rule text) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'unwatch_wrapper';

COMMENT ON FUNCTION awty.unwatch(text) IS 'Ends a rule, clears its open alerts and archives its pending checks as cancelled; returns the number of those checks; for the owner of the table';

CREATE FUNCTION awty_internal.row_changed() RETURNS trigger
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'row_changed_wrapper';

COMMENT ON FUNCTION awty_internal.row_changed() IS 'Brings the checks and alerts of a rule in line with the changed rows; the triggers on the watched table call it';

CREATE FUNCTION awty_internal.check_rows(checks awty.future_job[]) RETURNS timestamptz[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE STRICT AS 'MODULE_PATHNAME', 'check_rows_wrapper';

CREATE FUNCTION awty_internal.cannot_watch(rule text) RETURNS text[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'cannot_watch_wrapper';

COMMENT ON FUNCTION awty_internal.cannot_watch(text) IS 'Why a rule has stopped, and the command that repairs it; NULL: the rule works';

CREATE FUNCTION awty_internal.next_level_at(rule text, level integer, start timestamptz, key text) RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'next_level_at_wrapper';

COMMENT ON FUNCTION awty_internal.next_level_at(text, integer, timestamptz, text)
    IS 'Returns when an alert of this level, of a row with this key whose clock has started or that was due at that time, reaches the next level; NULL: never';

CREATE FUNCTION awty_internal.is_trigger_of(rule text, trigger text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'is_trigger_of_wrapper';

COMMENT ON FUNCTION awty_internal.is_trigger_of(text, text) IS 'Is this the name of a trigger of that rule?';

CREATE FUNCTION awty_internal.is_rule(rule text) RETURNS boolean
    LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'is_rule_wrapper';

COMMENT ON FUNCTION awty_internal.is_rule(text) IS 'Does a rule of that name exist?';

COMMENT ON FUNCTION awty_internal.check_rows(awty.future_job[]) IS 'Job function of every rule: reads the rows and raises the alerts of those that are late';

CREATE TRIGGER rule_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON awty.rule
    FOR EACH STATEMENT EXECUTE FUNCTION awty_internal.job_changed();

ALTER TABLE awty.rule ENABLE ALWAYS TRIGGER rule_changed;
