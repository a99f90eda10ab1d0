-- awty, part 5: the place to see a silent stop.

-- One row: this database.
--
-- Columns:
--   enabled          awty.enabled
--   held, why        nothing runs, and why
--   slot             awty.slot
--   last_slot_run    the latest slot of which a check has run since the server started
--   lag              how long the oldest overdue check has been waiting; 0 when none is
--   oldest_overdue   its slot; paused jobs and held checks do not count
--   pending          checks that wait, held ones too; counted up to 100000, beyond that as autovacuum last estimated
--   held_checks      checks held for awty.release()
--   workers          worker processes here now
--   last_error       what last kept awty from running checks in this database
CREATE VIEW awty.status AS
SELECT pg_catalog.current_database() AS database,
       runtime.enabled,
       origin.held,
       CASE WHEN origin.held
            THEN 'the checks of this database come from another one; SELECT awty.adopt(); runs them here' END AS why,
       runtime.slot,
       runtime.last_slot_run,
       coalesce(greatest(
           CASE WHEN pg_catalog.isfinite(overdue.oldest)
                THEN pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) overdue.oldest END, '0'), '0') AS lag,
       overdue.oldest AS oldest_overdue,
       CASE WHEN counted.n OPERATOR(pg_catalog.<=) 100000 THEN counted.n
            ELSE greatest(counted.n, estimate.n) END AS pending,
       held_checks.n AS held_checks,
       runtime.workers,
       runtime.trouble AS last_error
FROM awty.runtime() AS runtime
CROSS JOIN LATERAL (
    SELECT (pg_catalog.count(*) FILTER (WHERE
                coalesce(o.identity OPERATOR(pg_catalog.<>) (SELECT s.last_value FROM awty.identity AS s), true)
                OR coalesce(o.database OPERATOR(pg_catalog.<>)
                   (SELECT d.oid FROM pg_catalog.pg_database AS d
                    WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()), true)) OPERATOR(pg_catalog.>) 0
            -- A restore that is going on: jobs or checks are there, and nothing says yet whence.
            OR pg_catalog.count(*) OPERATOR(pg_catalog.=) 0
               AND (EXISTS (SELECT FROM awty.job) OR EXISTS (SELECT FROM awty.future_job)))
           AND NOT coalesce(pg_catalog.current_setting('awty.auto_adopt', true)::pg_catalog.bool, false) AS held
    FROM awty.origin AS o
) AS origin
CROSS JOIN LATERAL (
    SELECT pg_catalog.min(first.next_check_at) AS oldest
    FROM awty.job AS j
    CROSS JOIN LATERAL (
        SELECT f.next_check_at FROM awty.future_job AS f
        WHERE f.job OPERATOR(pg_catalog.=) j.name AND NOT f.held
          AND f.next_check_at OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
        ORDER BY f.next_check_at LIMIT 1
    ) AS first
    WHERE NOT j.paused
) AS overdue
CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS n FROM (SELECT 1 FROM awty.future_job LIMIT 100001) AS sample
) AS counted
CROSS JOIN LATERAL (
    SELECT c.reltuples::pg_catalog.int8 AS n FROM pg_catalog.pg_class AS c
    WHERE c.oid OPERATOR(pg_catalog.=) 'awty.future_job'::pg_catalog.regclass
) AS estimate
CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS n FROM awty.future_job AS f WHERE f.held
) AS held_checks;
