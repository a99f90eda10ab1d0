-- Leases, by which external workers take checks, and the attempts that they become.

-- What awty.claim() returns: the lease, the columns of awty.future_job, and the terms of the lease.
CREATE TYPE awty.leased AS (
    lease           bigint,
    id              bigint,
    job             text COLLATE "C",
    entity_name     text COLLATE "C",
    entity_key      text COLLATE "C",
    args            jsonb,
    first_check_at  timestamptz,
    next_check_at   timestamptz,
    check_count     integer,
    attempt         integer,
    held            boolean,
    scheduled_by    regrole,
    scheduled_at    timestamptz,
    key             text COLLATE "C",
    leased_at       timestamptz,
    expires_at      timestamptz,
    deadline        timestamptz
);

COMMENT ON TYPE awty.leased IS 'A check that was claimed: the lease, the columns of awty.future_job, where attempt is the failures in a row and one more, and the terms of the lease';
COMMENT ON COLUMN awty.leased.lease IS 'Number of the lease, drawn at random';
COMMENT ON COLUMN awty.leased.id IS 'Number of the check';
COMMENT ON COLUMN awty.leased.job IS 'Name of its job';
COMMENT ON COLUMN awty.leased.entity_name IS 'What is asked about';
COMMENT ON COLUMN awty.leased.entity_key IS 'Which one';
COMMENT ON COLUMN awty.leased.args IS 'Passed through to the worker';
COMMENT ON COLUMN awty.leased.first_check_at IS 'The first slot';
COMMENT ON COLUMN awty.leased.next_check_at IS 'The slot at which the check was due';
COMMENT ON COLUMN awty.leased.check_count IS 'Checks done before this one';
COMMENT ON COLUMN awty.leased.attempt IS 'Failures in a row, and one more';
COMMENT ON COLUMN awty.leased.held IS 'Never true of a check that is handed out';
COMMENT ON COLUMN awty.leased.scheduled_by IS 'Who scheduled it';
COMMENT ON COLUMN awty.leased.scheduled_at IS 'When it was scheduled';
COMMENT ON COLUMN awty.leased.key IS 'The same in each lease of this piece of work, and in no other';
COMMENT ON COLUMN awty.leased.leased_at IS 'When it was claimed';
COMMENT ON COLUMN awty.leased.expires_at IS 'Until then nobody else gets the check; a heartbeat moves it';
COMMENT ON COLUMN awty.leased.deadline IS 'From then on the lease is void; nothing moves it';

