-- awty takes daylight saving time from PostgreSQL's own zone data.
\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET ROLE regress_shop;
SELECT awty.register('digest', 'shop.unshipped');
CREATE FUNCTION test.repeat(args text) RETURNS text LANGUAGE sql
    AS $$ SELECT test.raises(format('SELECT awty.repeat(%L, %s)', 'digest', args)) $$;

-- A fixed time in the gap of a clock change occurs at the end of the gap. A time that comes twice occurs at its first
-- time.
CREATE FUNCTION test.days(cron text, zone text, since timestamptz, until timestamptz) RETURNS text LANGUAGE sql AS $$
    SELECT count(*) || coalesce(': ' || CASE WHEN count(*) > 3 THEN min(at) || ' to ' || max(at) ELSE string_agg(at::text, ', ' ORDER BY at) END, '')
    FROM awty.occurrences(cron => cron, zone => zone, after => since - interval '1 us', max => 200) AS at WHERE at < until $$;
SELECT cron, zone, since, test.days(cron, zone, since, until) FROM (VALUES
    ('30 2 * * *', 'Europe/Berlin', '2026-03-29 00:00 Europe/Berlin'::timestamptz, '2026-03-30 00:00 Europe/Berlin'::timestamptz),
    ('0,30 2 * * *', 'Europe/Berlin', '2026-03-29 00:00 Europe/Berlin', '2026-03-30 00:00 Europe/Berlin'),
    ('0 2,3 * * *', 'Europe/Berlin', '2026-03-29 00:00 Europe/Berlin', '2026-03-30 00:00 Europe/Berlin'),
    ('30 2 * * *', 'Europe/Berlin', '2026-10-25 00:00 Europe/Berlin', '2026-10-26 00:00 Europe/Berlin'),
    ('*/15 * * * *', 'Europe/Berlin', '2026-03-29 00:00 Europe/Berlin', '2026-03-30 00:00 Europe/Berlin'),
    ('*/15 * * * *', 'Europe/Berlin', '2026-10-25 00:00 Europe/Berlin', '2026-10-26 00:00 Europe/Berlin'),
    ('*/5 2 * * *', 'Europe/Berlin', '2026-03-29 00:00 Europe/Berlin', '2026-03-30 00:00 Europe/Berlin'),
    ('*/5 2 * * *', 'Europe/Berlin', '2026-10-25 00:00 Europe/Berlin', '2026-10-26 00:00 Europe/Berlin'),
    ('30 0 * * fri', 'Africa/Cairo', '2026-04-23 12:00Z', '2026-04-24 12:00Z'),
    ('45 1 * * *', 'Australia/Lord_Howe', '2026-04-04 13:00Z', '2026-04-05 13:00Z'),
    ('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03 13:00Z', '2026-10-04 13:00Z'),
    ('0 * * * *', 'Australia/Lord_Howe', '2026-04-04 13:30Z', '2026-04-04 16:00Z'),
    ('0 9 * * fri', 'Pacific/Apia', '2011-12-30 00:00Z', '2012-01-03 00:00Z')
) AS t (cron, zone, since, until);
SELECT * FROM awty.occurrences(cron => '0 0 29 2 *', zone => 'UTC', after => '2095-01-01', max => 2);
-- '1 day' keeps the local time, but '24 hours' does not.
SELECT every::text, array_agg(to_char(at AT TIME ZONE 'Europe/Berlin', 'DD HH24:MI')) FROM unnest('{1 day, 24 hours}'::interval[]) AS every,
    awty.occurrences(every => every, zone => 'Europe/Berlin', starts => '2026-03-28 09:00 Europe/Berlin', after => '2026-03-27', max => 3) AS at GROUP BY 1 ORDER BY 1;
SELECT every::text, array_agg(to_char(at AT TIME ZONE 'Europe/Berlin', 'DD HH24:MI')) FROM unnest('{1 day, 24 hours}'::interval[]) AS every,
    awty.occurrences(every => every, zone => 'Europe/Berlin', starts => '2026-10-24 09:00 Europe/Berlin', after => '2026-10-23', max => 3) AS at GROUP BY 1 ORDER BY 1;
