-- Reads the server's version at each call, because pg_upgrade keeps this function unchanged. PostgreSQL has the
-- privilege SET since version 16.
CREATE FUNCTION awty_internal.becoming() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE
        WHEN current_setting('server_version_num')::int4 >= 160000
        THEN 'SET' ELSE 'MEMBER' END;

COMMENT ON FUNCTION awty_internal.becoming() IS 'The privilege to SET ROLE, by its name in pg_has_role()';

CREATE FUNCTION awty_internal.can_become(role regrole) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_has_role(role::oid, awty_internal.becoming());

COMMENT ON FUNCTION awty_internal.can_become(regrole) IS 'Can the current user SET ROLE to that role?';

-- The function uses PL/pgSQL, because PostgreSQL would plan an SQL function again for each job.
CREATE FUNCTION awty_internal.has_any_role(roles regrole[], privilege text) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role regrole;
BEGIN
    FOREACH role IN ARRAY coalesce(roles, '{}') LOOP
        IF pg_has_role(role::oid, privilege) THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;

COMMENT ON FUNCTION awty_internal.has_any_role(regrole[], text) IS 'Does the current user have that privilege on one of the roles?';

CREATE FUNCTION awty_internal.has_right(role oid, job text, "right" text, shown oid) RETURNS boolean
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'role_has_right_wrapper';

COMMENT ON FUNCTION awty_internal.has_right(oid, text, text, oid) IS 'Does that role have that right to the job now, and is the job''s role still the one that the snapshot of the statement has shown? For roles that the current user can become';

CREATE FUNCTION awty_internal.keep_right(role oid, job text, "right" text, shown oid) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'role_keeps_right_wrapper';

COMMENT ON FUNCTION awty_internal.keep_right(oid, text, text, oid) IS 'Does that role have that right to the job, as in awty_internal.has_right()? If so, also keeps the name of the job from other roles until the transaction ends';

-- The function must be PARALLEL SAFE, because a policy with any other function prevents parallel scans.
CREATE FUNCTION awty_internal.readable(OUT job text, OUT role oid, OUT may_schedule boolean, OUT may_claim boolean)
    RETURNS SETOF record ROWS 100 LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'readable_wrapper';

COMMENT ON FUNCTION awty_internal.readable() IS 'Jobs whose checks the current user may read, as the job''s role or by a right, and what else the user may do with them; for policies';

CREATE FUNCTION awty_internal.can_read(job awty.job) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN awty_internal.can_become((job).role)
        OR awty_internal.has_any_role((job).readers || (job).allowed || (job).claimers,
            awty_internal.becoming());

COMMENT ON FUNCTION awty_internal.can_read(awty.job) IS 'May the current user read the checks of that job, as the job''s role or by a right?';
