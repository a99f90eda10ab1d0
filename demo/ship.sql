-- pgbench: the warehouse ships one of the packed orders.
UPDATE shop.orders SET status = 'SHIPPED'
WHERE id = (SELECT id FROM shop.orders
            WHERE status = 'UNSHIPPED' AND ready_at <= clock_timestamp()
            ORDER BY random() LIMIT 1
            FOR NO KEY UPDATE SKIP LOCKED);
