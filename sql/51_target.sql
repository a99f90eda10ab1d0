-- Targets: the entity names of checks whose job has no function. A target has limits, blocks and a circuit breaker.

-- What people want of targets; the row whose target is empty is for all of a job.
CREATE TABLE awty_internal.target (
    job             text COLLATE "C" NOT NULL,
    target          text COLLATE "C" NOT NULL,
    concurrency     integer,
    rate            numeric,
    burst           integer,
    blocked_until   timestamptz,
    blocked_at      timestamptz,
    blocked_by      regrole,
    note            text,
    CONSTRAINT target_pkey PRIMARY KEY (job, target)
);

COMMENT ON TABLE awty_internal.target IS 'Limits and blocks of targets; see awty.alter_target()';
COMMENT ON COLUMN awty_internal.target.job IS 'Name of the job';
COMMENT ON COLUMN awty_internal.target.target IS 'Entity name of its checks; empty: all';
COMMENT ON COLUMN awty_internal.target.concurrency IS 'Leases at a time; NULL: as many as are claimed';
COMMENT ON COLUMN awty_internal.target.rate IS 'Leases per second; NULL: no limit';
COMMENT ON COLUMN awty_internal.target.burst IS 'Leases at once, within the rate; NULL: as many as in a second';
COMMENT ON COLUMN awty_internal.target.blocked_until IS 'No leases until then; NULL: it is not blocked';
COMMENT ON COLUMN awty_internal.target.blocked_at IS 'Since when it is blocked';
COMMENT ON COLUMN awty_internal.target.blocked_by IS 'Who blocked it';
COMMENT ON COLUMN awty_internal.target.note IS 'Why, in that role''s words';

