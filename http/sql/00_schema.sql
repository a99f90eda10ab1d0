-- Every function of awty_http has its own search_path, so that it never finds objects of its caller.

\echo Use "CREATE EXTENSION awty_http" to load this file. \quit

-- This search_path applies to views, policies and function bodies that the installation parses.
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA awty_http;
COMMENT ON SCHEMA awty_http IS 'Endpoints that awty-gateway calls on time: schedules, sends, tenants, tokens and statistics';

CREATE SCHEMA awty_http_internal;
COMMENT ON SCHEMA awty_http_internal IS 'Objects behind awty_http''s functions and tables';
