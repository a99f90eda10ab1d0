\pset format unaligned
\pset tuples_only on
-- awty.slot must be 1 s to 1 day, and divide a day.
ALTER SYSTEM SET awty.slot = 7;
ALTER SYSTEM SET awty.slot = '7min';
\set VERBOSITY sqlstate
ALTER SYSTEM SET awty.slot = 0;
ALTER SYSTEM SET awty.slot = -60;
ALTER SYSTEM SET awty.slot = '2d';
ALTER SYSTEM SET awty.slot = '500ms';
ALTER SYSTEM SET awty.slot = 'often';
ALTER SYSTEM SET awty.max_workers = 0;
ALTER SYSTEM SET awty.max_workers = 65;
ALTER SYSTEM SET awty.max_workers_per_role = 0;
ALTER SYSTEM SET awty.batch_size = 0;
ALTER SYSTEM SET awty.batch_size = 1001;
ALTER SYSTEM SET awty.catch_up_rate = -1;
ALTER SYSTEM SET awty.history_retention = '-1d';
ALTER SYSTEM SET awty.max_crashes = 0;
ALTER SYSTEM SET awty.enabled = 'maybe';
ALTER SYSTEM SET awty.auto_adopt = 'perhaps';
ALTER SYSTEM SET awty.synchronous_commit = 'local';
ALTER SYSTEM SET awty.slot = '15min';
ALTER SYSTEM SET awty.slot = '1d';
ALTER SYSTEM SET awty.slot = 1;
ALTER SYSTEM SET awty.history_retention = '400d';
ALTER SYSTEM RESET ALL;

-- Even a superuser cannot set awty's settings for a session, a role, a database or a function.
SET awty.enabled = on;
SET LOCAL awty.auto_adopt = on;
SELECT set_config('awty.slot', '1', false);
ALTER ROLE regress_eve SET awty.enabled = on;
ALTER DATABASE postgres SET awty.max_workers = 64;
CREATE FUNCTION test.sets() RETURNS integer LANGUAGE sql SET awty.slot = 1 AS 'SELECT 1';
SET ROLE regress_eve;
SET awty.enabled = on;
ALTER SYSTEM SET awty.enabled = on;
SELECT set_config('awty.synchronous_commit', 'on', true);
RESET ROLE;
\set VERBOSITY default
SET ROLE regress_eve;
SHOW awty.enabled;
SHOW awty.slot;
SHOW awty.history_retention;
RESET ROLE;

-- A misspelt setting is an error, because the prefix awty is reserved.
SELECT test.sqlstate('SET awty.slots = 1');
SELECT test.sqlstate('SHOW awty.slots');