-- Months do not drift: the repetition occurs on the last day of January, February and March.
SELECT * FROM awty.occurrences(every => '1 month', zone => 'UTC', starts => '2026-01-31 12:00Z', after => '2026-01-01', max => 4);
-- The first occurrence is later than the argument after. $ and L both name the last day of a month.
SELECT * FROM awty.occurrences(cron => '@monthly', zone => 'UTC', after => '2026-01-01', max => 1);
SELECT * FROM awty.occurrences(cron => '0 2 $ * *', zone => 'america/new_york', after => '2026-02-01', max => 2);
SELECT * FROM awty.occurrences(cron => '0 2 L * *', zone => 'AMERICA/NEW_YORK', after => '2026-02-01', max => 2);

SELECT test.repeat($$every => '1 hour', cron => '* * * * *'$$);
SELECT test.repeat($$every => NULL$$);
SELECT cron, test.repeat(format('cron => %L, zone => %L', cron, 'UTC')) FROM unnest(ARRAY['', '0 25 * * *', '0 0 30 2 *', '* * *',
    '@reboot', '0 9 ? * *', '0 9 15W * *', 'H 9 * * *', '0 9 * * 5L', '0 9 * * 1#2', '0 0 9 1 1 * 2027', '0 22-6 * * *', '5/15 * * * *', '*/10 * * * * *']) AS cron;
SELECT test.repeat(format('cron => %L', repeat('1,', 600)));
SELECT every, test.repeat(format('every => %L, zone => %L', every, 'UTC')) FROM unnest('{0, -1 hour, 1 day 1 hour, 30 s, 1 month -1 day, 36526 days}'::interval[]) AS every;
-- A zone is required if the result depends on the zone. The zone must be a name.
SELECT test.repeat($$cron => '0 9 * * *'$$);
SELECT test.repeat($$every => '1 day'$$);
SET timezone = 'Asia/Tokyo';
SELECT test.repeat($$cron => '0 9 * * *'$$);
SET timezone = 'UTC';
SELECT zone, test.repeat(format('cron => %L, zone => %L', '0 9 * * *', zone)) FROM unnest(ARRAY['Europe/Berln', 'GMT+3', 'UTC-5', '+02:00', ' ', '']) AS zone;
SELECT test.repeat($$every => '1 hour', jitter => '-1 s'$$);
SELECT test.repeat($$every => '1 hour', catch_up => '367 days'$$);
SELECT test.repeat($$every => '1 hour', jitter => NULL$$);
SELECT test.repeat($$every => '1 hour', ends => '2020-01-01'$$);
SELECT test.repeat($$every => '1 hour', starts => '2090-01-02', ends => '2090-01-01'$$);
SELECT test.repeat($$every => '1 hour', starts => 'infinity'$$);
SELECT test.repeat($$every => '1 hour', ends => '-infinity'$$);
SELECT test.repeat($$cron => '0 0 1 1 *', zone => 'UTC', ends => date_trunc('year', now()) + interval '1 year -1 s'$$) LIKE '22023: %does not come before it ends%';
SELECT max, test.raises(format('SELECT * FROM awty.occurrences(cron => %L, max => %L)', '* * * * *', max)) FROM unnest('{0, -1, 10001, NULL}'::integer[]) AS max;
SELECT test.raises($$SELECT * FROM awty.occurrences(cron => '* * * * *', after => NULL)$$);
SELECT test.raises($$SELECT awty.repeat('digst', every => '1 hour')$$);
SELECT test.raises($$SELECT awty.repeat(NULL, every => '1 hour')$$);
SELECT count(*) FROM awty.repetition;

