-- Only the extension's owner writes awty_http.tenant, so that no role becomes a tenant by the name of its job.

CREATE TABLE awty_http.tenant (
    role            regrole NOT NULL,
    job             text COLLATE "C" NOT NULL,
    number          bigint NOT NULL,
    added_at        timestamptz NOT NULL DEFAULT now(),
    dropped_at      timestamptz,
    CONSTRAINT tenant_pkey PRIMARY KEY (role),
    CONSTRAINT tenant_has_its_own_job UNIQUE (job),
    CONSTRAINT tenant_has_its_own_number UNIQUE (number)
);

COMMENT ON TABLE awty_http.tenant IS 'Roles whose calls the gateway makes, one row each; a dropped tenant keeps its row, so that its schedules keep their ids';
COMMENT ON COLUMN awty_http.tenant.role IS 'Role of the tenant and of its job';
COMMENT ON COLUMN awty_http.tenant.job IS 'Job of the tenant''s calls';
COMMENT ON COLUMN awty_http.tenant.number IS 'Random number, from which the ids and signing keys of the tenant''s schedules are derived';
COMMENT ON COLUMN awty_http.tenant.added_at IS 'Time of the first awty_http.add_tenant()';
COMMENT ON COLUMN awty_http.tenant.dropped_at IS 'Time of awty_http.drop_tenant(); NULL: the role is a tenant';

CREATE FUNCTION awty_http_internal.can_become(caller oid, role oid) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_has_role(caller, role, awty_internal.becoming());
COMMENT ON FUNCTION awty_http_internal.can_become(oid, oid) IS 'Can the first role SET ROLE to the second?';

