-- Avoids row security, because row security would read the rights to all jobs of the database at each claim.
CREATE FUNCTION awty_http_internal.claimed(leases bigint[], OUT lease bigint, OUT tenant bigint, OUT role name, OUT id text, OUT failing boolean,
    OUT deleted boolean, OUT args jsonb) RETURNS SETOF record
    LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'awty_with_caller';
COMMENT ON FUNCTION awty_http_internal.claimed(bigint[]) IS 'Tenant, schedule and definition of the call of each lease; for roles that may claim';

-- Uses PL/pgSQL, which returns all rows at once, because awty_with_caller calls the function only once.
CREATE FUNCTION awty_http_internal.claimed_as(caller oid, leases bigint[], OUT lease bigint, OUT tenant bigint, OUT role name, OUT id text,
    OUT failing boolean, OUT deleted boolean, OUT args jsonb) RETURNS SETOF record
    LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    jobs CONSTANT text[] := ARRAY(
        SELECT j.job FROM (SELECT DISTINCT l.job FROM awty.lease AS l WHERE l.lease = ANY (claimed_as.leases)) AS j
        WHERE awty_http_internal.has_right(claimed_as.caller, j.job, 'claim'));
BEGIN
    RETURN QUERY
    SELECT l.lease, t.number, pg_get_userbyid(t.role), e.id, e.failing_since IS NOT NULL, e.deleted_at IS NOT NULL,
        coalesce(e.request, '{}') || c.content
    FROM awty.lease AS l
    JOIN awty_http.tenant AS t ON t.job = l.job
    LEFT JOIN (awty_http_internal.content AS c
        LEFT JOIN awty_http_internal.endpoint AS e ON e.entity_name = c.entity_name AND e.entity_key = c.entity_key AND e.job = c.job)
        ON c.entity_name = l.entity_name AND c.entity_key = l.entity_key AND c.job = l.job
    WHERE l.lease = ANY (claimed_as.leases) AND l.job = ANY (jobs);
END
$$;
COMMENT ON FUNCTION awty_http_internal.claimed_as(oid, bigint[]) IS 'awty_http_internal.claimed for a caller';
