\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid'), awty.register('unshipped', 'shop.unshipped');
SELECT awty.schedule('orders', 1, 'unpaid', after => '1 hour') AS id
\gset
SELECT awty.hold('orders', 1, note => 'invoice open');
SELECT held FROM awty.future_job;
RESET ROLE;
SELECT check_id = :id, held_by, held_at BETWEEN now() - interval '1 minute' AND now(), note FROM awty_internal.hold;
SELECT held_checks FROM awty.status;
SELECT held_at AS since FROM awty_internal.hold
\gset
SELECT awty.hold('orders', '1', 'unpaid');
SELECT held_by, held_at = :'since', note IS NULL FROM awty_internal.hold;
SET ROLE regress_shop;
SELECT awty.release('orders', 1);
SELECT held FROM awty.future_job;
SELECT test.raises($$SELECT awty.release('orders', 1)$$);
RESET ROLE;
SELECT count(*) FROM awty_internal.hold;

-- The last call sets the role, note and end of a hold. The end is rounded up to a slot, and must not be past.
SET ROLE regress_shop;
SELECT date_trunc('minute', now()) AS minute \gset
SELECT awty.hold('orders', 1, note => 'away', held_until => :'minute'::timestamptz + interval '1 day 1 s');
RESET ROLE;
SELECT held_by, note, held_until - :'minute'::timestamptz FROM awty_internal.hold;
SET ROLE regress_shop;
SELECT test.raises($$SELECT awty.hold('orders', 1, held_until => now())$$), test.raises($$SELECT awty.hold('orders', 1, held_until => 'infinity')$$);
SELECT awty.hold('orders', 1);
RESET ROLE;
SELECT note, held_until FROM awty_internal.hold;
SET ROLE regress_shop;
SELECT awty.release('orders', 1);

SELECT test.raises(call) FROM unnest(ARRAY[$$SELECT awty.hold('orders', 2)$$, $$SELECT awty.hold('orders', 1, 'unshipped')$$,
    $$SELECT awty.hold('orders', 1, 'unpiad')$$, $$SELECT awty.hold(NULL, '1')$$, $$SELECT awty.hold('orders', 1, note => repeat('x', 1025))$$, $$SELECT awty.hold('orders', 1, note => '')$$]) AS call;
SELECT awty.schedule('orders', 1, 'unshipped', after => '1 hour') > 0;
SELECT test.raises($$SELECT awty.hold('orders', 1)$$);
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.hold('orders', 1)$$) = replace(test.raises($$SELECT awty.hold('orders', 2)$$), '"2"', '"1"');
SELECT test.sqlstate($$SELECT awty.hold('orders', 1, 'unpaid')$$);
SET ROLE regress_shop;
SELECT awty.allow('unpaid', 'regress_app');
SET ROLE regress_app;
SELECT awty.hold('orders', 1, note => 'x'), awty.release('orders', 1);
SELECT test.sqlstate($$TABLE awty_internal.hold$$);

-- A held check whose due time passes follows the job's on_missed. The UPDATE simulates that a day has passed.
SET ROLE regress_shop;
SELECT awty.register('skipper', 'shop.unpaid', on_missed => 'skip'), awty.register('mover', 'shop.unpaid', on_missed => 'next_slot');
SELECT awty.pause('unpaid'), awty.pause('skipper'), awty.pause('mover');
SELECT awty.schedule('missed', job, job, after => '1 hour') > 0, awty.hold('missed', job) FROM unnest('{unpaid, skipper, mover}'::text[]) AS job;
RESET ROLE;
UPDATE awty.future_job SET next_check_at = next_check_at - interval '1 day', first_check_at = first_check_at - interval '1 day' WHERE entity_name = 'missed';
UPDATE awty_internal.hold SET held_at = held_at - interval '1 day';
SET ROLE regress_shop;
SELECT clock_timestamp() AS released \gset
SELECT awty.release('missed', job) FROM unnest('{unpaid, skipper, mover}'::text[]) AS job;
SELECT job, held, next_check_at BETWEEN awty.next_slot(:'released') AND awty.next_slot(clock_timestamp()) AS next_slot FROM awty.future_job WHERE entity_name = 'missed' ORDER BY job;
SELECT job, outcome, attempts FROM awty.future_job_history WHERE entity_name = 'missed' ORDER BY job;

-- Cancelling or replacing a check deletes its hold.
SELECT awty.schedule('gone', 1, 'unshipped', after => '1 hour') > 0, awty.hold('gone', 1);
SELECT awty.schedule('gone', 1, 'unshipped', after => '1 hour') > 0;
SELECT held FROM awty.future_job WHERE entity_name = 'gone';
SELECT count(awty.unregister(job)) FROM awty.job;
