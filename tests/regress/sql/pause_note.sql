\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
SELECT awty.pause('unpaid', 'mail server moves');
SELECT paused, paused_by, paused_note, paused_at BETWEEN now() - interval '1 minute' AND clock_timestamp() FROM awty.job;
SELECT awty.pause('unpaid', 'and the other one');
SELECT paused, paused_by, paused_note FROM awty.job;
SELECT test.raises($$SELECT awty.pause('unpaid', repeat('x', 1025))$$);
-- The last call sets the role, note and end of a pause. The end is rounded up to a slot.
SELECT date_trunc('minute', now()) AS minute \gset
SELECT awty.pause('unpaid', paused_until => :'minute'::timestamptz + interval '1 day 1 s');
SELECT paused, paused_by, paused_note, paused_until - :'minute'::timestamptz FROM awty.job;
SELECT paused, paused_note, paused_until - :'minute'::timestamptz FROM awty.job_status WHERE job = 'unpaid';
SELECT test.raises($$SELECT awty.pause('unpaid', paused_until => now())$$);
SELECT awty.pause('unpaid', 'again');
SELECT paused, paused_note, paused_until FROM awty.job;
SELECT awty.resume('unpaid');
SELECT paused, paused_at, paused_by, paused_note, paused_until FROM awty.job;
SELECT awty.allow('unpaid', 'regress_app', 'read'), awty.allow('unpaid', 'regress_app', 'claim');
SELECT readers, allowed, claimers FROM awty.job;
SELECT awty.allow('unpaid', 'regress_app');
SELECT readers, allowed, claimers FROM awty.job;
SELECT test.raises($$SELECT awty.allow('unpaid', 'regress_app', 'write')$$), test.raises($$SELECT awty.allow('unpaid', 'regress_app', NULL)$$);
SELECT awty.disallow('unpaid', 'regress_app');
SELECT readers, allowed, claimers FROM awty.job;
SELECT awty.unregister('unpaid');
RESET ROLE;
SELECT test.raises($$SELECT awty.healthy('1 second')$$);
