-- Returns one row per error: an order and level whose alerts or history do not fit the order.
--
-- If an order ships at about the time of its alert, shipped_at decides. The trigger reads the clock after awty has
-- cancelled the check, and a run that has not committed by then commits nothing.
WITH due AS (
    SELECT o.id, l.level, s.shipped_at, a.cleared_at,
           CASE WHEN l.level = 1 THEN a.raised_at WHEN a.level >= l.level THEN coalesce(a.escalated_at, a.raised_at) END AS raised_at,
           to_timestamp(ceil(extract(epoch FROM o.placed_at + l.time_to_ship))) AS slot
    FROM shop.orders o
    CROSS JOIN (VALUES (1, interval '3 seconds'), (2, interval '5 seconds')) AS l(level, time_to_ship)
    LEFT JOIN shop.shipment s ON s.order_id = o.id
    LEFT JOIN awty.alert a ON a.rule = 'orders' AND a.entity_key = o.id::text
), told AS (
    SELECT o.id, count(h.id) AS rows, min(h.outcome) AS outcome,
           CASE WHEN s.order_id IS NULL OR max(a.level) = 2 THEN 'done'
                WHEN max(a.level) = 1 THEN 'cancelled' ELSE 'met' END AS expected
    FROM shop.orders o
    LEFT JOIN shop.shipment s ON s.order_id = o.id
    LEFT JOIN awty.alert a ON a.rule = 'orders' AND a.entity_key = o.id::text
    LEFT JOIN awty.future_job_history h ON h.entity_name = 'orders' AND h.entity_key = o.id::text
    GROUP BY o.id, s.order_id
)
SELECT id AS order_id, level, 'did not ship in time and has no alert' AS wrong
FROM due WHERE raised_at IS NULL AND (shipped_at IS NULL OR shipped_at > slot + interval '2 seconds')
UNION ALL
SELECT id, level, 'has an alert although it had shipped' FROM due WHERE raised_at >= shipped_at
UNION ALL
SELECT id, level, 'has an alert before its slot' FROM due WHERE raised_at < slot
UNION ALL
SELECT id, level, 'has shipped, and its alert is open' FROM due WHERE shipped_at IS NOT NULL AND raised_at IS NOT NULL AND cleared_at IS NULL
UNION ALL
SELECT id, level, 'has not shipped, and its alert is cleared' FROM due WHERE shipped_at IS NULL AND cleared_at IS NOT NULL
UNION ALL
SELECT id, NULL, format('has %s rows in the history, the outcome %s, expected one row: %s', rows, coalesce(outcome, 'none'), expected)
FROM told WHERE rows <> 1 OR outcome <> expected
ORDER BY 1, 2
