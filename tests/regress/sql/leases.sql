\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SET client_min_messages = warning;
SELECT awty.register('mail', heartbeat => '15 s', timeout => '1 h');
SELECT function_schema IS NULL, function_name IS NULL, heartbeat, delivery, keep_attempts FROM awty.job WHERE job = 'mail';
-- The same registration again changes nothing, but another definition is refused.
SELECT awty.register('mail', heartbeat => '15 s', timeout => '1 h');
SELECT test.raises($$SELECT awty.register('mail')$$);
SELECT awty.alter('mail', keep_attempts => 'problems', delivery => 'at_most_once', reset => '{heartbeat}');
SELECT heartbeat IS NULL, delivery, keep_attempts FROM awty.job WHERE job = 'mail';
SELECT awty.alter('mail', reset => '{delivery,keep_attempts}');
RESET client_min_messages;
SELECT awty.register('post');

SELECT test.raises(call) FROM unnest(ARRAY[
    $$SELECT awty.register('x', heartbeat => '999 ms')$$,
    $$SELECT awty.register('x', heartbeat => '2 days')$$,
    $$SELECT awty.register('x', delivery => 'exactly_once')$$,
    $$SELECT awty.register('x', delivery => NULL)$$,
    $$SELECT awty.register('x', keep_attempts => 'some')$$,
    $$SELECT awty.register('x', 'shop.unpaid', heartbeat => '15 s')$$,
    $$SELECT awty.register('x', 'shop.unpaid', delivery => 'at_most_once')$$,
    $$SELECT awty.dry_run('orders', '1', 'mail')$$]) AS call;

SELECT awty.register('unpaid', 'shop.unpaid');
SELECT test.raises(call) FROM unnest(ARRAY[
    $$SELECT awty.claim('{mial}', 'w')$$,
    $$SELECT awty.claim('{unpaid}', 'w')$$,
    $$SELECT awty.claim(NULL, 'w')$$,
    $$SELECT awty.claim('{NULL}', 'w')$$,
    $$SELECT awty.claim('{{mail},{post}}', 'w')$$,
    $$SELECT awty.claim(ARRAY[repeat('x', 64)], 'w')$$,
    $$SELECT awty.claim(array_fill('mail'::text, ARRAY[10001]), 'w')$$,
    $$SELECT awty.claim('{mail}', NULL)$$,
    $$SELECT awty.claim('{mail}', '')$$,
    $$SELECT awty.claim('{mail}', repeat('x', 256))$$,
    $$SELECT awty.claim('{mail}', 'w', 0)$$,
    $$SELECT awty.claim('{mail}', 'w', 1001)$$,
    $$SELECT awty.claim('{mail}', 'w', NULL)$$,
    $$SELECT awty.next_claim_in(NULL)$$,
    $$SELECT awty.next_claim_in('{mial}')$$]) AS call;
SELECT count(*) FROM awty.claim('{}', 'w');
SELECT count(*) FROM awty.claim('{mail,post,mail}', 'w', 1000);
SELECT awty.next_claim_in('{}') > '0', awty.next_claim_in('{mail}') <= '5 s';

SELECT awty.complete(1), awty.fail(1, 'x'), awty.complete(-1, 'infinity', '{}');
SELECT awty.complete_many('{1,2}'), awty.complete_many(NULL), awty.complete_many('{}'), awty.fail_many('{1,2}', '{a,b}'), awty.fail_many('{}', NULL);
SELECT awty.heartbeat('{3,1}'), awty.heartbeat(NULL), awty.requeue('{1,NULL}'), awty.requeue(NULL);
SELECT test.raises(call) FROM unnest(ARRAY[
    $$SELECT awty.complete(NULL)$$,
    $$SELECT awty.fail(NULL, 'x')$$,
    $$SELECT awty.fail(1, NULL)$$,
    $$SELECT awty.fail(1, 'x', '3800')$$,
    $$SELECT awty.fail(1, 'x', '3800!')$$,
    $$SELECT awty.fail(1, 'x', '00000')$$,
    $$SELECT awty.fail(1, 'x', result => to_jsonb(repeat('x', 1048577)))$$,
    $$SELECT awty.complete(1, result => concat('[', repeat('1e131000,', 9), '0]')::jsonb)$$,
    $$SELECT awty.complete_many('{1,2}', ARRAY[now()])$$,
    $$SELECT awty.complete_many('{1,2}', result => '{"{}"}')$$,
    $$SELECT awty.complete_many('{{1},{2}}')$$,
    $$SELECT awty.complete_many(array_fill(1::bigint, ARRAY[100001]))$$,
    $$SELECT awty.fail_many('{1,2}', '{a}')$$,
    $$SELECT awty.fail_many('{1}', NULL)$$,
    $$SELECT awty.fail_many('{1}', '{a}', final => '{}')$$,
    $$SELECT awty.heartbeat('{{1}}')$$]) AS call;
-- awty skips the bad element of an array, and records the others.
SELECT awty.fail_many('{1,NULL,3}', '{a,b,NULL}');

BEGIN READ ONLY;
SELECT test.raises($$SELECT awty.complete(1)$$);
ROLLBACK;

-- A role without rights claims and sees nothing. The right to schedule gives no right to claim.
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.claim('{mail}', 'eve')$$);
SELECT test.raises($$SELECT awty.next_claim_in('{mail}')$$);
RESET ROLE;
SET ROLE regress_shop;
SELECT awty.allow('mail', 'regress_app', 'claim'), awty.allow('mail', 'regress_eve', 'schedule');
SET ROLE regress_eve;
SELECT test.sqlstate($$SELECT awty.claim('{mail}', 'eve')$$);
SET ROLE regress_app;
SELECT count(*) FROM awty.claim('{mail}', 'app');
SELECT test.sqlstate($$SELECT awty.schedule('orders', '1', 'mail', after => '1 h')$$);
SELECT test.sqlstate($$SELECT awty.claim('{post}', 'app')$$);
SELECT count(*) FROM awty.lease;
SELECT count(*) FROM awty.attempt;
SELECT test.sqlstate($$TABLE awty_internal.lease$$), test.sqlstate($$DELETE FROM awty.lease$$);
SET ROLE regress_shop;
-- A session's first schedule() for a target warns that the target takes no calls.
SELECT awty.alter_target('mail', 'blocked', blocked_until => 'infinity', note => 'repairs');
SELECT count(awty.schedule('blocked', n, 'mail', after => '1 day')) FROM generate_series(1, 2) AS n;
SELECT awty.schedule_many('blocked', '{3,4}', 'mail', after => '1 day');
SELECT count(awty.schedule('open', 1, 'mail', after => '1 day'));
RESET ROLE;
INSERT INTO awty_internal.breaker (job, target, failures, since, opened_at, opens, failed_at) VALUES ('post', 'down', 20, now() - interval '1 min', now(), 6, now());
SET ROLE regress_shop;
SELECT awty.schedule_many('down', '{1,2}', 'post', after => '1 day');
SELECT count(awty.schedule('down', n, 'post', after => '1 day')) FROM generate_series(3, 4) AS n;
SELECT awty.unregister('mail'), awty.unregister('post'), awty.unregister('unpaid');
RESET ROLE;
