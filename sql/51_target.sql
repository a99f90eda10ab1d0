-- A target is a system that external workers call. Its name is the entity name of its checks.

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
COMMENT ON COLUMN awty_internal.target.target IS 'Entity name of the checks; empty: all targets of the job';
COMMENT ON COLUMN awty_internal.target.concurrency IS 'Leases at a time; NULL: no limit';
COMMENT ON COLUMN awty_internal.target.rate IS 'Leases per second; NULL: no limit';
COMMENT ON COLUMN awty_internal.target.burst IS 'Leases at once, within the rate; NULL: as many as in one second';
COMMENT ON COLUMN awty_internal.target.blocked_until IS 'End of the last block, before which the target gets no leases; NULL: no block is known';
COMMENT ON COLUMN awty_internal.target.blocked_at IS 'Time at which the target was blocked';
COMMENT ON COLUMN awty_internal.target.blocked_by IS 'Role that blocked the target';
COMMENT ON COLUMN awty_internal.target.note IS 'Note that was given with the block';

-- Token buckets, which limit the rate of calls to a target. A missing row means a full bucket, so claims delete the
-- rows of full buckets.
CREATE TABLE awty_internal.bucket (
    job             text COLLATE "C" NOT NULL,
    target          text COLLATE "C" NOT NULL,
    tokens          double precision NOT NULL,
    at              timestamptz NOT NULL,
    full_at         timestamptz NOT NULL,
    CONSTRAINT bucket_pkey PRIMARY KEY (job, target)
) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE awty_internal.bucket IS 'Token buckets: how many leases the rate of a target allows now';
COMMENT ON COLUMN awty_internal.bucket.job IS 'Name of the job';
COMMENT ON COLUMN awty_internal.bucket.target IS 'Entity name of the checks';
COMMENT ON COLUMN awty_internal.bucket.tokens IS 'Leases that the rate allowed at that time, with a fraction';
COMMENT ON COLUMN awty_internal.bucket.at IS 'Time at which tokens was computed';
COMMENT ON COLUMN awty_internal.bucket.full_at IS 'Time from which the bucket is full, so that the row can go';

-- Reports of external workers update this table. A report skips a target that another transaction has locked, so that
-- the report never waits.
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

COMMENT ON TABLE awty_internal.breaker IS 'Circuit breakers: failures in a row that count against a target';
COMMENT ON COLUMN awty_internal.breaker.job IS 'Name of the job';
COMMENT ON COLUMN awty_internal.breaker.target IS 'Entity name of the checks';
COMMENT ON COLUMN awty_internal.breaker.failures IS 'Failures in a row';
COMMENT ON COLUMN awty_internal.breaker.since IS 'Time of the first of them';
COMMENT ON COLUMN awty_internal.breaker.opened_at IS 'Time at which the breaker last opened; NULL: it has not opened';
COMMENT ON COLUMN awty_internal.breaker.opens IS 'How often in a row the breaker has opened';
COMMENT ON COLUMN awty_internal.breaker.message IS 'Message of the last failure';
COMMENT ON COLUMN awty_internal.breaker.failed_at IS 'Time of the last failure';

-- With this index, a claim skips all checks of a blocked target at once.
CREATE INDEX future_job_target_idx ON awty.future_job (job, entity_name, next_check_at, id) WHERE NOT held;

CREATE INDEX lease_target_idx ON awty_internal.lease (job, entity_name);

SELECT pg_extension_config_dump('awty_internal.target', '');

CREATE FUNCTION awty.alter_target(
    job text,
    target text DEFAULT NULL,
    concurrency integer DEFAULT NULL,
    rate double precision DEFAULT NULL,
    burst integer DEFAULT NULL,
    blocked_until timestamptz DEFAULT NULL,
    note text DEFAULT NULL,
    reset text[] DEFAULT '{}'
) RETURNS void LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'alter_target_wrapper';

COMMENT ON FUNCTION awty.alter_target(text, text, integer, double precision, integer, timestamptz, text, text[])
    IS 'Limits one target of a job without a function, or all its targets, or blocks them until a time; -infinity unblocks; for members of the job''s role';

-- The gateway calls this when a target asks for a pause.
CREATE FUNCTION awty_internal.block_for_now(job text, target text, until timestamptz, note text) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'block_for_now_wrapper';

COMMENT ON FUNCTION awty_internal.block_for_now(text, text, timestamptz, text)
    IS 'Blocks a target until a time, at most one hour from now, unless it is blocked for longer; returns whether it did; for roles that may claim';

CREATE FUNCTION awty_internal.target_standing(
    concurrency integer, in_flight bigint, rate double precision, burst integer, blocked_until timestamptz,
    tokens double precision, at timestamptz, failures integer, since timestamptz, opened_at timestamptz, opens integer,
    OUT state text, OUT until timestamptz
) RETURNS SETOF record ROWS 1 LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'target_standing_wrapper';

COMMENT ON FUNCTION awty_internal.target_standing(integer, bigint, double precision, integer, timestamptz, double precision, timestamptz,
    integer, timestamptz, timestamptz, integer) IS 'State of a target for the next claim, and the end of that state';

