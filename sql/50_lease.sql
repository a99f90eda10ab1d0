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

COMMENT ON TYPE awty.leased IS 'A claimed check: the lease, the columns of awty.future_job (attempt is failures in a row + 1), and the terms of the lease';
COMMENT ON COLUMN awty.leased.lease IS 'Number of the lease, drawn at random';
COMMENT ON COLUMN awty.leased.id IS 'Number of the check';
COMMENT ON COLUMN awty.leased.job IS 'Name of the job';
COMMENT ON COLUMN awty.leased.entity_name IS 'Kind of thing that is checked';
COMMENT ON COLUMN awty.leased.entity_key IS 'Key of the thing';
COMMENT ON COLUMN awty.leased.args IS 'Arguments for the worker';
COMMENT ON COLUMN awty.leased.first_check_at IS 'First slot of the check';
COMMENT ON COLUMN awty.leased.next_check_at IS 'Slot at which the check was due';
COMMENT ON COLUMN awty.leased.check_count IS 'Completed runs of this check before this one';
COMMENT ON COLUMN awty.leased.attempt IS 'Failures in a row + 1';
COMMENT ON COLUMN awty.leased.held IS 'Always false, because a held check is not handed out';
COMMENT ON COLUMN awty.leased.scheduled_by IS 'Role that scheduled the check';
COMMENT ON COLUMN awty.leased.scheduled_at IS 'Time of awty.schedule()';
COMMENT ON COLUMN awty.leased.key IS 'Idempotency key: the same in each lease of this piece of work, and in no other';
COMMENT ON COLUMN awty.leased.leased_at IS 'Time of the claim';
COMMENT ON COLUMN awty.leased.expires_at IS 'Until this time no other worker gets the check; a heartbeat extends it';
COMMENT ON COLUMN awty.leased.deadline IS 'From this time on the lease is void; a heartbeat does not extend it';

-- Lease numbers are random, so that no number is given twice, even after a crash.
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

CREATE INDEX lease_expiry_idx ON awty_internal.lease (job, expires_at);

COMMENT ON TABLE awty_internal.lease IS 'The table behind awty.lease';
COMMENT ON COLUMN awty_internal.lease.role IS 'Role of the job at the time of the claim';

CREATE VIEW awty.lease WITH (security_invoker = true, security_barrier = true) AS
SELECT l.lease, l.id, l.job, l.entity_name, l.entity_key, l.first_check_at,
       l.next_check_at, l.check_count, l.attempt, f.held, pg_get_userbyid(l.scheduled_by) AS scheduled_by, l.scheduled_at,
       l.key, l.leased_at, l.expires_at, l.deadline, l.worker, NULL::timestamptz AS ended_at,
       l.leased_at - l.next_check_at AS lateness, NULL::bool AS ok, NULL::text COLLATE "C" AS sqlstate, NULL::text AS message, NULL::jsonb AS result
FROM awty_internal.lease AS l
CROSS JOIN LATERAL (SELECT c.held FROM awty.future_job AS c WHERE c.id = l.id OFFSET 0) AS f;

COMMENT ON VIEW awty.lease IS 'Leases: which external worker works on which check';
COMMENT ON COLUMN awty.lease.held IS 'True if the check is held as soon as this lease ends';
COMMENT ON COLUMN awty.lease.worker IS 'Name that the worker gave to awty.claim()';
COMMENT ON COLUMN awty.lease.ended_at IS 'Always NULL, because the lease has not ended';
COMMENT ON COLUMN awty.lease.lateness IS 'Time of the claim minus the slot';
COMMENT ON COLUMN awty.lease.ok IS 'Always NULL, because the lease has not ended';
COMMENT ON COLUMN awty.lease.sqlstate IS 'Always NULL, because the lease has not ended';
COMMENT ON COLUMN awty.lease.message IS 'Always NULL, because the lease has not ended';
COMMENT ON COLUMN awty.lease.result IS 'Always NULL, because the lease has not ended';

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

CREATE TABLE awty_internal.attempt_default PARTITION OF awty_internal.attempt (
    CONSTRAINT attempt_default_pkey PRIMARY KEY (id, lease)
) DEFAULT;

CREATE INDEX attempt_default_newest_idx ON awty_internal.attempt_default (ended_at);

