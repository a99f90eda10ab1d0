-- Writes in plain SQL the rows that awty writes for leases.
CREATE SCHEMA plain;
CREATE TABLE plain.pending (LIKE awty.future_job INCLUDING ALL);
CREATE TABLE plain.lease (LIKE awty_internal.lease INCLUDING ALL);
CREATE TABLE plain.history (LIKE awty_internal.future_job_history_default INCLUDING ALL);
CREATE TABLE plain.attempt (LIKE awty_internal.attempt_default INCLUDING ALL);
CREATE TABLE plain.queue (id bigint PRIMARY KEY, key text, args jsonb, due timestamptz);
CREATE INDEX ON plain.queue (due, id);

CREATE FUNCTION plain.claim(most integer) RETURNS SETOF plain.lease LANGUAGE sql AS $$
    WITH due AS (
        SELECT f.* FROM plain.pending AS f
        WHERE f.job = 'mail' AND NOT f.held AND f.next_check_at <= clock_timestamp()
          AND NOT EXISTS (SELECT FROM plain.lease AS l WHERE l.id = f.id)
        ORDER BY f.next_check_at, f.id LIMIT most
    )
    INSERT INTO plain.lease (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, scheduled_by,
        scheduled_at, key, leased_at, expires_at, deadline, worker, role)
    SELECT (random() * 9007199254740991)::bigint, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt + 1,
        scheduled_by, scheduled_at, left(encode(sha256(int8send(id)), 'hex'), 26), clock_timestamp(), clock_timestamp() + interval '30 s',
        clock_timestamp() + interval '30 s', 'plain', scheduled_by
    FROM due RETURNING *
$$;
CREATE FUNCTION plain.complete(leases bigint[]) RETURNS bigint LANGUAGE sql AS $$
    WITH l AS (DELETE FROM plain.lease WHERE lease = ANY (leases) RETURNING *),
    f AS (DELETE FROM plain.pending WHERE id IN (SELECT id FROM l) RETURNING *),
    h AS (
        INSERT INTO plain.history (id, job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at,
            started_at, finished_at, run_time, lateness, check_count, attempts, outcome, role)
        SELECT f.id, f.job, f.entity_name, f.entity_key, f.args, f.first_check_at, f.next_check_at, f.scheduled_by, f.scheduled_at,
            l.leased_at, clock_timestamp(), clock_timestamp() - l.leased_at, l.leased_at - f.next_check_at, f.check_count + 1, 1, 'done', l.role
        FROM f JOIN l USING (id)
    ), a AS (
        INSERT INTO plain.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, held,
            scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok, role)
        SELECT lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, false, scheduled_by,
            scheduled_at, key, leased_at, expires_at, deadline, worker, clock_timestamp(), leased_at - next_check_at, true, role FROM l
    )
    SELECT count(*) FROM f
$$;
