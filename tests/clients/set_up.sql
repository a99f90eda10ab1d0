-- Each client of tests/clients gets a role that may create schemas and is no superuser.
CREATE EXTENSION awty;
CREATE ROLE app LOGIN;
GRANT USAGE ON SCHEMA awty TO app;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO app', current_database()); END $$;
