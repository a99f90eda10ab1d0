-- pgbench: a customer places an order.
\set luck random(1, 100)
\set quick random(200, 2500)
\set slow random(2500, 5500)
INSERT INTO shop.orders(ready_at)
SELECT clock_timestamp() + interval '1 millisecond' *
       CASE WHEN :luck <= 4 THEN NULL WHEN :luck <= 12 THEN :slow ELSE :quick END;
