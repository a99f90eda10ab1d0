CREATE FUNCTION camp.in_an_hour(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    PERFORM camp.enter(j, false);
    RETURN CASE WHEN j.check_count = 0 THEN now() + interval '1 hour' END;
END $$;

-- The dropped column makes a gap. An upgrade must keep the numbers of the other columns.
CREATE SCHEMA kept AUTHORIZATION alice;

SET ROLE alice;
CREATE TABLE kept.parcel (gone text, id bigint PRIMARY KEY, since timestamptz NOT NULL DEFAULT now(), state text NOT NULL DEFAULT 'open');
SELECT awty.watch('kept.parcel', since => 'since', until => $$state = 'there'$$, within => '1 hour', rule => 'kept');
ALTER TABLE kept.parcel DROP gone;
CREATE TABLE kept.ticket (id bigint PRIMARY KEY, since timestamptz NOT NULL DEFAULT now(), state text NOT NULL DEFAULT 'open');
CREATE TABLE kept.told (rule text, key text, level integer, cleared boolean);
CREATE FUNCTION kept.tell(a awty.alert) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO kept.told VALUES (a.rule, a.entity_key, a.level, a.cleared_at IS NOT NULL) $$;
SELECT awty.create_calendar('kept_always', '{mon-sun 00:00-24:00}', 'UTC');
SELECT awty.watch('kept.ticket', rule => 'kept_reply', since => 'since', until => $$state = 'there'$$, within => '1 hour', calendar => 'kept_always',
    stopped => $$state = 'waiting'$$, remind => '{30 minutes}', every => '5 seconds', call => 'kept.tell', call_cleared => 'kept.tell');
SELECT awty.watch('kept.ticket', rule => 'kept_due', due => $$awty.due(since, '20 days', 'kept_always')$$, until => $$state = 'there'$$,
    calendar => 'kept_always', remind => '{2 days, 1 hour}', escalate => '{1 day}', stopped => $$state = 'waiting'$$, call => 'kept.tell');
SELECT awty.register('again', 'camp.in_an_hour');
SELECT awty.register('retry', 'camp.watch', retry_after => '1 hour');
SELECT awty.register('deadly', 'camp.watch');
SELECT awty.register('run', 'camp.watch');
SELECT awty.register('next', 'camp.watch', on_missed => 'next_slot');
SELECT awty.register('skip', 'camp.watch', on_missed => 'skip');
SELECT awty.register('paused', 'camp.watch');
SELECT awty.pause('paused', 'until later', now() + interval '10 days');
SELECT awty.create_calendar('kept', '{mon-fri 09:00-17:00}', 'Europe/Berlin', '{2026-12-25}');
SELECT awty.register('tick', 'camp.watch');
SELECT awty.register('nightly', 'camp.watch');
SELECT awty.register('still', 'camp.watch');
