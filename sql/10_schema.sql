-- awty, part 1: the schema.
--
-- The files of this folder, in the order of their numbers, are the install script. It is written by hand, uses plain
-- CREATE only and qualifies every name: whatever a user put in the way beforehand makes it fail instead of joining in.

\echo Use "CREATE EXTENSION awty" to load this file. \quit

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA awty;
