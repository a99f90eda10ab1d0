\pset format unaligned
\pset tuples_only on
SET timezone = 'Europe/Berlin';
SET intervalstyle = postgres;
SET datestyle = iso;
SET ROLE regress_shop;
SELECT awty.create_calendar('office', zone => 'europe/berlin', closed => '{2026-12-25, 2026-12-24, 2026-12-25}',
    hours => '{mon-thu 13:30-17:30, mon-thu 9:00-12:30, FRI 09:00-14:00, tue 10:00-11:00}');
SELECT calendar, zone, hours, closed, role, changed_by, changed_at BETWEEN now() - interval '1 minute' AND clock_timestamp() FROM awty.calendar;

-- create_calendar() with an equal definition changes nothing. A different definition needs replace.
SELECT xmin AS written FROM awty.calendar
\gset
SELECT awty.create_calendar('office', '{mon-thu 09:00-12:30, mon-thu 13:30-17:30, fri 09:00-14:00}', 'Europe/Berlin', '{2026-12-24, 2026-12-25}');
SELECT xmin = :'written' FROM awty.calendar;
SELECT test.raises($$SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'Europe/Berlin')$$);
SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'Europe/Berlin', replace => true);
SELECT hours, closed FROM awty.calendar;

-- A length in hours can end exactly at closing time. A length in days counts open days.
SELECT awty.due('2026-11-23 09:00', '8 hours', 'office'), awty.due('2026-11-23 09:00', '08:00:00.000001', 'office');
SELECT awty.due('2026-11-27 16:00', '2 days', 'office'), awty.due('2026-11-28 10:00', '1 day', 'office'), awty.due('2026-11-27 16:00', '1 week', 'office');
SELECT awty.open_time('2026-11-27 16:00', '2026-11-30 10:30', 'office'), awty.open_time('2026-11-30', '2026-11-27', 'office'),
    awty.open_time('2026-01-01', '2027-01-01', 'office');
SELECT awty.due('infinity', '1 day', 'office'), awty.due('-infinity', '1 hour', 'office'), awty.open_time('infinity', '-infinity', 'office');
SELECT awty.due(NULL, '1 day', 'office') IS NULL, awty.due(now(), NULL, 'office') IS NULL, awty.due(now(), '1 day', NULL) IS NULL,
    awty.open_time(NULL, now(), 'office') IS NULL, awty.open_time(now(), NULL, 'office') IS NULL, awty.open_time(now(), now(), NULL) IS NULL;
SELECT within, test.raises(format('SELECT awty.due(now(), %L, %L)', within, 'office'))
FROM unnest('{1 day 1 hour, 1 month, 0, -1 hour, -1 day, 2000 days 00:00, 3000 days, 90000 hours}'::text[]) AS within;
SELECT test.raises($$SELECT awty.open_time('-infinity', now(), 'office')$$), test.raises($$SELECT awty.open_time(now(), 'infinity', 'office')$$);
SELECT test.raises($$SELECT awty.due(now(), '1 day', 'ofice')$$), test.raises($$SELECT awty.open_time(now(), now(), 'none')$$);

-- A changed calendar counts at once, unless the change is rolled back.
BEGIN;
SELECT awty.create_calendar('office', '{mon-sun 00:00-24:00}', 'UTC', replace => true);
SELECT awty.due('2026-11-28 10:00', '1 hour', 'office');
ROLLBACK;
SELECT awty.due('2026-11-28 10:00', '1 hour', 'office');

CREATE FUNCTION test.created(hours text, zone text DEFAULT '''UTC''', closed text DEFAULT '''{}''') RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.create_calendar(%L, %s, %s, %s)', 'bad', hours, zone, closed)) $$;
SELECT hours, test.created(quote_literal(hours)) FROM unnest(ARRAY['{mon 17:00-09:00}', '{mon-tue 09:00-17:00, sun 22:00-6:00}', '{monday 09:00-17:00}',
    '{mon 9-17}', '{mon 09:00-24:01}', '{mon 09:00-09:00}', '{mon}', '{}', '{mon 09:00-17:00, NULL}', '{{mon 09:00-17:00}, {tue 09:00-17:00}}']) AS hours;
