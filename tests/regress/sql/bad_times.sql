\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET datestyle = ISO;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
CREATE FUNCTION test.at(t text) RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.schedule(%L, %L, %L, at => %L)', 'orders', '1', 'unpaid', t)) $$;
CREATE FUNCTION test.after(i text) RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.schedule(%L, %L, %L, after => %L)', 'orders', '1', 'unpaid', i)) $$;

SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpaid')$$);
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpaid', at => NULL, after => NULL)$$);
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpaid', at => now(), after => '1 hour')$$);
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpaid', at => 'infinity', after => '1 hour')$$);
-- A computed time that is NULL is refused, because the check would be lost silently.
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpaid', at => NULL::timestamptz + '1 hour')$$);

SELECT t, test.at(t) FROM unnest('{infinity, -infinity, 294276-12-31 23:59:59+00, 262143-01-01 00:00:00+00}'::text[]) AS t;
SELECT i, test.after(i) FROM unnest('{178000000 years, 300000 years, 2000000000 days, 2147483647 months}'::text[]) AS i;
-- The sign of some of these intervals depends on the calendar.
SELECT i, test.after(i) FROM unnest('{-1 us, -1 hour, 1 hour -61 min, 1 month -32 days, -178000000 years, 1 day -25 hours}'::text[]) AS i;

SELECT t, test.at(t) FROM unnest('{2099-06-01 10:05:30+02, 9999-12-31 23:59:59+00, 99999-01-01 00:00:00+00}'::text[]) AS t;
SELECT i, regexp_replace(test.after(i), 'time [-0-9]+ [:0-9]+\+00:00', 'time T') FROM unnest('{367 days, 2 years, 99 years}'::text[]) AS i;
SELECT test.after('366 days'), test.after('365 days 23:59:59');
SELECT awty.alter('unpaid', max_horizon => '90 minutes');
SELECT regexp_replace(test.after('91 minutes'), 'time [-0-9]+ [:0-9]+\+00:00', 'time T');
SELECT test.after('90 minutes');
SELECT awty.alter('unpaid', max_horizon => '1 s');
SELECT regexp_replace(test.after('2 s'), 'time [-0-9]+ [:0-9]+\+00:00', 'time T');
SELECT test.after('0'), test.at('now'), test.at('2001-01-01');

SELECT t, test.at(t) FROM unnest('{4714-11-24 00:00:00 BC, 0001-01-01 BC, epoch, 2026-03-29 02:30 Europe/Berlin}'::text[]) AS t;
SELECT count(*) FROM awty.future_job;
SELECT count(*) FROM awty.future_job WHERE next_check_at <= now() OR next_check_at > now() + interval '2 min';

SELECT t, test.sqlstate(format('SELECT awty.schedule(%L, %L, %L, at => %L)', 'orders', '1', 'unpaid', t))
FROM unnest('{294277-01-01, 2026-02-30, tomorrowish, 4714-01-01 BC}'::text[]) AS t;

SELECT awty.unregister('unpaid');
DROP FUNCTION test.at, test.after;
