-- The install script joins these files in the order of their numbers.
--
-- No file uses OR REPLACE, because it could take over a user's object.

\echo Use "CREATE EXTENSION awty" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA awty;
COMMENT ON SCHEMA awty IS 'Are we there yet? Jobs, their pending checks and the history, with the functions that change them';

CREATE SCHEMA awty_internal;
COMMENT ON SCHEMA awty_internal IS 'Objects that only awty itself uses, and the partitions of awty.future_job_history';