-- A target's own limits replace the limits for all targets of its job. If the target and its job are both blocked, the
-- later end counts.
CREATE VIEW awty.target WITH (security_invoker = true, security_barrier = true) AS
SELECT k.job, k.target,
    coalesce(own.concurrency, everyone.concurrency) AS concurrency,
    coalesce(own.rate, everyone.rate) AS rate,
    coalesce(own.burst, CASE WHEN own.rate IS NULL THEN everyone.burst END) AS burst,
    flight.n AS in_flight,
    standing.state,
    CASE WHEN standing.state = ANY ('{blocked,open}') THEN standing.until END AS blocked_until,
    CASE standing.state
        WHEN 'blocked' THEN concat('blocked until ', date_trunc('second', standing.until),
            (SELECT concat(
                ' since ' || date_trunc('second', b.blocked_at)::text,
                ' by ' || b.blocked_by::text,
                ': "' || b.note || '"')
             FROM awty_internal.target AS b
             WHERE b.job = k.job AND b.target = ANY (ARRAY[k.key, ''])
             ORDER BY b.blocked_until DESC NULLS LAST LIMIT 1))
        WHEN 'open' THEN format('has failed %s times in a row since %s; the next attempt is at %s; the last error: %s', breaker.failures,
            date_trunc('second', breaker.since), date_trunc('second', standing.until), breaker.message)
        WHEN 'half_open' THEN format('has failed %s times in a row since %s; one lease at a time; the last error: %s', breaker.failures,
            date_trunc('second', breaker.since), breaker.message)
        WHEN 'full' THEN CASE WHEN standing.until IS NULL THEN format('all %s leases are in use', coalesce(own.concurrency, everyone.concurrency))
            ELSE format('%s leases per second; the next lease is at %s', coalesce(own.rate, everyone.rate), date_trunc('second', standing.until)) END
    END AS why
-- UNION ALL and the separate column `target` let PostgreSQL find one target by index, without reading all breakers.
FROM (
    SELECT t.job, t.target AS key, t.target FROM awty_internal.target AS t WHERE t.target <> ''
    UNION ALL
    SELECT t.job, t.target, NULL FROM awty_internal.target AS t WHERE t.target = ''
    UNION ALL
    SELECT b.job, b.target, b.target FROM awty_internal.breaker AS b
    WHERE NOT EXISTS (SELECT FROM awty_internal.target AS t WHERE t.job = b.job AND t.target = b.target)
    UNION ALL
    SELECT DISTINCT l.job, l.entity_name, l.entity_name FROM awty_internal.lease AS l
    WHERE l.job = ANY (ARRAY(SELECT j.job FROM awty.job AS j))
      AND NOT EXISTS (SELECT FROM awty_internal.target AS t WHERE t.job = l.job AND t.target = l.entity_name)
      AND NOT EXISTS (SELECT FROM awty_internal.breaker AS b WHERE b.job = l.job AND b.target = l.entity_name)
) AS k
-- Without LIMIT, the planner would compare each target with all targets. With LIMIT, each join is an index lookup.
LEFT JOIN LATERAL (
    SELECT t.concurrency, t.rate, t.burst, t.blocked_until FROM awty_internal.target AS t
    WHERE t.job = k.job AND t.target = k.key LIMIT 1
) AS own ON true
LEFT JOIN LATERAL (
    SELECT t.concurrency, t.rate, t.burst, t.blocked_until FROM awty_internal.target AS t
    WHERE t.job = k.job AND t.target = '' LIMIT 1
) AS everyone ON true
LEFT JOIN LATERAL (
    SELECT b.failures, b.since, b.opened_at, b.opens, b.message FROM awty_internal.breaker AS b
    WHERE b.job = k.job AND b.target = k.key LIMIT 1
) AS breaker ON true
LEFT JOIN LATERAL (
    SELECT b.tokens, b.at FROM awty_internal.bucket AS b WHERE b.job = k.job AND b.target = k.key LIMIT 1
) AS bucket ON true
CROSS JOIN LATERAL (
    SELECT CASE WHEN k.key = ''
        THEN (SELECT count(*) FROM awty_internal.lease AS l WHERE l.job = k.job AND l.expires_at > clock_timestamp())
        ELSE (SELECT count(*) FROM awty_internal.lease AS l
              WHERE l.job = k.job AND l.entity_name = k.key AND l.expires_at > clock_timestamp())
    END AS n
) AS flight
CROSS JOIN LATERAL awty_internal.target_standing(
    CASE WHEN k.key <> '' THEN coalesce(own.concurrency, everyone.concurrency) END, flight.n,
    coalesce(own.rate, everyone.rate)::float8, coalesce(own.burst, CASE WHEN own.rate IS NULL THEN everyone.burst END),
    greatest(own.blocked_until, everyone.blocked_until), bucket.tokens, bucket.at,
    breaker.failures, breaker.since, breaker.opened_at, breaker.opens
) AS standing;

COMMENT ON VIEW awty.target IS 'Targets of jobs without a function that are limited, blocked, failing or leased';
COMMENT ON COLUMN awty.target.job IS 'Name of the job';
COMMENT ON COLUMN awty.target.target IS 'Entity name of the checks; NULL: the limits and blocks of all targets of the job';
COMMENT ON COLUMN awty.target.concurrency IS 'Leases at a time; NULL: no limit';
COMMENT ON COLUMN awty.target.rate IS 'Leases per second; NULL: no limit';
COMMENT ON COLUMN awty.target.burst IS 'Leases at once, within the rate; NULL: as many as in one second';
COMMENT ON COLUMN awty.target.in_flight IS 'Live leases';
COMMENT ON COLUMN awty.target.state IS 'How the next claim treats the target: ready, full, half_open (one lease at a time), open (too many failures) or blocked';
COMMENT ON COLUMN awty.target.blocked_until IS 'Time until which the target gets no lease, because it is blocked or open';
COMMENT ON COLUMN awty.target.why IS 'Why the target is not ready';
