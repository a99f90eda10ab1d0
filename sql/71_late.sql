CREATE VIEW awty.late WITH (security_invoker = true, security_barrier = true) AS
SELECT a.rule, a.entity_name, a.entity_key, a.level, a.due_at,
    CASE WHEN isfinite(a.due_at) THEN awty.now() - a.due_at END AS late_for,
    CASE WHEN h.held_by IS NOT NULL OR s.stopped_since IS NOT NULL THEN NULL
        -- Calls next_level_at() for an interval of more than a century, because the operator + could overflow and make
        -- the whole view fail. Only rules from older versions have such intervals.
        WHEN r.calendar IS NULL AND s.rule IS NULL AND (r.escalate[a.level] > '36525 days'::interval) IS NOT TRUE
        THEN coalesce(a.since, a.due_at) + r.escalate[a.level]
        ELSE awty_internal.next_level_at(a.rule, a.level, coalesce(s.since, a.since, a.due_at), a.entity_key) END AS next_level_at,
    a.told,
    pg_get_userbyid(h.held_by) AS held_by,
    h.held_until,
    h.note
FROM awty.alert AS a
-- A standby cannot remove a hold that has ended. Therefore the view compares the end of the hold with the clock.
LEFT JOIN LATERAL (SELECT a.held_by, a.held_until, a.note WHERE (a.held_until <= awty.now()) IS NOT TRUE) AS h ON true
LEFT JOIN awty.rule AS r ON r.rule = a.rule
LEFT JOIN awty_internal.stop AS s ON s.rule = a.rule AND s.key = a.entity_key
WHERE a.cleared_at IS NULL AND a.level >= 1
    -- Lets PostgreSQL find the alerts by index. Without this condition, PostgreSQL would check the caller's rights to
    -- all alerts.
    AND a.rule = ANY (ARRAY(SELECT k.rule FROM awty.rule AS k));

COMMENT ON VIEW awty.late IS 'Rows of watched tables that are late now, one row each';
COMMENT ON COLUMN awty.late.rule IS 'Name of the rule';
COMMENT ON COLUMN awty.late.entity_name IS 'Name of the table at awty.watch()';
COMMENT ON COLUMN awty.late.entity_key IS 'Primary key of the row as text; for several columns, the text that awty.key() makes';
COMMENT ON COLUMN awty.late.level IS 'Level of escalation, from 1';
COMMENT ON COLUMN awty.late.due_at IS 'Time at which the row became late';
COMMENT ON COLUMN awty.late.late_for IS 'Time that has passed since then; NULL: due_at is infinite';
COMMENT ON COLUMN awty.late.next_level_at IS 'Time of the next level; NULL: there is none, or the alert is held, or the row is stopped';
COMMENT ON COLUMN awty.late.told IS 'How often the alert was told';
COMMENT ON COLUMN awty.late.held_by IS 'Role that has called awty.hold() for the row; NULL: the alert is not held';
COMMENT ON COLUMN awty.late.held_until IS 'Time at which the hold ends; NULL: awty.release() ends it';
COMMENT ON COLUMN awty.late.note IS 'Note that was given to awty.hold()';
