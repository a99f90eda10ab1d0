-- awty, part 7a: what workers outside call.

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