SELECT awty.repeat('digest', cron => '30 3 1 1 *', zone => 'europe/berlin', starts => '2090-06-01', args => '{"a": 1}');
SELECT job, entity_name, entity_key, next_check_at, every, cron, zone, starts, ends, jitter, catch_up, args, repeated_by FROM awty.repetition;
SELECT job, entity_name, entity_key, args, first_check_at, next_check_at, scheduled_by FROM awty.future_job;
SELECT id AS before FROM awty.future_job \gset
SELECT awty.repeat('digest', cron => '30 3 1 1 *', zone => 'Europe/Berlin', starts => '2090-06-01', args => '{"a": 1}');
SELECT id = :before FROM awty.future_job;
SELECT awty.repeat('digest', cron => '30 4 1 1 *', zone => 'Europe/Berlin', starts => '2090-06-01', args => '{"a": 1}');
SELECT id = :before, next_check_at FROM awty.future_job;
SELECT awty.repeat('digest', cron => '30 4 1 1 *', zone => 'Europe/Berlin', starts => '2090-06-01', args => '{"a": 2}');
SELECT args FROM awty.future_job;
SELECT outcome, args FROM awty.future_job_history WHERE job = 'digest' ORDER BY id;
-- '24 hours' and '1 day' are different definitions, although PostgreSQL compares them as equal.
SELECT awty.repeat('digest', every => '24 hours', zone => 'Europe/Berlin', starts => '2090-06-01 12:00 Europe/Berlin');
SELECT awty.repeat('digest', every => '1 day', zone => 'Europe/Berlin', starts => '2090-06-01 12:00 Europe/Berlin');
SELECT every, zone FROM awty.repetition;

-- The jitter of a tenant's repetition is constant, and depends on the entity.
SELECT awty.repeat('digest', cron => '0 9 1 1 *', zone => 'UTC', starts => '2090-06-01', jitter => '10 min', entity_name => 'tenant', entity_key => t::text)
FROM generate_series(1, 3) AS t;
SELECT entity_key, next_check_at FROM awty.repetition WHERE entity_name = 'tenant' ORDER BY entity_key;

-- A repetition replaces a client's check, and schedule() replaces the pending occurrence.
SELECT awty.schedule('tenant', '9', 'digest', after => '1 hour') > 0;
SELECT awty.repeat('digest', cron => '0 9 1 1 *', zone => 'UTC', starts => '2090-06-01', entity_name => 'tenant', entity_key => '9');
SELECT awty.schedule('tenant', '9', 'digest', after => '1 hour') > 0;
SELECT count(*), min(next_check_at) < now() + interval '2 hours' FROM awty.repetition WHERE entity_key = '9';
SELECT outcome FROM awty.future_job_history WHERE entity_key = '9' AND job = 'digest' ORDER BY id;

SET client_min_messages = warning;
BEGIN;
SELECT awty.repeat('digest', every => '1 hour', entity_name => 'x', entity_key => '1') > now();
SAVEPOINT s;
SELECT awty.repeat('digest', every => '2 hours', entity_name => 'x', entity_key => '1') > now();
ROLLBACK TO s;
SELECT every FROM awty.repetition WHERE entity_name = 'x';
SELECT count(*) FROM awty.future_job WHERE entity_name = 'x';
ROLLBACK;
SELECT (SELECT count(*) FROM awty.repetition WHERE entity_name = 'x'), (SELECT count(*) FROM awty.future_job WHERE entity_name = 'x');

RESET client_min_messages;
-- A role needs the same rights as for schedule(), and sees the repetitions whose checks it may read.
SET ROLE regress_app;
SELECT test.raises($$SELECT awty.repeat('digest', every => '1 hour')$$);
SELECT count(*) FROM awty.repetition;
SET ROLE regress_shop;
SELECT awty.allow('digest', 'regress_app');
SET ROLE regress_app;
SELECT awty.repeat('digest', every => '1 hour', starts => '2090-01-01Z', entity_name => 'app', entity_key => '1');
SELECT entity_name, entity_key, repeated_by FROM awty.repetition ORDER BY 1, 2;
SELECT test.sqlstate($$DELETE FROM awty.repetition$$), test.sqlstate($$TABLE awty_internal.repetition$$);
SET ROLE regress_eve;
SELECT count(*) FROM awty.repetition;
SET ROLE regress_shop;
SELECT awty.disallow('digest', 'regress_app');

SELECT awty.cancel('tenant', '1', 'digest'), awty.cancel('tenant', '2');
SELECT count(*) FROM awty.repetition WHERE entity_key IN ('1', '2') AND entity_name = 'tenant';
SELECT awty.cancel('job', 'digest');
SELECT awty.unregister('digest');
SELECT (SELECT count(*) FROM awty.repetition), (SELECT count(*) FROM awty.future_job WHERE job = 'digest');
SELECT awty.register('digest', 'shop.unshipped');
BEGIN READ ONLY;
SELECT test.repeat($$every => '1 hour'$$);
COMMIT;
SELECT awty.unregister('digest');