-- The index includes the job, because jobs of other roles may have an entity of the same name and key.
CREATE INDEX attempt_default_entity_idx ON awty_internal.attempt_default (entity_name, entity_key, job, ended_at);

COMMENT ON TABLE awty_internal.attempt IS 'The table behind awty.attempt';
COMMENT ON TABLE awty_internal.attempt_default IS 'Attempts of days that have no partition of their own';
COMMENT ON COLUMN awty_internal.attempt.role IS 'Role of the job, which may read this row even if the job is gone';

CREATE VIEW awty.attempt WITH (security_invoker = true) AS
SELECT a.lease, a.id, a.job, a.entity_name, a.entity_key, a.first_check_at, a.next_check_at, a.check_count,
       a.attempt, a.held, pg_get_userbyid(a.scheduled_by) AS scheduled_by, a.scheduled_at, a.key, a.leased_at, a.expires_at, a.deadline,
       a.worker, a.ended_at, a.lateness, a.ok, a.sqlstate, a.message, a.result
FROM awty_internal.attempt AS a;

COMMENT ON VIEW awty.attempt IS 'Ended leases, one row each, as far as keep_attempts of the job keeps them; kept for awty.attempt_retention';
COMMENT ON COLUMN awty.attempt.held IS 'True if the check was held when this lease ended';
COMMENT ON COLUMN awty.attempt.ended_at IS 'Time at which the lease ended';
COMMENT ON COLUMN awty.attempt.ok IS 'True if the lease was completed';
COMMENT ON COLUMN awty.attempt.sqlstate IS 'SQLSTATE of the failure';
COMMENT ON COLUMN awty.attempt.message IS 'Message of the failure, cut at 4096 bytes';
COMMENT ON COLUMN awty.attempt.result IS 'Result that the worker reported';

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

COMMENT ON FUNCTION awty.claim(text[], text, integer) IS 'Leases up to max due checks, 1 to 1000, of jobs without a function, the oldest first; commit before you act on them';

CREATE FUNCTION awty.next_claim_in(jobs text[]) RETURNS interval
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'next_claim_in_wrapper';

COMMENT ON FUNCTION awty.next_claim_in(text[]) IS 'Returns how long awty.claim() will find no check, at most one slot or 5 seconds; zero if a check is due';

CREATE FUNCTION awty.complete(lease bigint, next_at timestamptz DEFAULT NULL, result jsonb DEFAULT NULL) RETURNS text
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'complete_wrapper';

COMMENT ON FUNCTION awty.complete(bigint, timestamptz, jsonb) IS 'Completes a lease: next_at NULL means done, a time means check again at that time; returns rescheduled, next, held, ended or void';

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
    IS 'Reports that the work of a lease failed; the check is retried after retry_after or at retry_at, unless final is true; returns retrying, next, held, ended or void';

CREATE FUNCTION awty.complete_many(leases bigint[], next_at timestamptz[] DEFAULT NULL, result jsonb[] DEFAULT NULL) RETURNS text[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'complete_many_wrapper';

COMMENT ON FUNCTION awty.complete_many(bigint[], timestamptz[], jsonb[]) IS 'Completes many leases like awty.complete() and waits for no lock; returns one answer per lease in their order, and busy if a client has locked the check or the lease';

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
    IS 'Reports many failures like awty.fail() and waits for no lock; returns one answer per lease in their order, and busy if a client has locked the check or the lease';

CREATE FUNCTION awty.heartbeat(leases bigint[]) RETURNS bigint[]
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'heartbeat_wrapper';

COMMENT ON FUNCTION awty.heartbeat(bigint[]) IS 'Extends leases of jobs with a heartbeat; returns the leases that are void, on which the worker must stop to work';

CREATE FUNCTION awty.requeue(leases bigint[]) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'requeue_wrapper';

COMMENT ON FUNCTION awty.requeue(bigint[]) IS 'Gives back leases whose work has not begun: their checks are due at once, and no attempt counts; skips leases that another transaction has locked; returns the number of checks';

CREATE FUNCTION awty_internal.last_claim(job text) RETURNS timestamptz
    LANGUAGE c VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'last_claim_wrapper';

COMMENT ON FUNCTION awty_internal.last_claim(text) IS 'Time at which an external worker last called awty.claim() for that job; NULL: not since the server started';
