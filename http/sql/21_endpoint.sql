-- Endpoints: when each URI of a tenant is called, and how.
--
-- Only functions of the extension's owner write these tables, on behalf of a role that has the right.

-- One row for each URI of a tenant: when it is called, how, and how it stands.
CREATE TABLE awty_http_internal.endpoint (
    id              text COLLATE "C" NOT NULL,
    job             text COLLATE "C" NOT NULL,
    uri             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    version         bigint NOT NULL DEFAULT 1,
    every           interval,
    rounded_from    interval,
    cron            text,
    zone            text,
    at              timestamptz,
    after           interval,
    starts          timestamptz,
    ends            timestamptz,
    jitter          interval NOT NULL DEFAULT '0',
    catch_up        interval NOT NULL DEFAULT '0',
    request         jsonb NOT NULL DEFAULT '{"method": "POST"}',
    labels          text[] COLLATE "C" NOT NULL DEFAULT '{}',
    description     text,
    paused          boolean NOT NULL DEFAULT false,
    paused_note     text,
    failing_since   timestamptz,
    verdict         text COLLATE "C",
    verdict_at      timestamptz,
    verdict_note    text,
    created_by      regrole NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    changed_at      timestamptz NOT NULL DEFAULT now(),
    deleted_at      timestamptz,
    CONSTRAINT endpoint_pkey PRIMARY KEY (id),
    CONSTRAINT endpoint_one_per_uri UNIQUE (entity_name, entity_key, job)
);

CREATE INDEX endpoint_failing_idx ON awty_http_internal.endpoint (failing_since, id) WHERE failing_since IS NOT NULL;
-- A tenant's list in its order, however many schedules other tenants have.
CREATE INDEX endpoint_job_idx ON awty_http_internal.endpoint (job, id);
CREATE INDEX endpoint_origin_idx ON awty_http_internal.endpoint (entity_name, id);
CREATE INDEX endpoint_labels_idx ON awty_http_internal.endpoint USING gin (labels) WHERE deleted_at IS NULL;
CREATE INDEX endpoint_deleted_idx ON awty_http_internal.endpoint (deleted_at) WHERE deleted_at IS NOT NULL;

COMMENT ON TABLE awty_http_internal.endpoint IS 'Which URIs are called when and how: one row for each URI of a tenant; a deleted one stays as long as its statistics';
COMMENT ON COLUMN awty_http_internal.endpoint.id IS 'The same for the same tenant and URI for ever';
COMMENT ON COLUMN awty_http_internal.endpoint.job IS 'The job of its checks: that of its tenant';
COMMENT ON COLUMN awty_http_internal.endpoint.uri IS 'The URI, normalised';
COMMENT ON COLUMN awty_http_internal.endpoint.entity_name IS 'Scheme, host and port: the entity name of its checks, and its target';
COMMENT ON COLUMN awty_http_internal.endpoint.entity_key IS 'Path and query: the entity key of its checks';
COMMENT ON COLUMN awty_http_internal.endpoint.version IS 'One more with each change of the definition';
COMMENT ON COLUMN awty_http_internal.endpoint.every IS 'How often, a multiple of a slot; NULL: see cron, or it is one call';
COMMENT ON COLUMN awty_http_internal.endpoint.rounded_from IS 'The length that the caller gave, if every was rounded up to a slot';
COMMENT ON COLUMN awty_http_internal.endpoint.cron IS 'When, as a cron expression in zone';
COMMENT ON COLUMN awty_http_internal.endpoint.zone IS 'Time zone of cron, or of an every of days and longer';
COMMENT ON COLUMN awty_http_internal.endpoint.at IS 'When, of a single call';
COMMENT ON COLUMN awty_http_internal.endpoint.after IS 'The wait that at was made of; NULL: none';
COMMENT ON COLUMN awty_http_internal.endpoint.starts IS 'Not before';
COMMENT ON COLUMN awty_http_internal.endpoint.ends IS 'Not after';
COMMENT ON COLUMN awty_http_internal.endpoint.jitter IS 'Each slot is moved by a part of this, always the same one for this URI';
COMMENT ON COLUMN awty_http_internal.endpoint.catch_up IS 'Slots that passed are called late, as far back as this';
COMMENT ON COLUMN awty_http_internal.endpoint.request IS 'How it is called, without header values and the body';
COMMENT ON COLUMN awty_http_internal.endpoint.labels IS 'Words to find it by';
COMMENT ON COLUMN awty_http_internal.endpoint.description IS 'Purpose, in words';
COMMENT ON COLUMN awty_http_internal.endpoint.paused IS 'A person has paused it';
COMMENT ON COLUMN awty_http_internal.endpoint.paused_note IS 'Why, in that person''s words';
COMMENT ON COLUMN awty_http_internal.endpoint.failing_since IS 'Since when no call has gone well; NULL: the last one did, or there was none';
COMMENT ON COLUMN awty_http_internal.endpoint.verdict IS 'Last request of the endpoint: hold (it is gone) or stop; NULL: none since it was scheduled or resumed';
COMMENT ON COLUMN awty_http_internal.endpoint.verdict_at IS 'When it asked';
COMMENT ON COLUMN awty_http_internal.endpoint.verdict_note IS 'Why, in the endpoint''s words';
COMMENT ON COLUMN awty_http_internal.endpoint.created_by IS 'Who scheduled it first';
COMMENT ON COLUMN awty_http_internal.endpoint.created_at IS 'When it was scheduled first, or again after it was deleted';
COMMENT ON COLUMN awty_http_internal.endpoint.changed_at IS 'When its definition last changed';
COMMENT ON COLUMN awty_http_internal.endpoint.deleted_at IS 'When it was unscheduled; NULL: it is there';

