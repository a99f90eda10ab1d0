-- The administrator must grant USAGE on both schemas: GRANT USAGE ON SCHEMA awty, awty_http TO app.

REVOKE ALL ON awty_http.tenant, awty_http.endpoint, awty_http.token, awty_http.stat, awty_http_internal.endpoint,
    awty_http_internal.content, awty_http_internal.sent FROM PUBLIC;
REVOKE ALL ON awty_http_internal.schedule_status, awty_http_internal.send_status, awty_http_internal.problem, awty_http_internal.failing FROM PUBLIC;
REVOKE ALL ON SEQUENCE awty_http.token_id_seq FROM PUBLIC;
REVOKE ALL ON SCHEMA awty_http, awty_http_internal FROM PUBLIC;

-- Revokes rights that ALTER DEFAULT PRIVILEGES has granted.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('REVOKE ALL ON TABLE %s FROM %s', c.oid::regclass,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.relnamespace = ANY ('{awty_http,awty_http_internal}'::regnamespace[])
          AND a.grantee <> c.relowner
        UNION
        SELECT format('REVOKE ALL ON SCHEMA %I FROM %s', n.nspname,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
        FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
        WHERE n.nspname = ANY ('{awty_http,awty_http_internal}') AND a.grantee <> n.nspowner
        UNION
        SELECT format('REVOKE ALL ON ROUTINE %s FROM %s', p.oid::regprocedure,
            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
        FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
        WHERE p.pronamespace = ANY ('{awty_http,awty_http_internal}'::regnamespace[])
          AND a.grantee <> p.proowner
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA awty_http_internal TO PUBLIC;
GRANT SELECT ON awty_http.tenant, awty_http.endpoint, awty_http.stat, awty_http_internal.endpoint, awty_http_internal.content,
    awty_http_internal.sent, awty_http_internal.schedule_status, awty_http_internal.send_status, awty_http_internal.problem,
    awty_http_internal.failing TO PUBLIC;
GRANT SELECT (id, role, scope, expires_at, created_by, created_at, last_used_at) ON awty_http.token TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awty_http, awty_http_internal TO PUBLIC;
REVOKE ALL ON FUNCTION awty_http_internal.roll_up(timestamptz, interval, jsonb), awty_http_internal.roll_up(awty.future_job),
    awty_http_internal.count_calls(timestamptz, timestamptz, text), awty_http_internal.count_calls_of(text[], timestamptz, timestamptz),
    awty_http_internal.count_job(text, timestamptz), awty_http_internal.count_jobs(timestamptz), awty_http_internal.forget(timestamptz),
    awty_http_internal.forget_hours_of(text[], timestamptz),
    awty_http_internal.set_up(), awty_http_internal.register(text, name), awty_http_internal.set_content(text, text, text, jsonb) FROM PUBLIC;
-- No role may call these functions, because they trust their argument "caller".
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', p.oid::regprocedure)
        FROM pg_proc AS p
        WHERE p.pronamespace = 'awty_http_internal'::regnamespace
          AND p.proname::text ~ '_as$'
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

ALTER TABLE awty_http.tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http_internal.endpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http_internal.content ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http.stat ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http.token ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http_internal.sent ENABLE ROW LEVEL SECURITY;

-- The tenant's role reads its row even if the job was removed.
CREATE POLICY own ON awty_http.tenant FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(role)
    OR (job, role::oid) = ANY (SELECT r.job, r.role FROM awty_internal.readable() AS r));
CREATE POLICY own ON awty_http_internal.endpoint FOR SELECT TO PUBLIC USING (
    job = ANY (SELECT t.job FROM awty_http.tenant AS t));
CREATE POLICY own ON awty_http.stat FOR SELECT TO PUBLIC USING (
    job = ANY (SELECT t.job FROM awty_http.tenant AS t));
CREATE POLICY own ON awty_http_internal.content FOR SELECT TO PUBLIC USING (
    job = ANY (
        SELECT t.job FROM awty_http.tenant AS t
        JOIN awty_internal.readable() AS r ON r.job = t.job AND r.role = t.role::oid
        WHERE t.dropped_at IS NULL AND (r.may_schedule OR r.may_claim)));
-- The array makes PostgreSQL use the primary key, which begins with the job.
CREATE POLICY own ON awty_http_internal.sent FOR SELECT TO PUBLIC USING (
    job = ANY (ARRAY(
        SELECT t.job FROM awty_http.tenant AS t
        JOIN awty_internal.readable() AS r ON r.job = t.job AND r.role = t.role::oid
        WHERE t.dropped_at IS NULL AND r.may_schedule)));
CREATE POLICY own ON awty_http.token FOR SELECT TO PUBLIC USING (awty_internal.can_become(role));

-- The database's owner may dump all rows, with pg_dump --enable-row-security.
GRANT USAGE ON SCHEMA awty_http TO pg_database_owner;
GRANT SELECT ON awty_http.token TO pg_database_owner;
GRANT SELECT ON SEQUENCE awty_http.token_id_seq TO pg_database_owner;
CREATE POLICY dumped ON awty_http.tenant FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http_internal.content FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http_internal.endpoint FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http.stat FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http.token FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http_internal.sent FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);

-- A dump omits tokens and rows of dropped roles, because the number of such a role may belong to another role on the
-- restored server. created_by and sent_by give no right, so they may name a dropped role.
DO $$
DECLARE
    config record;
BEGIN
    FOR config IN
        SELECT t.name::regclass AS name, CASE WHEN t.name = ANY ('{awty_http.tenant,awty_http.token}')
            THEN 'WHERE EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) role::pg_catalog.oid)'
            ELSE 'WHERE job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT t.job FROM awty_http.tenant AS t'
                ' WHERE EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) t.role::pg_catalog.oid)))' END AS condition
        FROM unnest('{awty_http.tenant,awty_http.token,awty_http.stat,awty_http_internal.endpoint,awty_http_internal.content,awty_http_internal.sent}'::text[]) AS t (name)
    LOOP
        PERFORM pg_extension_config_dump(config.name, config.condition);
    END LOOP;
    PERFORM pg_extension_config_dump('awty_http.token_id_seq', '');
END
$$;

-- Columns with users' data have no statistics, because EXPLAIN's estimates would reveal values of other roles' rows.
ALTER TABLE awty_http_internal.endpoint ALTER id SET STATISTICS 0, ALTER job SET STATISTICS 0, ALTER uri SET STATISTICS 0,
    ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0, ALTER request SET STATISTICS 0, ALTER labels SET STATISTICS 0,
    ALTER description SET STATISTICS 0, ALTER verdict_note SET STATISTICS 0, ALTER paused_note SET STATISTICS 0,
    ALTER cron SET STATISTICS 0, ALTER zone SET STATISTICS 0;
ALTER TABLE awty_http_internal.content ALTER job SET STATISTICS 0, ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0,
    ALTER content SET STATISTICS 0;
ALTER TABLE awty_http.tenant ALTER job SET STATISTICS 0, ALTER number SET STATISTICS 0;
ALTER TABLE awty_http.stat ALTER id SET STATISTICS 0, ALTER job SET STATISTICS 0;
ALTER TABLE awty_http.token ALTER hash SET STATISTICS 0;
ALTER TABLE awty_http_internal.sent ALTER job SET STATISTICS 0, ALTER key SET STATISTICS 0, ALTER digest SET STATISTICS 0, ALTER entity_name SET STATISTICS 0,
    ALTER entity_key SET STATISTICS 0;