-- Who works on what. One row per check at most. The row of a lease that nobody answers stays until the next claim or the maintainer
-- comes by. A number is drawn at random: one that was lost in a crash of the server never stands for another lease.
CREATE TABLE awty_internal.lease (
    lease           bigint NOT NULL,
    id              bigint NOT NULL,
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    first_check_at  timestamptz NOT NULL,
    next_check_at   timestamptz NOT NULL,
    check_count     integer NOT NULL,
    attempt         integer NOT NULL,
    scheduled_by    regrole NOT NULL,
    scheduled_at    timestamptz NOT NULL,
    key             text COLLATE "C" NOT NULL,
    leased_at       timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    deadline        timestamptz NOT NULL,
    worker          text COLLATE "C" NOT NULL,
    role            regrole NOT NULL,
    CONSTRAINT lease_pkey PRIMARY KEY (lease),
    CONSTRAINT lease_one_per_check UNIQUE (id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What expires next, job by job.
CREATE INDEX lease_expiry_idx ON awty_internal.lease (job, expires_at);

COMMENT ON TABLE awty_internal.lease IS 'What stands behind awty.lease';
COMMENT ON COLUMN awty_internal.lease.role IS 'Role of the job when it was claimed';

-- Those whose checks are pending. What is not known before its end is NULL.
CREATE VIEW awty.lease WITH (security_invoker = true, security_barrier = true) AS
SELECT l.lease, l.id, l.job, l.entity_name, l.entity_key, l.first_check_at,
       l.next_check_at, l.check_count, l.attempt, f.held, l.scheduled_by, l.scheduled_at,
       l.key, l.leased_at, l.expires_at, l.deadline, l.worker, NULL::timestamptz AS ended_at,
       l.leased_at - l.next_check_at AS lateness, NULL::bool AS ok, NULL::text COLLATE "C" AS sqlstate, NULL::text AS message, NULL::jsonb AS result
FROM awty_internal.lease AS l
JOIN awty.future_job AS f ON f.id = l.id;

COMMENT ON VIEW awty.lease IS 'Which worker outside works on which check';
COMMENT ON COLUMN awty.lease.held IS 'What is pending after this lease stands still';
COMMENT ON COLUMN awty.lease.worker IS 'Who claimed it, in the words of awty.claim()';
COMMENT ON COLUMN awty.lease.ended_at IS 'Not known before its end: always NULL';
COMMENT ON COLUMN awty.lease.lateness IS 'When it was claimed minus its slot';
COMMENT ON COLUMN awty.lease.ok IS 'Not known before its end: always NULL';
COMMENT ON COLUMN awty.lease.sqlstate IS 'Not known before its end: always NULL';
COMMENT ON COLUMN awty.lease.message IS 'Not known before its end: always NULL';
COMMENT ON COLUMN awty.lease.result IS 'Not known before its end: always NULL';

-- What became of leases. Daily partitions, as of the history.
CREATE TABLE awty_internal.attempt (
    lease           bigint NOT NULL,
    id              bigint NOT NULL,
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    first_check_at  timestamptz NOT NULL,
    next_check_at   timestamptz NOT NULL,
    check_count     integer NOT NULL,
    attempt         integer NOT NULL,
    held            boolean NOT NULL,
    scheduled_by    regrole NOT NULL,
    scheduled_at    timestamptz NOT NULL,
    key             text COLLATE "C" NOT NULL,
    leased_at       timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    deadline        timestamptz NOT NULL,
    worker          text COLLATE "C" NOT NULL,
    ended_at        timestamptz NOT NULL,
    lateness        interval NOT NULL,
    ok              boolean NOT NULL,
    sqlstate        text COLLATE "C",
    message         text,
    result          jsonb,
    role            regrole
) PARTITION BY RANGE (ended_at);

-- Takes what no daily partition is there for. Each partition has its keys, as in the history.
CREATE TABLE awty_internal.attempt_default PARTITION OF awty_internal.attempt (
    CONSTRAINT attempt_default_pkey PRIMARY KEY (id, lease)
) DEFAULT;

CREATE INDEX attempt_default_newest_idx ON awty_internal.attempt_default (ended_at);

-- For the last attempts of one entity.
CREATE INDEX attempt_default_entity_idx ON awty_internal.attempt_default (entity_name, entity_key, ended_at);

COMMENT ON TABLE awty_internal.attempt IS 'What stands behind awty.attempt';
COMMENT ON TABLE awty_internal.attempt_default IS 'Attempts of days that have no partition of their own';
COMMENT ON COLUMN awty_internal.attempt.role IS 'Role of the job, which may read this row also when the job is gone';

CREATE VIEW awty.attempt WITH (security_invoker = true) AS
SELECT a.lease, a.id, a.job, a.entity_name, a.entity_key, a.first_check_at, a.next_check_at, a.check_count,
       a.attempt, a.held, a.scheduled_by, a.scheduled_at, a.key, a.leased_at, a.expires_at, a.deadline,
       a.worker, a.ended_at, a.lateness, a.ok, a.sqlstate, a.message, a.result
FROM awty_internal.attempt AS a;

COMMENT ON VIEW awty.attempt IS 'What became of leases, one row for each that ended, as far as keep_attempts of its job asks for it; kept for awty.attempt_retention';
COMMENT ON COLUMN awty.attempt.held IS 'The check stands still after this lease';
COMMENT ON COLUMN awty.attempt.ended_at IS 'When the lease ended';
COMMENT ON COLUMN awty.attempt.ok IS 'It was completed';
COMMENT ON COLUMN awty.attempt.sqlstate IS 'SQLSTATE of the failure';
COMMENT ON COLUMN awty.attempt.message IS 'Message of the failure, cut at 4096 bytes';
COMMENT ON COLUMN awty.attempt.result IS 'What the worker reported';

-- The other columns are those of the type, of the view of leases, or of the view behind which a table stands.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('COMMENT ON COLUMN %s.%I IS %L', c.oid::regclass, a.attname,
            CASE WHEN c.relkind = 'v'::"char"
                THEN coalesce(col_description(t.attrelid, t.attnum), col_description(v.attrelid, v.attnum))
                ELSE 'As in awty.' || c.relname::text END)
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
        LEFT JOIN pg_attribute AS t
            ON t.attrelid = 'awty.leased'::regclass AND t.attname = a.attname
        LEFT JOIN pg_attribute AS v
            ON v.attrelid = 'awty.lease'::regclass AND v.attname = a.attname
        WHERE c.oid = ANY ('{awty.lease,awty.attempt,awty_internal.lease,awty_internal.attempt}'::regclass[])
          AND col_description(a.attrelid, a.attnum) IS NULL
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

SELECT pg_extension_config_dump('awty_internal.attempt', '');
SELECT pg_extension_config_dump('awty_internal.attempt_default', '');

CREATE FUNCTION awty.claim(jobs text[], worker text, max integer DEFAULT 1) RETURNS SETOF awty.leased
    LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'claim_wrapper';

COMMENT ON FUNCTION awty.claim(text[], text, integer) IS 'Leases up to max checks, 1 to 1000, that are due for jobs without a function, the oldest first; commit, then act';

CREATE FUNCTION awty.next_claim_in(jobs text[]) RETURNS interval
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'next_claim_in_wrapper';

COMMENT ON FUNCTION awty.next_claim_in(text[]) IS 'How long awty.claim() will have nothing, at most a slot or 5 seconds; zero where something is due';

CREATE FUNCTION awty.complete(lease bigint, next_at timestamptz DEFAULT NULL, result jsonb DEFAULT NULL) RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'complete_wrapper';

COMMENT ON FUNCTION awty.complete(bigint, timestamptz, jsonb) IS 'Answers a lease: NULL means done, a time means ask again then; returns rescheduled, next, held, ended or void';

CREATE FUNCTION awty.fail(
    lease bigint,
    message text,
    sqlstate text DEFAULT '38000',
    retry_at timestamptz DEFAULT NULL,
    final boolean DEFAULT false,
    not_started boolean DEFAULT false,
    target_down boolean DEFAULT false,
    result jsonb DEFAULT NULL
) RETURNS text LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'fail_wrapper';

COMMENT ON FUNCTION awty.fail(bigint, text, text, timestamptz, boolean, boolean, boolean, jsonb)
    IS 'Reports that the work of a lease has failed; it is tried again after retry_after or at retry_at, unless it was final; returns retrying, next, held, ended or void';

CREATE FUNCTION awty.complete_many(leases bigint[], next_at timestamptz[] DEFAULT NULL, result jsonb[] DEFAULT NULL) RETURNS text[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'complete_many_wrapper';

COMMENT ON FUNCTION awty.complete_many(bigint[], timestamptz[], jsonb[]) IS 'Answers many leases, as awty.complete(), and waits for no lock; returns what became of each, in their order, and busy where a client has the check locked';

CREATE FUNCTION awty.fail_many(
    leases bigint[],
    message text[],
    sqlstate text[] DEFAULT NULL,
    retry_at timestamptz[] DEFAULT NULL,
    final boolean[] DEFAULT NULL,
    not_started boolean[] DEFAULT NULL,
    target_down boolean[] DEFAULT NULL,
    result jsonb[] DEFAULT NULL
) RETURNS text[] LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'fail_many_wrapper';

COMMENT ON FUNCTION awty.fail_many(bigint[], text[], text[], timestamptz[], boolean[], boolean[], boolean[], jsonb[])
    IS 'Reports that the work of many leases has failed, as awty.fail(), and waits for no lock; returns what became of each, in their order, and busy where a client has the check locked';

CREATE FUNCTION awty.heartbeat(leases bigint[]) RETURNS bigint[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'heartbeat_wrapper';

COMMENT ON FUNCTION awty.heartbeat(bigint[]) IS 'Extends leases of jobs with a heartbeat; returns those that are void: stop working on them';

CREATE FUNCTION awty.requeue(leases bigint[]) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'requeue_wrapper';

COMMENT ON FUNCTION awty.requeue(bigint[]) IS 'Gives back checks whose work has not begun: they are due at once, and nothing is counted; returns how many';

-- For views that come after this.
CREATE FUNCTION awty_internal.last_claim(job text) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'last_claim_wrapper';

COMMENT ON FUNCTION awty_internal.last_claim(text) IS 'When a worker outside last asked for checks of that job; NULL: not since the server started';
