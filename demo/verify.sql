-- What must not be: one row per order and level for which the alerts, or the history, are not as the orders demand.
-- No row: all is right.
--
-- An order's check is due at the first full second (slot) not before its time: 3 s after it was placed, then 5 s. The
-- database's own record decides about an order that shipped at about that moment: shipped_at was read after its check was
-- cancelled, and a run that was not over by then commits nothing. So an alert must be older than the shipment, and an order
-- without one must have shipped before a run that started within 2 seconds of its slot could look.
WITH due AS (
    SELECT o.id, l.level, s.shipped_at, s.checks_cancelled, a.raised_at,
           to_timestamp(ceil(extract(epoch FROM o.placed_at + l.time_to_ship))) AS slot
    FROM shop.orders o
    CROSS JOIN (VALUES (0, interval '3 seconds'), (1, interval '5 seconds')) AS l(level, time_to_ship)
    LEFT JOIN shop.shipment s ON s.order_id = o.id
    LEFT JOIN shop.alert a ON a.order_id = o.id AND a.level = l.level
), told AS (
    SELECT o.id, count(h.id) AS rows, min(h.outcome) AS outcome, min(h.check_count) AS checks,
           (SELECT count(*) FROM shop.alert a WHERE a.order_id = o.id) AS alerts,
           CASE WHEN s.checks_cancelled = 1 THEN 'cancelled' ELSE 'done' END AS expected
    FROM shop.orders o
    LEFT JOIN shop.shipment s ON s.order_id = o.id
    LEFT JOIN awty.future_job_history h ON h.entity_name = 'orders' AND h.entity_key = o.id::text
    GROUP BY o.id, s.checks_cancelled
)
SELECT id AS order_id, level, 'did not ship in time and has no alert' AS wrong
FROM due WHERE raised_at IS NULL AND (shipped_at IS NULL OR shipped_at > slot + interval '2 seconds')
UNION ALL
SELECT id, level, 'has an alert although it had shipped' FROM due WHERE raised_at >= shipped_at
UNION ALL
SELECT id, level, 'has an alert before its slot' FROM due WHERE raised_at < slot
UNION ALL
SELECT id, NULL, format('has %s rows in the history, the outcome %s after %s checks with %s alerts, expected one row: %s',
                        rows, coalesce(outcome, 'none'), coalesce(checks, 0), alerts, expected)
FROM told WHERE rows <> 1 OR outcome <> expected OR checks <> alerts
ORDER BY 1, 2