-- What is left of a rate. Claims write it, which come one after the other; a row whose bucket is full again is removed.
CREATE TABLE awty_internal.bucket (
    job             text COLLATE "C" NOT NULL,
    target          text COLLATE "C" NOT NULL,
    tokens          double precision NOT NULL,
    at              timestamptz NOT NULL,
    full_at         timestamptz NOT NULL,
    CONSTRAINT bucket_pkey PRIMARY KEY (job, target)
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE awty_internal.bucket IS 'How many leases the rate of a target is still good for';
COMMENT ON COLUMN awty_internal.bucket.job IS 'Name of the job';
COMMENT ON COLUMN awty_internal.bucket.target IS 'Entity name of its checks';
COMMENT ON COLUMN awty_internal.bucket.tokens IS 'So many leases, and a part of one';
COMMENT ON COLUMN awty_internal.bucket.at IS 'When that was worked out';
COMMENT ON COLUMN awty_internal.bucket.full_at IS 'From then on nothing has to be known of it';

-- Targets that failed last. Answers write it. Nobody waits for a row that somebody else writes: that failure is not counted.
CREATE TABLE awty_internal.breaker (
    job             text COLLATE "C" NOT NULL,
    target          text COLLATE "C" NOT NULL,
    failures        integer NOT NULL,
    since           timestamptz NOT NULL,
    opened_at       timestamptz,
    opens           integer NOT NULL,
    message         text,
    failed_at       timestamptz NOT NULL,
    CONSTRAINT breaker_pkey PRIMARY KEY (job, target)
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE awty_internal.breaker IS 'Failures in a row of targets, as far as they are the target''s own';
COMMENT ON COLUMN awty_internal.breaker.job IS 'Name of the job';
COMMENT ON COLUMN awty_internal.breaker.target IS 'Entity name of its checks';
COMMENT ON COLUMN awty_internal.breaker.failures IS 'How many in a row';
COMMENT ON COLUMN awty_internal.breaker.since IS 'When the first of them was';
COMMENT ON COLUMN awty_internal.breaker.opened_at IS 'When it last shut the target out; NULL: it did not';
COMMENT ON COLUMN awty_internal.breaker.opens IS 'How often in a row it did';
COMMENT ON COLUMN awty_internal.breaker.message IS 'Message of the last failure';
COMMENT ON COLUMN awty_internal.breaker.failed_at IS 'When that was';

-- By which claims go from target to target, past any number of checks of one that cannot be called.
CREATE INDEX future_job_target_idx ON awty.future_job (job, entity_name, next_check_at, id) WHERE NOT held;

-- How many leases a target has.
CREATE INDEX lease_target_idx ON awty_internal.lease (job, entity_name);

SELECT pg_extension_config_dump('awty_internal.target', '');

CREATE FUNCTION awty.alter_target(
    job text,
    target text DEFAULT NULL,
    concurrency integer DEFAULT NULL,
    rate numeric DEFAULT NULL,
    burst integer DEFAULT NULL,
    blocked_until timestamptz DEFAULT NULL,
    note text DEFAULT NULL,
    reset text[] DEFAULT '{}'
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'alter_target_wrapper';

COMMENT ON FUNCTION awty.alter_target(text, text, integer, numeric, integer, timestamptz, text, text[])
    IS 'Limits a target of a job without a function, or all of them, or blocks it until a time; -infinity unblocks; for members of the job''s role';

-- What a target asks of its workers, at most an hour. No other block is shortened.
CREATE FUNCTION awty_internal.block_for_now(job text, target text, until timestamptz, note text) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'block_for_now_wrapper';

COMMENT ON FUNCTION awty_internal.block_for_now(text, text, timestamptz, text)
    IS 'Blocks a target until a time, an hour from now at most, unless it is blocked for longer; returns whether it did; for roles that may claim';

CREATE FUNCTION awty_internal.target_standing(
    concurrency integer, in_flight bigint, rate double precision, burst integer, blocked_until timestamptz,
    tokens double precision, at timestamptz, failures integer, since timestamptz, opened_at timestamptz, opens integer,
    OUT state text, OUT until timestamptz
) RETURNS SETOF record ROWS 1 LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'target_standing_wrapper';

COMMENT ON FUNCTION awty_internal.target_standing(integer, bigint, double precision, integer, timestamptz, double precision, timestamptz,
    integer, timestamptz, timestamptz, integer) IS 'What claims make of a target, and until when';

-- Targets that limits, a block or failures are known of, or that have leases. A target's own limit is stronger than that for all; a block is
-- in force wherever it was given.
CREATE VIEW awty.target WITH (security_invoker = true, security_barrier = true) AS
SELECT k.job, nullif(k.target, '') AS target,
    coalesce(own.concurrency, everyone.concurrency) AS concurrency,
    coalesce(own.rate, everyone.rate) AS rate,
    coalesce(own.burst, CASE WHEN own.rate IS NULL THEN everyone.burst END) AS burst,
    flight.n AS in_flight,
    standing.state,
    CASE WHEN standing.state = ANY ('{blocked,open}') THEN standing.until END AS blocked_until,
    CASE standing.state
        WHEN 'blocked' THEN concat('blocked until ', standing.until,
            (SELECT concat(
                ' since ' || date_trunc('second', b.blocked_at)::text,
                ' by ' || b.blocked_by::text,
                ': "' || b.note || '"')
             FROM awty_internal.target AS b
             WHERE b.job = k.job AND b.target = ANY (ARRAY[k.target, ''])
             ORDER BY b.blocked_until DESC NULLS LAST LIMIT 1))
        WHEN 'open' THEN format('%s failures in a row since %s; the next try is at %s; the last: %s', breaker.failures,
            breaker.since, standing.until, breaker.message)
        WHEN 'half_open' THEN format('%s failures in a row since %s; one lease at a time; the last: %s', breaker.failures,
            breaker.since, breaker.message)
        WHEN 'full' THEN CASE WHEN standing.until IS NULL THEN format('%s leases at a time, and all are given', coalesce(own.concurrency, everyone.concurrency))
            ELSE format('%s leases a second; the next one is at %s', coalesce(own.rate, everyone.rate), standing.until) END
    END AS why
FROM (
    SELECT t.job, t.target FROM awty_internal.target AS t
    UNION
    SELECT b.job, b.target FROM awty_internal.breaker AS b
    UNION
    SELECT l.job, l.entity_name FROM awty_internal.lease AS l
) AS k
LEFT JOIN awty_internal.target AS own ON own.job = k.job AND own.target = k.target
LEFT JOIN awty_internal.target AS everyone ON everyone.job = k.job AND everyone.target = ''
LEFT JOIN awty_internal.breaker AS breaker ON breaker.job = k.job AND breaker.target = k.target
LEFT JOIN awty_internal.bucket AS bucket ON bucket.job = k.job AND bucket.target = k.target
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM awty_internal.lease AS l
    WHERE l.job = k.job AND (l.entity_name = k.target OR k.target = '')
      AND l.expires_at > clock_timestamp()
) AS flight
CROSS JOIN LATERAL awty_internal.target_standing(
    CASE WHEN k.target <> '' THEN coalesce(own.concurrency, everyone.concurrency) END, flight.n,
    coalesce(own.rate, everyone.rate)::float8, coalesce(own.burst, CASE WHEN own.rate IS NULL THEN everyone.burst END),
    greatest(own.blocked_until, everyone.blocked_until), bucket.tokens, bucket.at,
    breaker.failures, breaker.since, breaker.opened_at, breaker.opens
) AS standing;

COMMENT ON VIEW awty.target IS 'Targets of jobs without a function that are limited, blocked, failing or worked on';
COMMENT ON COLUMN awty.target.job IS 'Name of the job';
COMMENT ON COLUMN awty.target.target IS 'Entity name of its checks; NULL: what is for all of them';
COMMENT ON COLUMN awty.target.concurrency IS 'Leases at a time; NULL: no limit';
COMMENT ON COLUMN awty.target.rate IS 'Leases per second; NULL: no limit';
COMMENT ON COLUMN awty.target.burst IS 'Leases at once, within the rate; NULL: as many as in a second';
COMMENT ON COLUMN awty.target.in_flight IS 'Live leases';
COMMENT ON COLUMN awty.target.state IS 'What the next claim makes of it: ready, full, half_open (one lease at a time), open (too many failures) or blocked';
COMMENT ON COLUMN awty.target.blocked_until IS 'Until when there are no leases, because it is blocked or open';
COMMENT ON COLUMN awty.target.why IS 'Why it is not ready';
