-- Refuses a DROP … CASCADE that would drop a rule's triggers, because the rule would silently stop.
--
-- A DROP TRIGGER by name only gets a warning, because scripts of pg_dump --clean use it. A role that cannot end the
-- rule only gets a warning, because it must be able to drop its own objects.
CREATE FUNCTION awty_internal.refuse_drop() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- current_user would be the owner of this function, because the function is SECURITY DEFINER.
    caller CONSTANT name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    lost record;
BEGIN
    SELECT r.rule, r.relation, (awty_internal.cannot_watch(r.rule))[1] AS why,
        o.original OR NOT pg_has_role(caller, c.relowner, awty_internal.becoming()) AS is_allowed INTO lost
    FROM pg_event_trigger_dropped_objects() AS o
    JOIN awty.rule AS r ON r.relation::oid = to_regclass(format('%I.%I', o.address_names[1], o.address_names[2]))::oid
    JOIN pg_class AS c ON c.oid = r.relation::oid
    WHERE o.object_type = 'trigger' AND awty_internal.is_trigger_of(r.rule, o.address_names[3])
    ORDER BY is_allowed LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    ELSIF lost.is_allowed THEN
        RAISE WARNING USING MESSAGE = format('rule "%s" has stopped: %s', lost.rule, lost.why),
            HINT = format('SELECT awty.unwatch(%L); ends the rule, and awty.watch() repairs it.', lost.rule);
    ELSE
        RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
            MESSAGE = format('cannot drop this, because rule "%s" on table %s needs it', lost.rule, lost.relation),
            DETAIL = format('Without it, %s.', lost.why), HINT = format('SELECT awty.unwatch(%L);', lost.rule);
    END IF;
END
$$;

COMMENT ON FUNCTION awty_internal.refuse_drop() IS 'Refuses a DROP … CASCADE that would drop the triggers of a rule while the table stays, and warns of DROP TRIGGER and of roles that cannot end the rule';

CREATE EVENT TRIGGER awty_refuse_drop ON sql_drop EXECUTE FUNCTION awty_internal.refuse_drop();
COMMENT ON EVENT TRIGGER awty_refuse_drop IS 'Refuses a DROP … CASCADE that would drop objects which a rule of awty needs';
