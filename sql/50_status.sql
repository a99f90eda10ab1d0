-- awty, part 7: the place to see a silent stop.

-- One row: this database.
CREATE VIEW awty.status AS
SELECT pg_catalog.current_database() AS database,
       runtime.enabled,
       origin.held AS database_held,
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
       runtime.trouble AS last_error,
       extension.version AS version,
       runtime.library AS library
FROM awty_internal.runtime() AS runtime
CROSS JOIN LATERAL (
    SELECT (pg_catalog.count(*) FILTER (WHERE
                coalesce(o.identity OPERATOR(pg_catalog.<>) (SELECT s.last_value FROM awty_internal.identity AS s), true)
                OR coalesce(o.database OPERATOR(pg_catalog.<>)
                   (SELECT d.oid FROM pg_catalog.pg_database AS d
                    WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()), true)) OPERATOR(pg_catalog.>) 0
            -- A restore that is going on: jobs or checks are there, and nothing says yet whence.
            OR pg_catalog.count(*) OPERATOR(pg_catalog.=) 0
               AND (EXISTS (SELECT FROM awty.job) OR EXISTS (SELECT FROM awty.future_job)))
           AND NOT coalesce(pg_catalog.current_setting('awty.auto_adopt', true)::pg_catalog.bool, false) AS held
    FROM awty_internal.origin AS o
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
) AS held_checks
CROSS JOIN LATERAL (
    SELECT e.extversion AS version FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'awty'
) AS extension;

COMMENT ON VIEW awty.status IS 'One row about this database: does awty run here, and how late is it?';
COMMENT ON COLUMN awty.status.database IS 'Name of the database';
COMMENT ON COLUMN awty.status.enabled IS 'awty.enabled';
COMMENT ON COLUMN awty.status.database_held IS 'Nothing runs: this database was restored or cloned and awaits awty.adopt()';
COMMENT ON COLUMN awty.status.why IS 'Why it is held, and what to do';
COMMENT ON COLUMN awty.status.slot IS 'awty.slot';
COMMENT ON COLUMN awty.status.last_slot_run IS 'The latest slot of which a check has run since the server started';
COMMENT ON COLUMN awty.status.lag IS 'How long the oldest overdue check has been waiting; 0 when none is';
COMMENT ON COLUMN awty.status.oldest_overdue IS 'The slot of that check; paused jobs and held checks do not count';
COMMENT ON COLUMN awty.status.pending IS 'Checks that wait, held ones too; counted up to 100000, beyond that estimated';
COMMENT ON COLUMN awty.status.held_checks IS 'Checks that await awty.release()';
COMMENT ON COLUMN awty.status.workers IS 'Worker processes of awty in this database now';
COMMENT ON COLUMN awty.status.last_error IS 'What last kept awty from running checks in this database';
COMMENT ON COLUMN awty.status.version IS 'Version of the extension''s SQL in this database';
COMMENT ON COLUMN awty.status.library IS 'Version of the library that the server has in memory';
