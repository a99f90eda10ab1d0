CREATE FUNCTION awty_http_internal.refuse(sqlstate text, message text, hint text) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = sqlstate, MESSAGE = message, HINT = hint;
END
$$;
COMMENT ON FUNCTION awty_http_internal.refuse(text, text, text) IS 'Raises an error';

-- Refuses text that is not UTF-8, because SQL_ASCII accepts any bytes, and other encodings have characters that UTF-8
-- lacks.
CREATE FUNCTION awty_http_internal.check_encoding(VARIADIC texts text[]) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF getdatabaseencoding() = 'UTF8' THEN
        RETURN;
    END IF;
    BEGIN
        PERFORM convert_to(array_to_string(check_encoding.texts, ''), 'UTF8');
    EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
        PERFORM awty_http_internal.refuse('22021', 'text cannot be converted to UTF-8', 'SET client_encoding = ''UTF8''; and send UTF-8.');
    END;
END
$$;
COMMENT ON FUNCTION awty_http_internal.check_encoding(text[]) IS 'Raises an error for a text that cannot be converted to UTF-8';

CREATE TYPE awty_http_internal.rule AS (is_kept boolean, message text, hint text);
COMMENT ON TYPE awty_http_internal.rule IS 'A condition, and the error to raise if it is not met';

CREATE FUNCTION awty_http_internal.refuse_first(rules awty_http_internal.rule[]) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    broken record;
BEGIN
    SELECT r.* INTO broken FROM unnest(refuse_first.rules) AS r WHERE NOT r.is_kept LIMIT 1;
    IF FOUND THEN
        PERFORM awty_http_internal.refuse(CASE WHEN broken.message ~ 'larger|longer' THEN '54000' ELSE '22023' END, broken.message, broken.hint);
    END IF;
END
$$;
COMMENT ON FUNCTION awty_http_internal.refuse_first(awty_http_internal.rule[]) IS 'Raises the error of the first condition that is not met';
