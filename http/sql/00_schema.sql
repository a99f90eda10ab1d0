-- The schemas.
--
-- The extension has SQL and PL/pgSQL only, besides functions of awty's library. Every function has its own search_path, so that it finds
-- nothing of its caller's.

\echo Use "CREATE EXTENSION awty_http" to load this file. \quit

-- Names of PostgreSQL are found by this path alone, here and in views, policies and bodies that are parsed now.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA awty_http;
COMMENT ON SCHEMA awty_http IS 'Endpoints that awty-gateway calls on time: schedules, sends, tenants, tokens and statistics';

CREATE SCHEMA awty_http_internal;
COMMENT ON SCHEMA awty_http_internal IS 'What is awty_http''s own';
