\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET ROLE regress_shop;
SELECT awty.register('unshipped', 'shop.unshipped');
SELECT awty.register('unpaid', 'shop.unpaid');

-- An interval is added to now(), the start of the transaction. The sum is rounded up to a slot.
BEGIN;
SELECT awty.schedule('orders', '42', 'unshipped', after => '3 hours') = max(id) FROM awty.future_job;
SELECT job, entity_name, entity_key, args, first_check_at = next_check_at AS first, check_count, attempt, held, scheduled_by,
       next_check_at = awty.next_slot(now() + interval '3 hours') AS at_its_slot,
       next_check_at >= now() + interval '3 hours' AS not_before,
       next_check_at < now() + interval '3 hours 1 minute' AS within_a_slot,
       scheduled_at BETWEEN now() AND clock_timestamp() AS just_now
FROM awty.future_job;
COMMIT;

SELECT date_trunc('hour', now()) AS hour \gset
SELECT awty.schedule('orders', '43', 'unshipped', at => :'hour'::timestamptz + interval '1 day') > 0;
SELECT awty.schedule('orders', '44', 'unshipped', at => :'hour'::timestamptz + interval '1 day 1 us') > 0;
SELECT entity_key, next_check_at - :'hour'::timestamptz FROM awty.future_job WHERE entity_key IN ('43', '44') ORDER BY 1;

SELECT awty.schedule('past', '1', 'unshipped', at => '2001-02-03 04:05:06+00') > 0;
SELECT awty.schedule('past', '2', 'unshipped', at => '4713-01-01 00:00:00 BC') > 0;
SELECT awty.schedule('past', '3', 'unshipped', after => '0') > 0;
SELECT awty.schedule('past', '4', 'unshipped', at => now()) > 0;
SELECT awty.schedule('past', '5', 'unshipped', after => '1 microsecond') > 0;
SELECT entity_key, next_check_at > scheduled_at AND next_check_at <= scheduled_at + interval '1 minute' AS next_slot,
       date_trunc('minute', next_check_at) = next_check_at AS a_slot
FROM awty.future_job WHERE entity_name = 'past' ORDER BY 1;

-- An entity can have checks of two jobs. A check's id is never used again.
SELECT awty.schedule('orders', '42', 'unpaid', after => '1 hour') > max(id) FROM awty.future_job;
SELECT entity_key, job FROM awty.future_job WHERE entity_name = 'orders' ORDER BY entity_key, job;

-- args can be missing, null or an object. SQL NULL and JSON null differ.
SELECT awty.schedule('args', '1', 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('args', '2', 'unpaid', after => '1 day', args => 'null') > 0;
SELECT awty.schedule('args', '3', 'unpaid', after => '1 day', args => '{"level": [1, "ünï"], "t": "it''s"}') > 0;
SELECT entity_key, args IS NULL AS missing, args FROM awty.future_job WHERE entity_name = 'args' ORDER BY 1;
SELECT awty.schedule('args', '4', 'unpaid', after => '1 day', args => to_jsonb(repeat('x', 1000000))) > 0;
SELECT length(args #>> '{}') FROM awty.future_job WHERE entity_name = 'args' AND entity_key = '4';
SELECT test.raises($$SELECT awty.schedule('args', '5', 'unpaid', after => '1 day', args => to_jsonb(repeat('x', 2000000)))$$);

-- schedule() is undone by a rollback, also to a savepoint, and by a caught error.
BEGIN;
SELECT awty.schedule('undone', '1', 'unpaid', after => '1 day') > 0;
SAVEPOINT s;
SELECT awty.schedule('undone', '2', 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('undone', '1', 'unpaid', after => '2 days') > 0;
ROLLBACK TO s;
SELECT awty.schedule('undone', '3', 'unpaid', after => '1 day') > 0;
DO $$
BEGIN
    PERFORM awty.schedule('undone', '4', 'unpaid', after => '1 day');
    PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
    PERFORM awty.schedule('undone', '5', 'unpaid', after => '1 day');
END $$;
COMMIT;
SELECT entity_key, next_check_at < now() + interval '25 hours' AS first_one FROM awty.future_job WHERE entity_name = 'undone' ORDER BY 1;
SELECT count(*) FROM awty.future_job_history WHERE entity_name = 'undone';
BEGIN;
SELECT awty.schedule('undone', '6', 'unpaid', after => '1 day') > 0;
SELECT 1 / 0;
SELECT awty.schedule('undone', '7', 'unpaid', after => '1 day');
COMMIT;
SELECT count(*) FROM awty.future_job WHERE entity_name = 'undone' AND entity_key IN ('6', '7');

CREATE TABLE shop.orders (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'UNSHIPPED');
CREATE FUNCTION shop.watch_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM awty.schedule('shop.orders', NEW.id::text, 'unshipped', after => '3 hours');
    ELSE
        PERFORM awty.cancel('shop.orders', NEW.id::text);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_order AFTER INSERT OR UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.watch_order();
INSERT INTO shop.orders SELECT generate_series(1, 1000);
UPDATE shop.orders SET status = 'SHIPPED' WHERE id % 10 <> 0;
SELECT count(*), count(DISTINCT entity_key) FROM awty.future_job WHERE entity_name = 'shop.orders';
SELECT outcome, count(*) FROM awty.future_job_history WHERE entity_name = 'shop.orders' GROUP BY 1;
DROP TABLE shop.orders;
DROP FUNCTION shop.watch_order();

SELECT count(awty.schedule('bulk', n::text, 'unpaid', after => n * interval '1 minute')) FROM generate_series(0, 499) AS n;
SELECT count(*) = 500 AND count(DISTINCT next_check_at) BETWEEN 499 AND 501 FROM awty.future_job WHERE entity_name = 'bulk';

SELECT awty.unregister('unshipped') > 100, awty.unregister('unpaid') > 500;
SELECT count(*) FROM awty.future_job;
