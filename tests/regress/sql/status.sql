-- awty.status has one row, which is the same for every role.
\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SELECT database = current_database(), enabled, database_held, why, fix, slot, last_slot_run, lag, oldest_overdue, pending, held_checks, workers, last_error FROM awty.status;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid'), awty.register('paused', 'shop.unpaid'), awty.pause('paused');
SELECT count(awty.schedule('orders', n::text, job, after => '1 hour')) FROM generate_series(1, 10) AS n, unnest('{unpaid, paused}'::text[]) AS job;
SELECT pending, held_checks, lag, oldest_overdue FROM awty.status;

-- lag and oldest_overdue ignore checks that are held or whose job is paused.
RESET ROLE;
UPDATE awty.future_job SET first_check_at = now() - interval '3 hours', next_check_at = now() - interval '3 hours' WHERE job = 'paused' AND entity_key = '1';
SELECT lag, oldest_overdue FROM awty.status;
UPDATE awty.future_job SET first_check_at = now() - interval '2 hours', next_check_at = now() - interval '2 hours', held = true WHERE job = 'unpaid' AND entity_key = '1';
SELECT lag, oldest_overdue, pending, held_checks FROM awty.status;
UPDATE awty.future_job SET first_check_at = now() - interval '1 hour', next_check_at = now() - interval '1 hour' WHERE job = 'unpaid' AND entity_key IN ('2', '3');
UPDATE awty.future_job SET next_check_at = now() - interval '30 min' WHERE job = 'unpaid' AND entity_key = '3';
SELECT date_trunc('hour', lag), oldest_overdue BETWEEN now() - interval '61 min' AND now() - interval '59 min' FROM awty.status;

-- Other roles see the same numbers, but no names, keys or arguments.
SET ROLE regress_eve;
SELECT pending, held_checks, date_trunc('hour', lag) FROM awty.status;
SELECT count(*) FROM awty.status AS s, awty.future_job;
SELECT s::text ~ 'unpaid|orders' FROM awty.status AS s;
SELECT test.sqlstate($$SELECT FROM awty_internal.runtime()$$);
RESET ROLE;
SELECT enabled, slot, last_slot_run, workers, trouble FROM awty_internal.runtime();
SET ROLE regress_eve;
BEGIN READ ONLY;
SELECT count(*) FROM awty.status;
COMMIT;
RESET ROLE;
SELECT awty.unregister('unpaid'), awty.unregister('paused');
SELECT pending, held_checks, lag, oldest_overdue FROM awty.status;

-- For an unknown entity, awty.explain() suggests the entity of the table's rule, or an entity with a similar name.
SET ROLE regress_shop;
CREATE TABLE shop.purchase (id integer PRIMARY KEY);
SELECT awty.watch('shop.purchase', until => 'false', within => '1 hour');
SELECT * FROM awty.explain('shop.purchase', 1);
SELECT * FROM awty.explain('purchases', 1);
SELECT * FROM awty.explain('xyz', 1);
SELECT * FROM awty.explain('http://127.0.0.1:28999', 'dead');
SELECT * FROM awty.explain('a.b.c.d', 1);
ALTER TABLE shop.purchase RENAME TO sale;
SELECT * FROM awty.explain('shop.sale', 1);
SELECT test.raises($$SELECT * FROM awty.explain(NULL, 1)$$);
SELECT test.raises($$SELECT * FROM awty.explain('purchase', NULL::text)$$);
SELECT awty.unwatch('purchase');
DROP TABLE shop.sale;
RESET ROLE;
DELETE FROM awty.alert;
DELETE FROM awty.future_job_history;
