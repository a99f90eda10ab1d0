-- What each client of tests/clients needs: a role that is no superuser and may make schemas.
CREATE EXTENSION awty;
CREATE ROLE app LOGIN;
GRANT USAGE ON SCHEMA awty TO app;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO app', current_database()); END $$;
