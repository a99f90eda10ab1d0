-- Claims and completes calls in plain SQL, and writes the rows that awty writes for successful calls.
CREATE SCHEMA plain;
CREATE TABLE plain.pending (LIKE awty.future_job INCLUDING ALL);
CREATE TABLE plain.lease (LIKE awty_internal.lease INCLUDING ALL);
CREATE TABLE plain.attempt (LIKE awty_internal.attempt_default INCLUDING ALL);

CREATE FUNCTION plain.fill(origins text[], calls integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO plain.pending (id, job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by, scheduled_at)
    OVERRIDING SYSTEM VALUE
    SELECT n, 'http', origins[n % cardinality(origins) + 1], '/' || n || '#' || gen_random_uuid(),
        jsonb_build_object('method', 'POST', 'body', jsonb_build_object('order', n)), now(), now(), 'postgres'::regrole, now()
    FROM generate_series(1, calls) AS n
$$;
CREATE FUNCTION plain.claim(most integer) RETURNS TABLE (lease bigint, entity_name text, entity_key text, args jsonb) LANGUAGE sql AS $$
    WITH due AS (
        SELECT f.* FROM plain.pending AS f
        WHERE f.job = 'http' AND NOT f.held AND f.next_check_at <= clock_timestamp()
          AND NOT EXISTS (SELECT FROM plain.lease AS l WHERE l.id = f.id)
        ORDER BY f.next_check_at, f.id LIMIT most
    ), given AS (
        INSERT INTO plain.lease (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, scheduled_by,
            scheduled_at, key, leased_at, expires_at, deadline, worker, role)
        SELECT (random() * 9007199254740991)::bigint, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count,
            attempt + 1, scheduled_by, scheduled_at, left(encode(sha256(int8send(id)), 'hex'), 26), clock_timestamp(),
            clock_timestamp() + interval '30 s', clock_timestamp() + interval '30 s', 'plain', scheduled_by
        FROM due RETURNING *
    )
    SELECT given.lease, due.entity_name, due.entity_key, due.args FROM given JOIN due USING (id)
$$;
CREATE FUNCTION plain.complete(leases bigint[], results jsonb[]) RETURNS bigint LANGUAGE sql AS $$
    WITH answer AS (SELECT * FROM ROWS FROM (unnest(leases), unnest(results)) AS u (lease, result)),
    l AS (DELETE FROM plain.lease WHERE lease = ANY (leases) RETURNING *),
    f AS (DELETE FROM plain.pending WHERE id IN (SELECT id FROM l) RETURNING id),
    a AS (
        INSERT INTO plain.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, held,
            scheduled_by, scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok, result, role)
        SELECT l.lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, false, scheduled_by,
            scheduled_at, key, leased_at, expires_at, deadline, worker, clock_timestamp(), leased_at - next_check_at, true, answer.result, role
        FROM l JOIN answer USING (lease)
    )
    SELECT count(*) FROM f
$$;
