\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
SET timezone = 'UTC';
SET datestyle = 'ISO';
DELETE FROM awty.future_job_history;
-- awty is off and no job is registered, so there are no findings.
SELECT * FROM awty.doctor();
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid'), awty.register('unshipped', 'shop.unshipped'), awty.register('moves', 'shop.unpaid');
SELECT count(awty.schedule('orders', n::text, 'unpaid', after => '1 hour')) FROM generate_series(1, 3) AS n;
SELECT level, finding, detail, fix FROM awty.doctor();
-- Makes checks that are more than ten slots late, held while due, or due while their job is paused.
RESET ROLE;
UPDATE awty.future_job SET first_check_at = now() - interval '3 hours', next_check_at = now() - interval '3 hours' WHERE entity_key IN ('1', '2');
UPDATE awty.future_job SET held = true WHERE entity_key = '2';
SELECT level, finding, regexp_replace(detail, '\d{4}-\S+ \S+', 'TIME'), fix FROM awty.doctor();
SET ROLE regress_shop;
SELECT awty.pause('unpaid', 'mail server moves');
SELECT level, finding, regexp_replace(detail, '\d{4}-\S+ \S+', 'TIME'), fix FROM awty.doctor() WHERE finding LIKE '%paused%';
SELECT awty.resume('unpaid'), awty.cancel('orders', '1'), awty.cancel('orders', '2'), awty.cancel('orders', '3');
-- Makes a repeated error, runs near their timeout, a history full of replaced checks, and a day without a partition.
RESET ROLE;
CREATE FUNCTION test.ends(job text, outcome text, sqlstate text, run_time interval, finished timestamptz) RETURNS void LANGUAGE sql AS $$
    INSERT INTO awty.future_job_history (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at,
        started_at, finished_at, run_time, check_count, attempts, outcome, sqlstate, message, role)
    SELECT 1000000 + n, job, 'orders', n::text, now(), now(), 'regress_shop', now(), now(), finished + n * interval '1 ms', run_time, 1, 1, outcome, sqlstate,
        CASE WHEN sqlstate IS NOT NULL THEN 'no luck' END, 'regress_shop' FROM generate_series(1, 10) AS n $$;
SELECT test.ends('unshipped', 'failed', 'P0001', '1 s', now());
SELECT test.ends('unpaid', 'done', NULL, '29 s', now() + interval '1 s');
SELECT test.ends('moves', 'replaced', NULL, '0', now() + n * interval '1 min') FROM generate_series(1, 9) AS n;
SET ROLE regress_shop;
SELECT level, finding, regexp_replace(detail, '\d{4}-\S+ \S+', 'TIME', 'g') AS detail, fix FROM awty.doctor() WHERE finding <> 'nothing runs in this database';
-- awty.doctor() regards an error as over if the error does not recur within three times its usual interval.
RESET ROLE;
UPDATE awty.future_job_history SET finished_at = finished_at - interval '6 minutes' WHERE job = 'unshipped';
SET ROLE regress_shop;
SELECT finding FROM awty.doctor() WHERE finding LIKE '%again and again';
SET ROLE regress_eve;
SELECT level, finding FROM awty.doctor() WHERE finding !~ 'nothing runs|partition';
RESET ROLE;
DELETE FROM awty.future_job_history;
SET ROLE regress_shop;
ALTER FUNCTION shop.unshipped(awty.future_job) RENAME TO moved;
RESET ROLE;
UPDATE awty.job SET role = 4000000000 WHERE job = 'unpaid';
SELECT level, finding, detail, fix FROM awty.doctor() WHERE finding <> 'nothing runs in this database';
UPDATE awty.job SET role = 'regress_shop' WHERE job = 'unpaid';
ALTER FUNCTION shop.moved(awty.future_job) RENAME TO unshipped;
SELECT finding FROM awty.doctor() WHERE finding <> 'nothing runs in this database';
SELECT awty.unregister('unpaid'), awty.unregister('unshipped'), awty.unregister('moves');
DELETE FROM awty.future_job_history;
SET client_min_messages = warning;
-- awty.doctor() warns that next year's holidays are missing, because the last closed day is over 30 days old.
SET ROLE regress_shop;
SELECT awty.create_calendar('old', '{mon-fri 09:00-17:00}', 'Europe/Berlin', '{2020-01-01, 2020-05-01, 2020-12-25}'), awty.register('moves', 'shop.unpaid');
SELECT finding FROM awty.doctor() WHERE finding LIKE 'calendar%';
SELECT awty.repeat('moves', every => '1 hour', zone => 'Europe/Berlin', calendar => 'old') > now();
SELECT level, finding, detail, fix FROM awty.doctor() WHERE finding LIKE '%calendar%';
SELECT awty.create_calendar('old', hours, zone, closed || (current_date - 29), replace => true) FROM awty.calendar;
SELECT awty.create_calendar('two', hours, zone, '{2020-01-01, 2020-05-01}') FROM awty.calendar;
SELECT awty.repeat('moves', every => '1 hour', zone => 'Europe/Berlin', calendar => 'two', entity_key => 'two') > now();
SELECT finding FROM awty.doctor() WHERE finding LIKE '%calendar%';
RESET ROLE;
UPDATE awty.calendar SET zone = 'Nowhere/Lost' WHERE calendar = 'two';
SET ROLE regress_shop;
SELECT level, finding, detail, fix FROM awty.doctor() WHERE finding LIKE '%calendar%';
RESET client_min_messages;
SELECT awty.unregister('moves'), awty.drop_calendar('old'), awty.drop_calendar('two');
RESET ROLE;
DELETE FROM awty.future_job_history;
DROP FUNCTION test.ends;
SELECT * FROM awty.doctor();
