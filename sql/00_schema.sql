-- The schemas.
--
-- The files of this folder, in the order of their numbers, are the install script. It is written by hand and uses plain CREATE only, so
-- that it fails if a user has created one of the objects beforehand. The search path below finds PostgreSQL's names only. Every name of
-- awty is written with its schema.

\echo Use "CREATE EXTENSION awty" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA awty;
COMMENT ON SCHEMA awty IS 'Are we there yet? Jobs, their pending checks and the history, with the functions that change them';

-- Users read nothing here: awty's own tables, the partitions of the history, and the objects behind triggers and views.
CREATE SCHEMA awty_internal;
COMMENT ON SCHEMA awty_internal IS 'Objects that only awty itself uses, and the partitions of awty.future_job_history';
