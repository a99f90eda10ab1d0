-- awty_http, part 1: what the extension needs.
--
-- SQL and PL/pgSQL only. Every function has its own search_path, so that nothing of a caller's is found.

CREATE SCHEMA awty_http;
COMMENT ON SCHEMA awty_http IS 'Endpoints that awty-gateway calls on time: schedules, sends, tenants, tokens and statistics';

CREATE SCHEMA awty_http_internal;
COMMENT ON SCHEMA awty_http_internal IS 'What is awty_http''s own';
