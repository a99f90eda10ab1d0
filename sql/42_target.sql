-- awty, part 7b: how targets stand.

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
