-- awty_http, part 7: who may read and write what.
--
-- USAGE on schema awty_http is granted by the administrator, as on awty: GRANT USAGE ON SCHEMA awty, awty_http TO app.

REVOKE ALL ON awty_http.tenant, awty_http.endpoint, awty_http.token, awty_http.stat, awty_http_internal.sent FROM PUBLIC;
REVOKE ALL ON awty_http_internal.schedule_status, awty_http_internal.send_status, awty_http_internal.problem FROM PUBLIC;
REVOKE ALL ON SEQUENCE awty_http.token_id_seq FROM PUBLIC;
REVOKE ALL ON SCHEMA awty_http, awty_http_internal FROM PUBLIC;

-- ALTER DEFAULT PRIVILEGES may have given rights to other roles by now.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('REVOKE ALL ON TABLE %s FROM %s', c.oid::pg_catalog.regclass,
            CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END)
        FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS a
        WHERE c.relnamespace OPERATOR(pg_catalog.=) ANY ('{awty_http,awty_http_internal}'::pg_catalog.regnamespace[])
          AND a.grantee OPERATOR(pg_catalog.<>) c.relowner
        UNION
        SELECT pg_catalog.format('REVOKE ALL ON SCHEMA %I FROM %s', n.nspname,
            CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END)
        FROM pg_catalog.pg_namespace AS n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) AS a
        WHERE n.nspname OPERATOR(pg_catalog.=) ANY ('{awty_http,awty_http_internal}') AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner
        UNION
        SELECT pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM %s', p.oid::pg_catalog.regprocedure,
            CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0 THEN 'PUBLIC' ELSE a.grantee::pg_catalog.regrole::pg_catalog.text END)
        FROM pg_catalog.pg_proc AS p CROSS JOIN LATERAL pg_catalog.aclexplode(p.proacl) AS a
        WHERE p.pronamespace OPERATOR(pg_catalog.=) ANY ('{awty_http,awty_http_internal}'::pg_catalog.regnamespace[])
          AND a.grantee OPERATOR(pg_catalog.<>) p.proowner
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;

-- Functions are called with the rights of the caller, who needs to find what they are made of.
GRANT USAGE ON SCHEMA awty_http_internal TO PUBLIC;
-- UPDATE and DELETE are granted for columns or not at all: who has them for a whole table may LOCK it, and so stop the calls of all.
GRANT SELECT, INSERT, UPDATE (id, job, uri, entity_name, entity_key, version, every, rounded_from, cron, zone, at, after, starts, ends,
        jitter, catch_up, method, headers, body, body_text, body_base64, timeout, connect_timeout, max_attempts, first_delay, max_delay, max_lateness,
        success, sign, keep_response, labels, description, paused, paused_note, failing_since, verdict, verdict_at, verdict_note,
        created_by, created_at, changed_at, deleted_at)
    ON awty_http.endpoint TO PUBLIC;
GRANT SELECT ON awty_http.tenant, awty_http.stat, awty_http_internal.schedule_status, awty_http_internal.send_status, awty_http_internal.problem TO PUBLIC;
-- Without the hash.
GRANT SELECT (id, role, scope, expires_at, created_by, created_at, last_used_at), INSERT (hash, role, scope, expires_at, created_by),
    UPDATE (expires_at) ON awty_http.token TO PUBLIC;
GRANT SELECT, INSERT, UPDATE (check_id) ON awty_http_internal.sent TO PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA awty_http, awty_http_internal TO PUBLIC;
REVOKE ALL ON FUNCTION awty_http_internal.roll_up(timestamptz, interval, jsonb), awty_http_internal.roll_up(awty.future_job),
    awty_http_internal.count_calls(timestamptz, timestamptz, text), awty_http_internal.count_calls_of(text[], timestamptz, timestamptz),
    awty_http_internal.count_job(text, timestamptz), awty_http_internal.count_jobs(timestamptz), awty_http_internal.forget(timestamptz),
    awty_http_internal.endpoint_asks(), awty_http_internal.endpoint_changes(), awty_http_internal.token_ends(),
    awty_http_internal.set_up(), awty_http_internal.register(text, name) FROM PUBLIC;

ALTER TABLE awty_http.tenant ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http.endpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http.stat ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http.token ENABLE ROW LEVEL SECURITY;
ALTER TABLE awty_http_internal.sent ENABLE ROW LEVEL SECURITY;

-- A tenant is seen by its role, also when its job is gone, and by those who may read its job; the rest goes with it.
CREATE POLICY own ON awty_http.tenant FOR SELECT TO PUBLIC USING (
    awty_internal.can_become(role)
    OR (job, role::pg_catalog.oid) OPERATOR(pg_catalog.=) ANY (
        SELECT j.name, j.role::pg_catalog.oid FROM awty.job AS j
        WHERE awty_internal.can_read(j)));