SELECT test.created('NULL'), test.created('array_fill(''mon 09:00-17:00''::text, ARRAY[101])'), test.created('array_fill(''mon 09:00-17:00''::text, ARRAY[100])');
SELECT awty.drop_calendar('bad');
SELECT zone, test.created($$'{mon 09:00-17:00}'$$, zone) FROM unnest(ARRAY['NULL', '''Berlin''', '''UTC+2''', '''CET-1CEST''', '''''']) AS zone;
SELECT closed, test.created($$'{mon 09:00-17:00}'$$, closed => closed) FROM unnest(ARRAY['NULL', '''{NULL}''', '''{infinity}''', '''{-infinity}''', '''{5874897-12-31, 2026-01-01}''']) AS closed;
SELECT test.created($$'{mon 09:00-17:00}'$$, closed => $$array_fill('2026-01-01'::date, ARRAY[10001])$$);
SELECT test.created($$'{mon 09:00-17:00}'$$, closed => $$ARRAY(SELECT d::date FROM generate_series(now() - interval '8 days', now() + interval '11 years', '1 day') AS d)$$);
SELECT test.raises($$SELECT awty.create_calendar(NULL, '{mon 09:00-17:00}', 'UTC')$$), test.raises($$SELECT awty.create_calendar('', '{mon 09:00-17:00}', 'UTC')$$),
    test.raises(format($$SELECT awty.create_calendar(%L, '{mon 09:00-17:00}', 'UTC')$$, repeat('x', 64))),
    test.raises($$SELECT awty.create_calendar('bad', '{mon 09:00-17:00}', 'UTC', replace => NULL)$$);
SELECT count(*) FROM awty.calendar;

-- Other roles can neither see the calendar nor use its name.
SET ROLE regress_eve;
SELECT count(*) FROM awty.calendar;
SELECT test.raises($$SELECT awty.due(now(), '1 day', 'office')$$), test.raises($$SELECT awty.drop_calendar('office')$$);
SELECT replace, test.raises(format($$SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'Europe/Berlin', replace => %L)$$, replace)) FROM unnest('{false, true}'::boolean[]) AS replace;

RESET ROLE;
GRANT regress_shop TO regress_app;
SET ROLE regress_app;
SELECT awty.due('2026-11-27 16:00', '2 days', 'office');
SELECT awty.create_calendar('office', '{mon-fri 08:00-17:00}', 'Europe/Berlin', replace => true);
SELECT hours, role, changed_by FROM awty.calendar;
RESET ROLE;
REVOKE regress_shop FROM regress_app;
SET ROLE regress_app;
SELECT test.raises($$SELECT awty.due(now(), '1 day', 'office')$$);

-- Every role can use a calendar of the database's owner, who can replace and drop every calendar.
RESET ROLE;
SELECT awty.create_calendar('ours', '{mon-sun 00:00-24:00}', 'UTC');
SET ROLE regress_eve;
SELECT calendar, role = (SELECT datdba FROM pg_database WHERE datname = current_database()) FROM awty.calendar;
SELECT awty.due('2026-11-27 16:00', '2 days', 'ours');
SELECT test.raises($$SELECT awty.drop_calendar('ours')$$), test.raises($$SELECT awty.due(now(), '1 day', 'our')$$);
SELECT test.sqlstate($$DELETE FROM awty.calendar$$), test.sqlstate($$UPDATE awty.calendar SET zone = 'UTC'$$);
RESET ROLE;
SELECT awty.create_calendar('office', '{mon 08:00-17:00}', 'Europe/Berlin', replace => true);
SELECT calendar, role, hours FROM awty.calendar WHERE calendar = 'office';

-- If PostgreSQL does not know the zone, all time counts as open.
UPDATE awty.calendar SET zone = 'Mars/Base', closed = '{2026-11-28}' WHERE calendar = 'office';
SET ROLE regress_shop;
SELECT awty.due('2026-11-28 10:00', '1 hour', 'office'), awty.due('2026-11-28 10:00', '1 day', 'office');
RESET ROLE;
SELECT awty.drop_calendar('office'), awty.drop_calendar('ours');
SELECT test.raises($$SELECT awty.drop_calendar('ours')$$);
SELECT count(*) FROM awty.calendar;
BEGIN READ ONLY;
SELECT test.raises($$SELECT awty.create_calendar('bad', '{mon 09:00-17:00}', 'UTC')$$);
ROLLBACK;
DROP FUNCTION test.created;