-- Header values and bodies have a table of their own, because roles with the right "read" do not see them.
CREATE TABLE awty_http_internal.content (
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    content         jsonb NOT NULL,
    CONSTRAINT content_pkey PRIMARY KEY (entity_name, entity_key, job)
);

COMMENT ON TABLE awty_http_internal.content IS 'Header values and bodies of endpoints and of sends; that of a send goes with the send';
COMMENT ON COLUMN awty_http_internal.content.job IS 'The job of the check';
COMMENT ON COLUMN awty_http_internal.content.entity_name IS 'Entity name of the check';
COMMENT ON COLUMN awty_http_internal.content.entity_key IS 'Entity key of the check';
COMMENT ON COLUMN awty_http_internal.content.content IS 'headers, and one of body, body_text and body_base64; {{secret:NAME}} in a header is replaced by a secret of the gateway';

CREATE VIEW awty_http.endpoint WITH (security_invoker = true) AS
SELECT e.id, e.job, e.uri, e.entity_name, e.entity_key, e.version, e.every, e.rounded_from, e.cron, e.zone, e.at, e.after, e.starts, e.ends, e.jitter, e.catch_up,
    e.request || coalesce(c.content, '{}') AS request,
    e.labels, e.description, e.paused, e.paused_note, e.failing_since, e.verdict, e.verdict_at, e.verdict_note, e.created_by, e.created_at, e.changed_at, e.deleted_at
FROM awty_http_internal.endpoint AS e
LEFT JOIN awty_http_internal.content AS c ON c.entity_name = e.entity_name
    AND c.entity_key = e.entity_key AND c.job = e.job;

COMMENT ON VIEW awty_http.endpoint IS 'Which URIs are called when and how: one row for each URI of a tenant; a deleted one stays as long as its statistics';
-- The columns of the view have the comments of the table, except for the request.
DO $$
DECLARE
    command text;
BEGIN
    FOR command IN
        SELECT format('COMMENT ON COLUMN awty_http.endpoint.%I IS %L', a.attname, col_description(a.attrelid, a.attnum))
        FROM pg_attribute AS a
        WHERE a.attrelid = 'awty_http_internal.endpoint'::regclass AND a.attnum > 0
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
COMMENT ON COLUMN awty_http.endpoint.request IS 'How it is called: method, headers, body, timeout, connect_timeout, retries, max_lateness, success, sign, keep_response. Header values and the body are shown to roles that may schedule or claim';
