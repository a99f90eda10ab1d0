-- awty, part 6b: targets, which are the entity names of checks of jobs without a function.

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
