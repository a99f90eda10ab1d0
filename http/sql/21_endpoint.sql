-- Only functions of the extension's owner write these tables, after they have checked the caller's rights.

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
    jitter          interval,
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

CREATE INDEX endpoint_job_idx ON awty_http_internal.endpoint (job, id);
CREATE INDEX endpoint_failing_idx ON awty_http_internal.endpoint (job, id) WHERE failing_since IS NOT NULL;
CREATE INDEX endpoint_paused_idx ON awty_http_internal.endpoint (job, id) WHERE paused;
CREATE INDEX endpoint_origin_idx ON awty_http_internal.endpoint (job, entity_name, id);
CREATE INDEX endpoint_deleted_idx ON awty_http_internal.endpoint (deleted_at) WHERE deleted_at IS NOT NULL;

COMMENT ON TABLE awty_http_internal.endpoint IS 'URIs that the gateway calls, one row for each URI of a tenant: when and how; the row of a deleted schedule stays as long as its statistics';
COMMENT ON COLUMN awty_http_internal.endpoint.id IS 'Id of the schedule, always the same for the same tenant and URI';
COMMENT ON COLUMN awty_http_internal.endpoint.job IS 'Job of the tenant';
COMMENT ON COLUMN awty_http_internal.endpoint.uri IS 'URI in its one spelling';
COMMENT ON COLUMN awty_http_internal.endpoint.entity_name IS 'Scheme, host and port: the entity name of the checks, and their target';
COMMENT ON COLUMN awty_http_internal.endpoint.entity_key IS 'Path and query: the entity key of the checks';
COMMENT ON COLUMN awty_http_internal.endpoint.version IS 'Version of the definition; each change adds 1';
COMMENT ON COLUMN awty_http_internal.endpoint.every IS 'Interval between calls, a multiple of a slot; NULL: see cron and at';
COMMENT ON COLUMN awty_http_internal.endpoint.rounded_from IS 'Interval that the caller gave, if it was rounded up to every';
COMMENT ON COLUMN awty_http_internal.endpoint.cron IS 'Cron expression of the calls, in zone; NULL: see every and at';
COMMENT ON COLUMN awty_http_internal.endpoint.zone IS 'Time zone of cron, or of an every of days or longer';
COMMENT ON COLUMN awty_http_internal.endpoint.at IS 'Time of a single call; NULL: the calls repeat';
COMMENT ON COLUMN awty_http_internal.endpoint.after IS 'Interval from which at was computed; NULL: the caller gave no interval';
COMMENT ON COLUMN awty_http_internal.endpoint.starts IS 'No call before this time; NULL: no limit';
COMMENT ON COLUMN awty_http_internal.endpoint.ends IS 'No call after this time; NULL: no limit';
COMMENT ON COLUMN awty_http_internal.endpoint.jitter IS 'Upper bound of the delay of each call; the delay of one URI is always the same; NULL: of every, the interval, at most 1 min; otherwise none';
COMMENT ON COLUMN awty_http_internal.endpoint.catch_up IS 'How far back the slots that passed while nothing could run are made up for';
COMMENT ON COLUMN awty_http_internal.endpoint.request IS 'How the URI is called, without header values and the body';
COMMENT ON COLUMN awty_http_internal.endpoint.labels IS 'Words by which a list can be filtered';
COMMENT ON COLUMN awty_http_internal.endpoint.description IS 'Purpose, in words';
COMMENT ON COLUMN awty_http_internal.endpoint.paused IS 'True if a person has paused the schedule';
COMMENT ON COLUMN awty_http_internal.endpoint.paused_note IS 'Note that the person gave';
COMMENT ON COLUMN awty_http_internal.endpoint.failing_since IS 'Time of the first failure after the last successful call; NULL: the last call succeeded, or there was none';
COMMENT ON COLUMN awty_http_internal.endpoint.verdict IS 'Last request of the endpoint: hold (it is gone) or stop (no more calls); NULL: none since the URI was scheduled or resumed';
COMMENT ON COLUMN awty_http_internal.endpoint.verdict_at IS 'Time of that request';
COMMENT ON COLUMN awty_http_internal.endpoint.verdict_note IS 'Reason that the endpoint gave';
COMMENT ON COLUMN awty_http_internal.endpoint.created_by IS 'Role that first scheduled the URI';
COMMENT ON COLUMN awty_http_internal.endpoint.created_at IS 'Time at which the URI was first scheduled, or scheduled again after a deletion';
COMMENT ON COLUMN awty_http_internal.endpoint.changed_at IS 'Time of the last change of the definition';
COMMENT ON COLUMN awty_http_internal.endpoint.deleted_at IS 'Time of awty_http.unschedule(); NULL: the URI is scheduled';

-- Header values and bodies are in a separate table, because a role with the right "read" may not see them.
CREATE TABLE awty_http_internal.content (
    job             text COLLATE "C" NOT NULL,
    entity_name     text COLLATE "C" NOT NULL,
    entity_key      text COLLATE "C" NOT NULL,
    content         jsonb NOT NULL,
    CONSTRAINT content_pkey PRIMARY KEY (entity_name, entity_key, job)
);

COMMENT ON TABLE awty_http_internal.content IS 'Header values and bodies of schedules and sends; the content of a send is deleted with the send';
COMMENT ON COLUMN awty_http_internal.content.job IS 'Job of the check';
COMMENT ON COLUMN awty_http_internal.content.entity_name IS 'Entity name of the check';
COMMENT ON COLUMN awty_http_internal.content.entity_key IS 'Entity key of the check';
COMMENT ON COLUMN awty_http_internal.content.content IS 'Object with headers and one of body, body_text and body_base64; the gateway replaces {{secret:NAME}} in a header by its secret';

CREATE VIEW awty_http.endpoint WITH (security_invoker = true) AS
SELECT e.id, e.job, e.uri, e.entity_name, e.entity_key, e.version, e.every, e.rounded_from, e.cron, e.zone, e.at, e.after, e.starts, e.ends, e.jitter, e.catch_up,
    e.request || coalesce(c.content, '{}') AS request,
    e.labels, e.description, e.paused, e.paused_note, e.failing_since, e.verdict, e.verdict_at, e.verdict_note, e.created_by, e.created_at, e.changed_at, e.deleted_at
FROM awty_http_internal.endpoint AS e
LEFT JOIN awty_http_internal.content AS c ON c.entity_name = e.entity_name
    AND c.entity_key = e.entity_key AND c.job = e.job;

COMMENT ON VIEW awty_http.endpoint IS 'URIs that the gateway calls, one row for each URI of a tenant: when and how; the row of a deleted schedule stays as long as its statistics';
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
COMMENT ON COLUMN awty_http.endpoint.request IS 'How the URI is called: method, headers, body, timeout, connect_timeout, retries, max_lateness, success, sign, keep_response. Only roles that may schedule or claim see header values and the body';