-- Reads the present rights, because an old snapshot may still show a revoked right. An old snapshot may also still show
-- rows of a former tenant, whose name another role has now.
CREATE FUNCTION awty_http_internal.has_right(caller oid, job text, "right" text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL RESTRICTED
    RETURN EXISTS (
        SELECT FROM awty_http.tenant AS t
        JOIN awty.job AS j ON j.job = t.job AND j.role::oid = t.role::oid
        WHERE t.job = has_right.job AND t.dropped_at IS NULL
          AND awty_internal.has_right(has_right.caller, t.job, has_right."right", t.role::oid));
COMMENT ON FUNCTION awty_http_internal.has_right(oid, text, text) IS 'May that role read, schedule or claim the calls of that tenant''s job?';

-- Functions that write call this function before they wait for a row. Otherwise, the name of the job may become that of
-- another role's job during the wait, and the extension's owner, who executes the function, has rights to that job too.
CREATE FUNCTION awty_http_internal.keep_right(caller oid, job text, "right" text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shown oid := (SELECT t.role FROM awty_http.tenant AS t WHERE t.job = keep_right.job);
BEGIN
    IF awty_http_internal.has_right(keep_right.caller, keep_right.job, keep_right."right")
        AND awty_internal.keep_right(keep_right.caller, keep_right.job, keep_right."right", shown)
    THEN
        RETURN awty_http_internal.has_right(keep_right.caller, keep_right.job, keep_right."right");
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION awty_http_internal.keep_right(oid, text, text) IS 'awty_http_internal.has_right, and keeps the name of the job from other roles until the transaction ends';

CREATE FUNCTION awty_http_internal.me() RETURNS oid
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user
$$;
COMMENT ON FUNCTION awty_http_internal.me() IS 'OID of the current user';

CREATE FUNCTION awty_http_internal.may_schedule(job text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT awty_http_internal.has_right(awty_http_internal.me(), may_schedule.job, 'schedule')
$$;
COMMENT ON FUNCTION awty_http_internal.may_schedule(text) IS 'May the current user schedule calls for that tenant''s job?';

CREATE FUNCTION awty_http_internal.may_claim(job text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT awty_http_internal.has_right(awty_http_internal.me(), may_claim.job, 'claim')
$$;
COMMENT ON FUNCTION awty_http_internal.may_claim(text) IS 'May the current user claim calls of that tenant''s job?';

-- Reads the catalog, because SET ROLE does not load settings such as ALTER ROLE web SET awty_http.tenant = 'app'.
CREATE FUNCTION awty_http_internal.chosen(caller oid) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT substr(c.setting, length('awty_http.tenant=') + 1)
    FROM pg_db_role_setting AS s CROSS JOIN LATERAL unnest(s.setconfig) AS c (setting)
    WHERE s.setrole = chosen.caller AND c.setting ^@ 'awty_http.tenant='
      AND (s.setdatabase = 0 OR s.setdatabase = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
    ORDER BY s.setdatabase DESC LIMIT 1
$$;
COMMENT ON FUNCTION awty_http_internal.chosen(oid) IS 'The tenant that a role has chosen by its setting awty_http.tenant; NULL: none';

-- Returns the role's own job if the role has one, or else the job of the tenant that the role has chosen. A role
-- without both gets a job only if it is a member of exactly one tenant. A right from awty.allow() can select a job for
-- reading. It selects no job for writing, because any tenant can give such a right to any role.
CREATE FUNCTION awty_http_internal.job(caller oid, "right" text DEFAULT 'read') RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own CONSTANT text := (SELECT t.job FROM awty_http.tenant AS t WHERE t.role::oid = job.caller AND t.dropped_at IS NULL);
    chosen CONSTANT text := awty_http_internal.chosen(job.caller);
    jobs text[];
BEGIN
    IF own IS NOT NULL THEN
        RETURN own;
    END IF;
    IF chosen IS NOT NULL THEN
        RETURN (SELECT t.job FROM awty_http.tenant AS t WHERE pg_get_userbyid(t.role) = chosen
                AND awty_http_internal.has_right(job.caller, t.job, job."right"));
    END IF;
    jobs := ARRAY(SELECT t.job FROM awty_http.tenant AS t WHERE awty_http_internal.can_become(job.caller, t.role)
                  AND awty_http_internal.has_right(job.caller, t.job, 'schedule') LIMIT 2);
    IF cardinality(jobs) = 0 AND job."right" = 'read' THEN
        jobs := ARRAY(SELECT t.job FROM awty_http.tenant AS t WHERE awty_http_internal.has_right(job.caller, t.job, 'read') LIMIT 2);
    END IF;
    RETURN CASE WHEN cardinality(jobs) = 1 THEN jobs[1] END;
END
$$;
COMMENT ON FUNCTION awty_http_internal.job(oid, text) IS 'Job of a role''s calls, to read or to schedule them; NULL: there is none, or there are several';

CREATE FUNCTION awty_http_internal.job() RETURNS text
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT awty_http_internal.job(awty_http_internal.me())
$$;
COMMENT ON FUNCTION awty_http_internal.job() IS 'Job of the current user''s calls; NULL: there is none, or there are several';

CREATE FUNCTION awty_http_internal.job_to_schedule(caller oid) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    the_job CONSTANT text := awty_http_internal.job(job_to_schedule.caller, 'schedule');
    name CONSTANT name := pg_get_userbyid(job_to_schedule.caller);
    roles name[];
BEGIN
    IF awty_http_internal.has_right(job_to_schedule.caller, the_job, 'schedule') THEN
        RETURN the_job;
    END IF;
    roles := ARRAY(SELECT pg_get_userbyid(t.role) FROM awty_http.tenant AS t
                   WHERE awty_http_internal.has_right(job_to_schedule.caller, t.job, 'schedule') ORDER BY 1 LIMIT 10);
    IF cardinality(roles) > 0 THEN
        PERFORM awty_http_internal.refuse('21000', format('role "%s" must choose the tenant for which it schedules calls: %s', name,
                array_to_string(roles, ', ')),
            format('ALTER ROLE %I SET awty_http.tenant = %L; by a superuser chooses one of them. So does SET ROLE for a member.', name, roles[1]));
    END IF;
    PERFORM awty_http_internal.refuse('42501', format('role "%s" may not schedule calls for any tenant', name),
        format('The owner of extension awty_http can make the role a tenant: SELECT awty_http.add_tenant(%L);', name));
END
$$;
COMMENT ON FUNCTION awty_http_internal.job_to_schedule(oid) IS 'Job for which a role schedules calls, or an error if there is none, or if there are several';

CREATE FUNCTION awty_http_internal.job_to_schedule() RETURNS text
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT awty_http_internal.job_to_schedule(awty_http_internal.me())
$$;
COMMENT ON FUNCTION awty_http_internal.job_to_schedule() IS 'Job for which the current user schedules calls, or an error if there is none, or if there are several';

CREATE FUNCTION awty_http_internal.keep_job_to_schedule(caller oid) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    the_job text;
BEGIN
    LOOP
        the_job := awty_http_internal.job_to_schedule(keep_job_to_schedule.caller);
        EXIT WHEN awty_http_internal.keep_right(keep_job_to_schedule.caller, the_job, 'schedule');
    END LOOP;
    RETURN the_job;
END
$$;
COMMENT ON FUNCTION awty_http_internal.keep_job_to_schedule(oid) IS 'awty_http_internal.job_to_schedule, and keeps the name of the job from other roles until the transaction ends';

CREATE FUNCTION awty_http_internal.register(job text, role name) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
    PERFORM awty.register(register.job, run_as => register.role, max_attempts => 0, timeout => '15 min', heartbeat => '15 s',
        keep_history => 'problems', max_checks => 0, retry_after => '10 s');
    PERFORM awty.alter_target(register.job, concurrency => 10)
    WHERE NOT EXISTS (SELECT FROM awty.target AS t WHERE t.job = register.job);
END
$$;
COMMENT ON FUNCTION awty_http_internal.register(text, name) IS 'Registers the job of a tenant';

CREATE FUNCTION awty_http_internal.owner_only(call text) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = 'awty_http.tenant'::regclass);
BEGIN
    IF NOT pg_has_role(owner, 'USAGE') THEN
        PERFORM awty_http_internal.refuse('42501', format('role "%s" does not own extension awty_http', current_user),
            format('The owner of the extension must run: SELECT awty_http.%s;', call));
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.owner_only(text) IS 'Raises an error if the current user does not own extension awty_http';

CREATE FUNCTION awty_http_internal.refuse_locked(role name) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM awty_http_internal.refuse('55P03', format('could not lock rows of tenant "%s", because another session has locked them', refuse_locked.role),
        format('To end its sessions, run: SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %L; The view pg_prepared_xacts lists its prepared transactions.',
            refuse_locked.role));
END
$$;
COMMENT ON FUNCTION awty_http_internal.refuse_locked(name) IS 'Raises the error for locked rows of a tenant';

CREATE FUNCTION awty_http_internal.delete_endpoints(job text) RETURNS void
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    UPDATE awty_http_internal.endpoint AS e SET deleted_at = now(), failing_since = NULL, paused = false, paused_note = NULL
    WHERE e.job = delete_endpoints.job AND e.deleted_at IS NULL
$$;
COMMENT ON FUNCTION awty_http_internal.delete_endpoints(text) IS 'Marks all schedules of a tenant''s job as deleted';

CREATE FUNCTION awty_http.add_tenant(role name) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    owner CONSTANT oid := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = add_tenant.role);
    old awty_http.tenant;
    first text := 'http.' || add_tenant.role;
    short text;
    the_job text;
BEGIN
    PERFORM awty_http_internal.owner_only(format('add_tenant(%L)', add_tenant.role));
    IF owner IS NULL THEN
        PERFORM awty_http_internal.refuse('42704', format('role "%s" does not exist', add_tenant.role),
            'To list the roles, run: SELECT rolname FROM pg_roles;');
    END IF;
    SELECT t.* INTO old FROM awty_http.tenant AS t WHERE t.role::oid = owner FOR UPDATE;
    WHILE octet_length(first) > 63 LOOP
        first := left(first, -1);
    END LOOP;
    short := first;
    WHILE octet_length(short) > 43 LOOP
        short := left(short, -1);
    END LOOP;
    -- Tries other names if the name belongs to another role's job or to a rule. The last name is random, so that no role can
    -- register it in advance.
    FOR n IN 0 .. 3 LOOP
        the_job := CASE n WHEN 0 THEN coalesce(old.job, first) WHEN 1 THEN first WHEN 2 THEN short || '-2'
            ELSE short || '-' || awty_http_internal.random_number() END;
        CONTINUE WHEN EXISTS (SELECT FROM awty_http.tenant AS t WHERE t.job = the_job AND t.role::oid <> owner);
        BEGIN
            -- An existing job of the tenant keeps its limits and rights, which the tenant may have changed.
            IF NOT EXISTS (SELECT FROM awty.job AS j WHERE j.job = the_job AND j.role::oid = owner AND old.job = j.job
                           AND j.function_name IS NULL) THEN
                PERFORM awty_http_internal.register(the_job, add_tenant.role);
            END IF;
            EXIT;
        EXCEPTION WHEN duplicate_object OR dependent_objects_still_exist OR lock_not_available THEN
            the_job := NULL;
        END;
    END LOOP;
    INSERT INTO awty_http.tenant AS t (role, job, number)
    VALUES (owner, the_job, awty_http_internal.random_number())
    ON CONFLICT ON CONSTRAINT tenant_pkey DO UPDATE SET job = excluded.job, dropped_at = NULL;
    IF old.dropped_at IS NOT NULL THEN
        -- Transactions that were open when the tenant was dropped may have scheduled calls.
        PERFORM awty_http_internal.delete_endpoints(old.job);
    END IF;
    IF the_job <> old.job THEN
        UPDATE awty_http_internal.endpoint AS e SET job = the_job WHERE e.job = old.job;
        UPDATE awty_http_internal.content AS c SET job = the_job WHERE c.job = old.job;
        UPDATE awty_http_internal.sent AS s SET job = the_job WHERE s.job = old.job;
        UPDATE awty_http.stat AS s SET job = the_job, id = CASE WHEN s.id = s.job THEN the_job ELSE s.id END WHERE s.job = old.job;
    END IF;
    RETURN the_job;
EXCEPTION WHEN lock_not_available THEN
    PERFORM awty_http_internal.refuse_locked(add_tenant.role);
END
$$;
COMMENT ON FUNCTION awty_http.add_tenant(name) IS 'Makes a role a tenant, whose calls the gateway makes; returns the job of its calls; for the owner of extension awty_http';

-- gen_random_uuid() gets its bits from PostgreSQL's strong random source.
CREATE FUNCTION awty_http_internal.random_number() RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ('x' || encode(sha256(uuid_send(gen_random_uuid())), 'hex'))::bit(64)::bigint & 9223372036854775807
$$;
COMMENT ON FUNCTION awty_http_internal.random_number() IS 'Returns a number that cannot be guessed';

CREATE FUNCTION awty_http.drop_tenant(role name) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    old awty_http.tenant;
BEGIN
    PERFORM awty_http_internal.owner_only(format('drop_tenant(%L)', drop_tenant.role));
    UPDATE awty_http.tenant AS t SET dropped_at = now()
    WHERE t.role::oid = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = drop_tenant.role) AND t.dropped_at IS NULL RETURNING t.* INTO old;
    IF NOT FOUND THEN
        PERFORM awty_http_internal.refuse('42704', format('role "%s" is not a tenant', drop_tenant.role),
            'To list the tenants, run: SELECT role FROM awty_http.tenant WHERE dropped_at IS NULL;');
    END IF;
    PERFORM awty_http_internal.delete_endpoints(old.job);
    -- A job with a function has no calls, and awty.unregister() refuses the job of a rule.
    PERFORM awty.unregister(j.job) FROM awty.job AS j
    WHERE j.job = old.job AND j.role::oid = old.role::oid AND j.function_name IS NULL;
EXCEPTION WHEN lock_not_available THEN
    PERFORM awty_http_internal.refuse_locked(drop_tenant.role);
END
$$;
COMMENT ON FUNCTION awty_http.drop_tenant(name) IS 'Ends all calls of a tenant and keeps its history; for the owner of extension awty_http';
