\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET intervalstyle = postgres;
SET ROLE regress_shop;
SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'Europe/Berlin');
CREATE TABLE shop.ticket (id bigint PRIMARY KEY, created_at timestamptz, promised interval, done boolean);
CREATE FUNCTION test.watched(args text) RETURNS text LANGUAGE sql AS $$ SELECT test.raises(format('SELECT awty.watch(''shop.ticket'', until => ''done'', %s)', args)) $$;

SELECT args, test.watched(args) FROM unnest(ARRAY[
    'within => NULL',
    'within => ''1 hour'', due => ''created_at''',
    'since => ''created_at'', due => ''created_at''',
    'due => ''promised''',
    'due => ''now()''',
    'due => ''created_at'', escalate => ''{0}''',
    'due => ''created_at'', escalate => ''{2 hours, 1 hour}''',
    'within => ''1 hour'', calendar => ''none''',
    'within => ''1 hour'', calendar => ''''',
    'within => ''1 day 1 hour'', calendar => ''office''',
    'within => ''1 month'', calendar => ''office''',
    'within => ''-1 hour'', calendar => ''office''',
    'within => ''1 hour'', escalate => ''{1 day, 30 min}'', calendar => ''office''',
    'within => ''1 day'', escalate => ''{1 hour, NULL}'', calendar => ''office''',
    'within => ''1 day'', remind => ''{1 hour, 2 hours}''',
    'within => ''1 day'', remind => ''{1 hour, 0}''',
    'within => ''1 day'', remind => ''{6 h, 5 h, 4 h, 3 h, 2 h, 1 h}''',
    'within => ''1 day'', every => ''1 ms''',
    'within => ''1 day'', every => ''-1 h''',
    'within => ''1 day'', escalate => ''{2 days, 36525 days 1 us}''',
    'within => ''1 day'', every => ''1 day 1 h'', calendar => ''office''',
    'within => ''9000 days'', calendar => ''office''',
    'within => ''1 hour'', since => $a$awty.due(created_at, ''1 day'', ''office'')$a$'
]) AS args;
SELECT test.raises($$SELECT awty.watch('shop.ticket', until => 'done')$$);
SELECT test.raises($$SELECT awty.watch('shop.ticket', until => $a$awty.open_time(created_at, created_at, 'office') > '1 hour'$a$, within => '1 hour')$$);
SELECT count(*) FROM awty.rule;

-- The role that runs the rule must be able to use the calendar as well.
RESET ROLE;
GRANT regress_shop TO regress_app;
GRANT CREATE, USAGE ON SCHEMA shop TO regress_app;
SET ROLE regress_app;
SELECT awty.create_calendar('own', '{mon-fri 09:00-17:00}', 'UTC');
SELECT test.watched($$within => '1 hour', calendar => 'own'$$);
SELECT awty.drop_calendar('own');
RESET ROLE;
REVOKE regress_shop FROM regress_app;
REVOKE CREATE, USAGE ON SCHEMA shop FROM regress_app;

-- One day and 24 hours differ with a calendar, and are equal without a calendar.
SET ROLE regress_shop;
SET client_min_messages = warning;
SELECT awty.watch('shop.ticket', until => 'done', within => '1 day', escalate => '{36 hours, 7 days}', calendar => 'office', since => 'created_at');
SELECT within, escalate, calendar, since, due FROM awty.rule;
SELECT awty.watch('shop.ticket', until => 'done', within => '1 day', escalate => '{36 hours, 1 week}', calendar => 'office', since => 'created_at');
SELECT test.watched($$within => '24 hours', escalate => '{36 hours, 7 days}', calendar => 'office', since => 'created_at'$$);
SELECT test.raises($$SELECT awty.drop_calendar('office')$$);
SELECT awty.watch('shop.ticket', until => 'done', due => $$awty.due(created_at, promised, 'office')$$, calendar => 'office', replace => true);
SELECT within, escalate, calendar, since, due FROM awty.rule;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'awty_ticket_update';
SELECT awty.unwatch('ticket');
SELECT awty.watch('shop.ticket', until => 'done', within => '1 day', since => 'created_at');
SELECT awty.watch('shop.ticket', until => 'done', within => '24 hours', since => 'created_at');
SELECT count(*) FROM pg_proc WHERE proname LIKE 'awty_ticket%';

SELECT awty.unwatch('ticket');
DROP TABLE shop.ticket;
SELECT awty.drop_calendar('office');
SELECT count(*) FROM awty.rule;
