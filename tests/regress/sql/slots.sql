-- A slot is a boundary of awty.slot (here a minute), counted from UTC midnight.
\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET client_min_messages = warning;
SET ROLE regress_shop;

-- Times are rounded up, and a boundary stays as it is.
SELECT t, awty.next_slot(t) FROM (VALUES
    ('2099-06-01 10:05:00+00'::timestamptz), ('2099-06-01 10:05:00.000001+00'), ('2099-06-01 10:05:59.999999+00'),
    ('2099-12-31 23:59:00.5+00'), ('2096-02-28 23:59:30+00'), ('2099-06-01 10:05:30+05:30'), ('9999-12-31 23:59:59+00')) AS v (t);
-- Rounding is idempotent and monotonic, and adds less than a slot.
SELECT bool_and(awty.next_slot(slot) = slot), bool_and(slot - t >= '0' AND slot - t < '1 minute'), bool_and(slot >= previous)
FROM (SELECT t, awty.next_slot(t) AS slot, lag(awty.next_slot(t)) OVER (ORDER BY t) AS previous
      FROM generate_series('2099-01-01'::timestamptz, '2099-01-02', '7.3 s') AS t) AS s;
-- For a past time, the slot is the first boundary after now.
SELECT slot > before AND slot <= clock_timestamp() + interval '1 minute' AND date_trunc('minute', slot) = slot
FROM (SELECT clock_timestamp() AS before, awty.next_slot(t) AS slot
      FROM unnest('{epoch, 0001-01-01 BC, now}'::timestamptz[]) AS t) AS s;
SELECT awty.next_slot(NULL) IS NULL, awty.next_slot(NULL, NULL) IS NULL;
SELECT test.raises($$SELECT awty.next_slot('infinity')$$);
SELECT test.raises($$SELECT awty.next_slot('-infinity')$$);
SELECT test.raises($$SELECT awty.next_slot('294276-12-31 23:59:59+00')$$);

-- A job's own slot is coarser, and counts from UTC midnight in any time zone of the session.
SELECT awty.register('quarter', 'shop.unpaid', slot => '15 min');
SELECT awty.register('daily', 'shop.unpaid', slot => '1 day');
SELECT awty.register('minutely', 'shop.unpaid');
SELECT job, awty.next_slot('2099-06-01 10:05:00.000001+00', job) FROM unnest('{minutely, quarter, daily, null}'::text[]) AS job;
SET timezone = 'Asia/Kolkata';
SELECT awty.next_slot('2099-06-01 10:05:00+05:30', 'daily'), awty.next_slot('2099-06-01 10:05:00+05:30', 'quarter');
SET timezone = 'UTC';
SELECT test.raises($$SELECT awty.next_slot(now(), 'quartet')$$);
SELECT test.raises($$SELECT awty.next_slot(now(), '')$$);
BEGIN;
SELECT awty.schedule('slots', job, job, at => '2001-01-01') > 0, awty.schedule('slots', job || '+', job, after => '25 hours') > 0
FROM unnest('{minutely, quarter, daily}'::text[]) AS job;
SELECT entity_key, CASE WHEN entity_key LIKE '%+' THEN next_check_at = awty.next_slot(now() + interval '25 hours', job)
    ELSE next_check_at BETWEEN awty.next_slot(now(), job) AND awty.next_slot('epoch', job) END
FROM awty.future_job WHERE entity_name = 'slots' ORDER BY 1;
COMMIT;
SELECT bool_and(extract(epoch FROM next_check_at)::bigint % 900 = 0) FILTER (WHERE job = 'quarter') AS quarter,
       bool_and(next_check_at = date_trunc('day', next_check_at)) FILTER (WHERE job = 'daily') AS midnight
FROM awty.future_job WHERE entity_name = 'slots';

SELECT awty.alter('minutely', max_horizon => '10 years');
BEGIN;
SELECT zone, interval, awty.next_slot(now() + interval::interval) = (
        SELECT next_check_at FROM awty.future_job
        WHERE id = awty.schedule('interval', zone || interval, 'minutely', after => interval::interval)) IS NOT FALSE AS same
FROM unnest('{1 month, 13 months -31 days, 1 year, 6 months, 180 days, 4320 hours, 90.5 s}'::text[]) AS interval,
     unnest('{UTC}'::text[]) AS zone;
SET LOCAL timezone = 'America/New_York';
SELECT count(awty.schedule('interval', 'NY' || n, 'minutely', after => n * interval '1 month')) FROM generate_series(0, 24) AS n;
SELECT count(awty.schedule('interval', 'ny' || n, 'minutely', after => n * interval '1 day')) FROM generate_series(0, 400) AS n;
SELECT 'wrong', f.* FROM awty.future_job AS f, substring(entity_key from 3) AS n
WHERE entity_name = 'interval' AND entity_key ~ '^(NY|ny)'
    AND next_check_at <> awty.next_slot(now() + n::integer * CASE WHEN entity_key ~ '^NY' THEN interval '1 month' ELSE interval '1 day' END);
COMMIT;

SELECT awty.next_slot('2027-03-14 02:30:00 America/New_York'), awty.next_slot('2027-11-07 01:30:10 America/New_York');

-- A slot must be whole seconds, divide a day, and be a multiple of awty.slot.
SELECT slot, test.raises(format('SELECT awty.register(%L, %L, slot => %L)', 'wrong', 'shop.unpaid', slot))
FROM unnest('{0, -1 min, 7 min, 90 s, 30 s, 25 hours, 2 days, 1 month, 60.5 s, 1 us, 178000000 years}'::text[]) AS slot;
SELECT test.raises($$SELECT awty.alter('quarter', slot => '7 min')$$);
SELECT job, slot FROM awty.job WHERE job IN ('quarter', 'wrong');

CREATE TABLE shop.times (t timestamptz) WITH (parallel_workers = 2);
INSERT INTO shop.times SELECT generate_series('2099-01-01'::timestamptz, '2099-01-03', '1 min');
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SELECT count(*) FILTER (WHERE awty.next_slot(t, 'quarter') = t), count(*) FILTER (WHERE awty.next_slot(t) = t) FROM shop.times;
COMMIT;
DROP TABLE shop.times;

-- awty.watch() gives a notice if a time of the rule is shorter than a slot.
SET client_min_messages = notice;
CREATE TABLE shop.short (id integer PRIMARY KEY);
SELECT awty.watch('shop.short', until => 'id > 5', within => '59 s', escalate => '{1 h}');
SELECT awty.watch('shop.short', until => 'id > 5', within => '1 min', escalate => '{1 h}', replace => true);
SELECT awty.unwatch('short');
DROP TABLE shop.short;
SET client_min_messages = warning;

SELECT awty.unregister('minutely') > 400, awty.unregister('daily'), awty.unregister('quarter');
