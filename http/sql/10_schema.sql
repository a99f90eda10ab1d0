-- awty_http, part 1: what the extension needs.
--
-- SQL and PL/pgSQL only. Every function has its own search_path, so that nothing of a caller's is found.

\echo Use "CREATE EXTENSION awty_http" to load this file. \quit

-- Names of PostgreSQL are found by this path alone, here and in views, policies and bodies that are parsed now.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA awty_http;
COMMENT ON SCHEMA awty_http IS 'Endpoints that awty-gateway calls on time: schedules, sends, tenants, tokens and statistics';

CREATE SCHEMA awty_http_internal;
COMMENT ON SCHEMA awty_http_internal IS 'What is awty_http''s own';
