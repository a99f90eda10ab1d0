-- awty_http, part 6d: its jobs.

-- The job of all who have none of their own, and the one that counts. Again it changes nothing.
CREATE FUNCTION awty_http_internal.set_up() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
    PERFORM awty_http_internal.register('http', current_user);
    PERFORM awty.register('awty_http.roll_up', 'awty_http_internal.roll_up', timeout => '1 hour', keep_history => 'problems',
        max_checks => 0);
    PERFORM awty.repeat('awty_http.roll_up', every => '1 hour');
END
$$;
COMMENT ON FUNCTION awty_http_internal.set_up() IS 'Registers the jobs of awty_http';

-- What belongs to a job goes with it when awty.alter() gives it another role. Runs with the rights of awty's owner.
CREATE FUNCTION awty_http_internal.job_changes() RETURNS trigger
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE awty_http.endpoint AS e SET role = NEW.role WHERE e.job = NEW.name AND e.role = OLD.role;
    UPDATE awty_http_internal.sent AS s SET role = NEW.role WHERE s.job = NEW.name AND s.role = OLD.role;
    UPDATE awty_http.stat AS s SET role = NEW.role WHERE s.id = NEW.name AND s.role = OLD.role;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION awty_http_internal.job_changes() IS 'Gives what belongs to a job its new role';

CREATE TRIGGER awty_http_job_changes AFTER UPDATE OF role ON awty.job
    FOR EACH ROW WHEN (NEW.role::pg_catalog.oid OPERATOR(pg_catalog.<>) OLD.role::pg_catalog.oid)
    EXECUTE FUNCTION awty_http_internal.job_changes();
-- A table of another extension: the trigger is no member of this one, and goes with it all the same.
ALTER TRIGGER awty_http_job_changes ON awty.job DEPENDS ON EXTENSION awty_http;

-- A restored dump brings the jobs along as rows of awty.job, and they would be there twice. pg_dump begins each script by setting xmloption
-- to its default, which nobody else does.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_settings AS s
                   WHERE s.name OPERATOR(pg_catalog.=) 'xmloption' AND s.source OPERATOR(pg_catalog.=) 'session') THEN
        PERFORM awty_http_internal.set_up();
    END IF;
END
$$;
