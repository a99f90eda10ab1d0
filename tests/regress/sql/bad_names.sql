\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unshipped', 'shop.unshipped');
SELECT awty.register('unpaid', 'shop.unpaid');

SELECT call, test.raises('SELECT awty.' || call) FROM unnest(ARRAY[
    $$register(NULL, 'shop.unpaid')$$, $$register('', 'shop.unpaid')$$, $$register('new', '')$$,
    $$alter(NULL)$$, $$alter('')$$, $$unregister(NULL)$$, $$unregister('')$$, $$pause(NULL)$$, $$pause('')$$, $$resume(NULL)$$,
    $$allow(NULL, 'regress_app')$$, $$allow('unpaid', NULL)$$, $$allow('unpaid', '')$$, $$disallow('', 'regress_app')$$,
    $$disallow('unpaid', NULL)$$, $$release(NULL, '1')$$,
    $$schedule(NULL, '1', 'unpaid', after => '1 h')$$, $$schedule('orders', NULL, 'unpaid', after => '1 h')$$,
    $$schedule('orders', '1', NULL, after => '1 h')$$, $$schedule('', '1', 'unpaid', after => '1 h')$$,
    $$schedule('orders', '', 'unpaid', after => '1 h')$$, $$schedule('orders', '1', '', after => '1 h')$$]) AS call;

-- Each argument gets the longest valid name, and a name that is one byte longer.
SELECT awty.register(repeat('ü', 31) || 'x', 'shop.unpaid');
SELECT octet_length(job), char_length(job) FROM awty.job WHERE job LIKE 'ü%';
SELECT awty.schedule(repeat('é', 127) || 'x', repeat('€', 341) || 'x', repeat('ü', 31) || 'x', after => '1 hour') > 0;
SELECT octet_length(entity_name), octet_length(entity_key), octet_length(job) FROM awty.future_job;
SELECT awty.cancel(repeat('é', 127) || 'x', repeat('€', 341) || 'x', repeat('ü', 31) || 'x');
SELECT awty.unregister(repeat('ü', 31) || 'x');
SELECT call, test.raises('SELECT awty.' || call) FROM unnest(ARRAY[
    $$register(repeat('ü', 32), 'shop.unpaid')$$, $$schedule(repeat('é', 128), '1', 'unpaid', after => '1 h')$$,
    $$schedule('orders', repeat('x', 1025), 'unpaid', after => '1 h')$$, $$schedule('orders', '1', repeat('x', 64), after => '1 h')$$,
    $$pause(repeat('x', 64))$$, $$resume(repeat('x', 64))$$, $$alter(repeat('x', 64))$$, $$unregister(repeat('x', 64))$$,
    $$allow(repeat('x', 64), 'regress_app')$$, $$disallow(repeat('x', 64), 'regress_app')$$,
    $$next_slot(now(), repeat('x', 64))$$, $$cancel('orders', '1', repeat('x', 1000000))$$]) AS call;

-- Odd but valid names stay unchanged, and PostgreSQL executes no part of them.
SELECT name, awty.register(name, 'shop.unpaid') FROM unnest(ARRAY['a.b.c', '"quoted"', 'it''s', '; DROP TABLE shop.orders; --',
    'Unpaid', ' ', E'tab\tand\\', '%s %n $1', 'überfällig', '支払い', '🕐', 'NULL', U&'cafe\0301']) AS name;
SELECT count(awty.schedule(job, job, job, after => '1 hour')) FROM awty.job;
SELECT count(*) FROM awty.future_job WHERE job = entity_name AND entity_name = entity_key;
SELECT job, awty.cancel(job, job, job), awty.pause(job), awty.resume(job), awty.unregister(job)
FROM awty.job WHERE job NOT IN ('unshipped', 'unpaid') ORDER BY job;
SELECT awty.register(E'new\nline', 'shop.unpaid');
SELECT test.raises(format('SELECT awty.register(%L, %L)', E'new\nline', 'shop.stale'));
SELECT awty.unregister(E'new\nline');

-- For an unknown job, the hint names the most similar job, or shows how to register a job.
SELECT name, test.raises(format('SELECT awty.schedule(%L, %L, %L, after => %L)', 'orders', '1', name, '1 h'))
FROM unnest(ARRAY['unshiped', 'unhsipped', 'Unshipped', 'unpaid ', 'upnaid', 'refund', 'it''s']) AS name;
SELECT call, test.raises('SELECT awty.' || call) FROM unnest(ARRAY[
    $$alter('umpaid', max_checks => 1)$$, $$unregister('umpaid')$$, $$pause('umpaid')$$, $$resume('umpaid')$$,
    $$allow('umpaid', 'regress_app')$$, $$disallow('umpaid', 'regress_app')$$, $$cancel('orders', '1', 'umpaid')$$,
    $$next_slot(now(), 'umpaid')$$]) AS call;

-- The hint names only jobs that the caller can read.
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpiad', after => '1 h')$$);
SELECT test.raises($$SELECT awty.cancel('orders', '1', 'unpiad')$$);
SET ROLE regress_shop;
SELECT awty.allow('unpaid', 'regress_eve');
SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unpiad', after => '1 h')$$);
SELECT test.raises($$SELECT awty.schedule('orders', '1', 'unshiped', after => '1 h')$$);

SET ROLE regress_shop;
SELECT awty.unregister('unshipped'), awty.unregister('unpaid');
