-- One GRANT lets an ordinary role use the extension.
CREATE EXTENSION awty;
SELECT extversion IS NOT NULL AS installed, extrelocatable FROM pg_extension WHERE extname = 'awty';

-- The roles are a shop with jobs, an application that schedules checks, and two attackers.
CREATE ROLE regress_shop LOGIN;
CREATE ROLE regress_app LOGIN;
CREATE ROLE regress_eve LOGIN;
CREATE ROLE regress_mallory LOGIN;
CREATE SCHEMA shop AUTHORIZATION regress_shop;
GRANT USAGE ON SCHEMA shop TO PUBLIC;

-- Executes a statement as the caller, and returns its SQLSTATE, message, DETAIL and HINT, or 'ok'.
CREATE SCHEMA test;
GRANT USAGE, CREATE ON SCHEMA test TO PUBLIC;
CREATE FUNCTION test.raises(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', state || ': ' || message, 'DETAIL: ' || nullif(detail, ''), 'HINT: ' || nullif(hint, ''));
END
$$;
-- Returns only the SQLSTATE, because the wording of PostgreSQL's errors differs between versions.
CREATE FUNCTION test.sqlstate(statement text) RETURNS text LANGUAGE sql
    AS $$ SELECT pg_catalog.split_part(test.raises(statement), ':', 1) $$;

SET ROLE regress_shop;
SELECT test.sqlstate($$SELECT awty.schedule('orders', '42', 'unshipped', after => '3 hours')$$);
SELECT test.sqlstate($$TABLE awty.status$$);
RESET ROLE;
GRANT USAGE ON SCHEMA awty TO regress_shop, regress_app, regress_eve, regress_mallory;

SET ROLE regress_shop;
CREATE FUNCTION shop.unshipped(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE FUNCTION shop.unpaid(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS $$ SELECT NULL::timestamptz $$;
CREATE FUNCTION shop.stale(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE sql
    AS $$ SELECT array_fill(NULL::timestamptz, ARRAY[cardinality(j)]) $$;