CREATE POLICY own ON awty_http.endpoint FOR SELECT TO PUBLIC USING (
    job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT t.job FROM awty_http.tenant AS t)));
CREATE POLICY own ON awty_http.stat FOR SELECT TO PUBLIC USING (
    job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT t.job FROM awty_http.tenant AS t)));

CREATE POLICY scheduled ON awty_http.endpoint FOR INSERT TO PUBLIC WITH CHECK (
    awty_http_internal.may_schedule(job)
    AND pg_catalog.pg_get_userbyid(created_by::pg_catalog.oid) OPERATOR(pg_catalog.=) CURRENT_USER
    AND EXISTS (SELECT FROM awty_http_internal.place(uri) AS p JOIN awty_http.tenant AS t ON t.job OPERATOR(pg_catalog.=) endpoint.job
                WHERE (p.uri, p.entity_name, p.entity_key, awty_http_internal.id(t.number, p.uri))
                    OPERATOR(pg_catalog.=) (endpoint.uri, endpoint.entity_name, endpoint.entity_key, endpoint.id)));
-- The trigger says which columns.
CREATE POLICY changed ON awty_http.endpoint FOR UPDATE TO PUBLIC USING (
    awty_http_internal.may_schedule(job) OR awty_http_internal.may_claim(job));

CREATE POLICY own ON awty_http.token FOR SELECT TO PUBLIC USING (awty_internal.can_become(role));
CREATE POLICY made ON awty_http.token FOR INSERT TO PUBLIC WITH CHECK (
    awty_internal.can_become(role) AND pg_catalog.pg_get_userbyid(created_by::pg_catalog.oid) OPERATOR(pg_catalog.=) CURRENT_USER);
CREATE POLICY ended ON awty_http.token FOR UPDATE TO PUBLIC USING (awty_internal.can_become(role));

CREATE POLICY own ON awty_http_internal.sent TO PUBLIC USING (awty_http_internal.may_schedule(job));

-- The database's owner may dump it, with pg_dump --enable-row-security.
GRANT USAGE ON SCHEMA awty_http TO pg_database_owner;
GRANT SELECT ON awty_http.token TO pg_database_owner;
GRANT SELECT ON SEQUENCE awty_http.token_id_seq TO pg_database_owner;
CREATE POLICY dumped ON awty_http.tenant FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http.endpoint FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http.stat FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http.token FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);
CREATE POLICY dumped ON awty_http_internal.sent FOR SELECT TO pg_database_owner, pg_read_all_data USING (true);

-- A role that is gone is a number in a dump, and another role may have that number where it is restored, and so its tokens and rows: they stay behind.
-- Not so where only created_by or sent_by is gone: these give no right, and a live schedule or a used key must not be lost for them.
DO $$
DECLARE
    config record;
BEGIN
    FOR config IN
        SELECT t.name::pg_catalog.regclass AS name, CASE WHEN t.name OPERATOR(pg_catalog.=) ANY ('{awty_http.tenant,awty_http.token}')
            THEN 'WHERE EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) role::pg_catalog.oid)'
            ELSE 'WHERE job OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT t.job FROM awty_http.tenant AS t'
                ' WHERE EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) t.role::pg_catalog.oid)))' END AS condition
        FROM pg_catalog.unnest('{awty_http.tenant,awty_http.endpoint,awty_http.token,awty_http.stat,awty_http_internal.sent}'::pg_catalog.text[]) AS t (name)
    LOOP
        PERFORM pg_catalog.pg_extension_config_dump(config.name, config.condition);
    END LOOP;
    PERFORM pg_catalog.pg_extension_config_dump('awty_http.token_id_seq', '');
END
$$;

-- EXPLAIN estimates by the statistics of a table, whatever rows it may show.
ALTER TABLE awty_http.endpoint ALTER id SET STATISTICS 0, ALTER job SET STATISTICS 0, ALTER uri SET STATISTICS 0,
    ALTER entity_name SET STATISTICS 0, ALTER entity_key SET STATISTICS 0, ALTER headers SET STATISTICS 0, ALTER body SET STATISTICS 0,
    ALTER body_text SET STATISTICS 0, ALTER body_base64 SET STATISTICS 0, ALTER labels SET STATISTICS 0,
    ALTER description SET STATISTICS 0, ALTER verdict_note SET STATISTICS 0, ALTER paused_note SET STATISTICS 0;
ALTER TABLE awty_http.tenant ALTER job SET STATISTICS 0, ALTER number SET STATISTICS 0;
ALTER TABLE awty_http.stat ALTER id SET STATISTICS 0, ALTER job SET STATISTICS 0;
ALTER TABLE awty_http.token ALTER hash SET STATISTICS 0;
ALTER TABLE awty_http_internal.sent ALTER job SET STATISTICS 0, ALTER key SET STATISTICS 0, ALTER content SET STATISTICS 0, ALTER entity_name SET STATISTICS 0,
    ALTER entity_key SET STATISTICS 0;
