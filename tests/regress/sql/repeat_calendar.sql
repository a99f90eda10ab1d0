\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET intervalstyle = postgres;
SET datestyle = iso;
SET ROLE regress_shop;
SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'Europe/Berlin', '{2099-01-01}');
SELECT awty.register('weekly', 'shop.unshipped');

SELECT * FROM awty.occurrences(cron => '0 */4 * * *', zone => 'Europe/Berlin', after => '2098-12-31 06:00Z', max => 4, calendar => 'office');
SELECT * FROM awty.occurrences(every => '3 hours', starts => '2098-12-30 08:00Z', after => '2098-12-30', max => 4, calendar => 'office');
SELECT count(*) FROM awty.occurrences(every => '1 min', after => '2098-12-31', max => 1000, calendar => 'office') AS at WHERE at::date = '2098-12-31';

SELECT test.raises($$SELECT awty.repeat('weekly', cron => '0 9 * * *', calendar => 'office')$$);
SELECT test.raises($$SELECT awty.repeat('weekly', cron => '0 3 * * *', zone => 'Europe/Berlin', calendar => 'office')$$);
SELECT test.raises($$SELECT awty.occurrences(cron => '0 3 * * *', zone => 'Europe/Berlin', calendar => 'office')$$);
SELECT test.raises($$SELECT awty.repeat('weekly', every => '1 hour', calendar => 'none')$$);
SELECT test.raises($$SELECT awty.occurrences(every => '1 hour', calendar => '')$$);
SELECT count(*) FROM awty.repetition;

-- The role that runs the job must be able to use the calendar as well.
RESET ROLE;
GRANT regress_shop TO regress_app;
SET ROLE regress_app;
SELECT awty.create_calendar('own', '{mon-fri 09:00-17:00}', 'UTC');
SELECT test.raises($$SELECT awty.repeat('weekly', every => '1 hour', calendar => 'own')$$);
SELECT awty.drop_calendar('own');
RESET ROLE;
REVOKE regress_shop FROM regress_app;

SET ROLE regress_shop;
SELECT awty.repeat('weekly', cron => '0 * * * *', starts => '2098-12-30', calendar => 'office');
SELECT cron, zone, calendar, next_check_at FROM awty.repetition;
SELECT id AS before FROM awty.future_job
\gset
SELECT awty.repeat('weekly', cron => '0 * * * *', starts => '2098-12-30', calendar => 'office');
SELECT id = :before FROM awty.future_job;
SELECT detail FROM awty.explain('job', 'weekly') WHERE event = 'next' ORDER BY at LIMIT 2;
SELECT test.raises($$SELECT awty.drop_calendar('office')$$);

-- A replaced calendar moves the pending occurrence, unless the occurrence is still in open time.
SELECT awty.create_calendar('office', '{mon-fri 09:00-18:00}', 'Europe/Berlin', replace => true);
SELECT id = :before, next_check_at FROM awty.future_job;
SELECT awty.create_calendar('office', '{sat 20:00-21:00}', 'UTC', replace => true);
SELECT next_check_at FROM awty.repetition;
SELECT outcome, next_check_at FROM awty.future_job_history WHERE job = 'weekly';
SELECT awty.create_calendar('office', '{wed 00:00-24:00}', 'UTC', replace => true);
SELECT next_check_at FROM awty.repetition;

-- If no time is open, the repetition stops.
SELECT awty.create_calendar('office', '{mon 09:01-09:02}', 'UTC', replace => true);
SELECT next_check_at FROM awty.repetition;
SELECT finding, detail, fix FROM awty.doctor() WHERE finding LIKE '%repetition%';
SELECT event, detail FROM awty.explain('job', 'weekly') WHERE event = 'waiting';
SELECT awty.repeat('weekly', cron => '* * * * *', starts => '2098-12-30', calendar => 'office');
SELECT awty.repeat('weekly', cron => '0 * * * *', starts => '2098-12-30');
SELECT calendar IS NULL, next_check_at FROM awty.repetition;
SELECT awty.drop_calendar('office');

-- A change of the calendar does not release a held occurrence. Other roles see only how many repetitions use the
-- calendar.
RESET ROLE;
SELECT awty.create_calendar('ours', '{mon-sun 00:00-24:00}', 'UTC');
SET ROLE regress_shop;
SELECT awty.repeat('weekly', cron => '0 * * * *', starts => '2098-12-30', calendar => 'ours');
SELECT awty.hold('job', 'weekly');
RESET ROLE;
SELECT awty.create_calendar('ours', '{mon-sun 12:00-24:00}', 'UTC', replace => true);
SELECT next_check_at, held FROM awty.future_job;
ALTER DATABASE :"DBNAME" OWNER TO regress_eve;
UPDATE awty.calendar SET role = 'regress_eve';
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.drop_calendar('ours')$$);
RESET ROLE;
ALTER DATABASE :"DBNAME" OWNER TO postgres;
SELECT test.raises($$SELECT awty.drop_calendar('ours')$$);
SET ROLE regress_shop;
SELECT awty.unregister('weekly');
RESET ROLE;
SELECT awty.drop_calendar('ours');
