-- awty_http, part 6d: its own job.

-- The job that counts. Again it changes nothing.
CREATE FUNCTION awty_http_internal.set_up() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
    PERFORM awty.register('awty_http.roll_up', 'awty_http_internal.roll_up', timeout => '1 hour', keep_history => 'problems',
        max_checks => 0);
    PERFORM awty.repeat('awty_http.roll_up', every => '1 hour');
END
$$;
COMMENT ON FUNCTION awty_http_internal.set_up() IS 'Registers the job that rolls up';

-- A restored dump brings the jobs along as rows of awty.job, and they would be there twice. pg_dump begins each script by setting xmloption
-- to its default, which nobody else does.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_settings AS s
                   WHERE s.name = 'xmloption' AND s.source = 'session') THEN
        PERFORM awty_http_internal.set_up();
    END IF;
END
$$;
