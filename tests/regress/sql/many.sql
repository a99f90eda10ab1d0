\pset format unaligned
\pset tuples_only on
SET timezone = 'UTC';
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid', max_horizon => '100 years'), awty.register('unshipped', 'shop.unshipped');
CREATE TABLE shop.placed (id integer, placed_at timestamptz);
INSERT INTO shop.placed SELECT n, date_trunc('day', now()) + interval '1 day' + n * interval '1 min' FROM generate_series(1, 100) AS n;

-- Schedules each key with its own time and args, or all keys with one time.
SELECT awty.schedule_many('orders', array_agg(id::text ORDER BY -id), 'unpaid', at => array_agg(placed_at + interval '3 hours' ORDER BY -id),
    args => array_agg(CASE WHEN id % 2 = 0 THEN jsonb_build_object('id', id) END ORDER BY -id)) FROM shop.placed;
SELECT count(*), bool_and(next_check_at = placed_at + interval '3 hours'), bool_and(first_check_at = next_check_at), count(args), bool_and(args IS NULL OR args = jsonb_build_object('id', id)),
    count(DISTINCT scheduled_at), min(scheduled_by::text), bool_or(held) FROM (SELECT f.*, p.id AS placed, p.placed_at FROM awty.future_job AS f JOIN shop.placed AS p ON f.entity_key = p.id::text) AS f(check_id, job, entity_name, entity_key, args, first_check_at, next_check_at, check_count, attempt, held, scheduled_by, scheduled_at, id, placed_at);
SELECT awty.schedule_many('lines', '{b,a,"ü ''quoted''","{}"}', 'unpaid', after => '1 hour');
SELECT entity_key, args IS NULL, next_check_at = awty.next_slot(now() + interval '1 hour') OR next_check_at > now() + interval '59 min' FROM awty.future_job WHERE entity_name = 'lines' ORDER BY entity_key;
SELECT awty.schedule_many('none', '{}', 'unpaid', after => '1 hour'), awty.schedule_many('none', NULL, 'unpaid', at => NULL), awty.cancel_many('none', '{}'), awty.cancel_many('none', NULL);

-- on_conflict applies to each key. Kept checks are not counted.
SELECT awty.schedule_many('mixed', '{1,2,3}', 'unpaid', at => '{2099-01-01,2099-01-02,2099-01-03}');
SELECT on_conflict, awty.schedule_many('mixed', '{4,3,2,1}', 'unpaid', at => '{2099-01-02,2099-01-02,2099-01-02,2099-01-02}', on_conflict => on_conflict),
    awty.cancel_many('mixed', '{4}') FROM unnest('{keep,earliest,latest,replace}'::text[]) AS on_conflict;
SELECT entity_key, next_check_at::date FROM awty.future_job WHERE entity_name = 'mixed' ORDER BY 1;
SELECT entity_key, next_check_at::date, outcome FROM awty.future_job_history WHERE entity_name = 'mixed' ORDER BY id;
BEGIN;
SELECT awty.schedule_many('twice', '{1,2}', 'unpaid', after => '1 day'), awty.schedule_many('twice', '{2,3}', 'unpaid', after => '2 days', on_conflict => 'keep');
SAVEPOINT s;
SELECT awty.schedule_many('twice', '{1,2,3,4}', 'unpaid', after => '3 days');
ROLLBACK TO s;
SELECT awty.schedule_many('twice', '{3,4}', 'unpaid', after => '3 days');
SELECT entity_key, extract(day FROM next_check_at - now()) FROM awty.future_job WHERE entity_name = 'twice' ORDER BY 1;
ROLLBACK;

SELECT count(*) AS before FROM awty.future_job
\gset
SELECT call, regexp_replace(test.raises('SELECT awty.schedule_many(' || call || ')'), 'check \d+', 'check N') FROM unnest(ARRAY[
    $$'mixed', '{9,1}', 'unpaid', after => '1 h', on_conflict => 'error'$$, $$'x', '{1,2}', 'unpaid', at => '{2099-01-01}'$$,
    $$'x', '{1,2}', 'unpaid', after => '1 h', args => '{"1"}'$$, $$'x', '{{1},{2}}', 'unpaid', after => '1 h'$$, $$'x', '{1,2}', 'unpaid', at => '{{2099-01-01},{2099-01-02}}'$$,
    $$'x', '{1,NULL}', 'unpaid', after => '1 h'$$, $$'x', '{1,2,1}', 'unpaid', after => '1 h'$$, $$'x', '{1,""}', 'unpaid', after => '1 h'$$,
    $$'x', ARRAY['1', repeat('x', 1025)], 'unpaid', after => '1 h'$$, $$'x', '{1,2}', 'unpaid', at => '{2099-01-01,NULL}'$$, $$'x', '{1,2}', 'unpaid', at => '{2099-01-01,infinity}'$$,
    $$'x', '{1,2}', 'unpaid', at => '{2030-01-01,2299-01-01}'$$, $$'x', '{1,2}', 'unpaid'$$, $$'x', '{1,2}', 'unpaid', at => '{2099-01-01,2099-01-01}', after => '1 h'$$,
    $$'x', '{1,2}', 'unpaid', after => '-1 h'$$, $$'x', '{1,2}', 'unpiad', after => '1 h'$$, $$'x', '{1,2}', NULL, after => '1 h'$$, $$NULL, '{1}', 'unpaid', after => '1 h'$$,
    $$'x', '{1,2}', 'unpaid', after => '1 h', on_conflict => 'some'$$, $$'x', ARRAY(SELECT n::text FROM generate_series(1, 1000001) AS n), 'unpaid', after => '1 h'$$,
    $$'x', '{1}', 'unpaid', after => '1 h', args => ARRAY[to_jsonb(repeat('x', 2000000))]$$]) AS call;
SELECT count(*) = :before FROM awty.future_job;
SELECT test.sqlstate($$SELECT awty.schedule('orders', ARRAY['1'], 'unpaid', after => '1 h')$$), test.sqlstate($$SELECT awty.schedule_many('orders', 1, 'unpaid', after => '1 h')$$);

-- awty.cancel_many() cancels the checks of one job, or of all jobs that the caller may schedule.
SELECT awty.schedule_many('orders', '{1,2,3}', 'unshipped', after => '1 day');
SELECT awty.cancel_many('orders', '{3,2,99}', 'unshipped'), awty.cancel_many('orders', '{3,2}', 'unshipped');
SELECT awty.cancel_many('orders', '{1,2}');
SELECT awty.cancel_many('orders', array_agg(id::text)) FROM shop.placed WHERE id > 50;
SELECT count(*) FROM awty.future_job WHERE entity_name = 'orders';
SELECT job, outcome, count(*) FROM awty.future_job_history WHERE entity_name = 'orders' AND finished_at >= (SELECT min(scheduled_at) FROM awty.future_job WHERE entity_name = 'orders') GROUP BY 1, 2 ORDER BY 1;
SELECT call, test.raises('SELECT awty.cancel_many(' || call || ')') FROM unnest(ARRAY[$$'orders', '{1,1}'$$, $$'orders', '{NULL}'$$, $$'orders', '{{1}}'$$, $$'orders', '{1}', 'unpiad'$$, $$'', '{1}'$$]) AS call;
-- cancel_many() keeps the checks of other roles. A call that names another role's job is refused.
SELECT awty.allow('unpaid', 'regress_app');
SELECT awty.schedule_many('orders', '{5,6}', 'unshipped', after => '1 day');
SET ROLE regress_app;
SELECT test.raises($$SELECT awty.cancel_many('orders', '{5,6}', 'unshipped')$$);
SELECT test.sqlstate($$SELECT awty.schedule_many('orders', '{5,6}', 'unshipped', after => '1 day')$$);
SELECT awty.cancel_many('orders', '{5,6}');
SET ROLE regress_eve;
SELECT awty.cancel_many('orders', '{5,6,7,8}');
SET ROLE regress_shop;
SELECT entity_key, job FROM awty.future_job WHERE entity_key IN ('5', '6') AND entity_name = 'orders';

-- schedule_many() executes few statements, which use an index, even for many keys.
RESET ROLE;
BEGIN;
SELECT seq_scan AS before FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass
\gset
SELECT awty.schedule_many('many', array_agg(n::text), 'unpaid', after => '1 day') FROM generate_series(1, 5000) AS n;
SELECT awty.schedule_many('many', array_agg(n::text), 'unpaid', after => '1 day') FROM generate_series(2001, 7000) AS n;
SELECT awty.cancel_many('many', array_agg(n::text)) FROM generate_series(1, 10000) AS n;
SELECT seq_scan = :before FROM pg_stat_xact_all_tables WHERE relid = 'awty.future_job'::regclass;
ROLLBACK;
SET ROLE regress_shop;
SELECT awty.cancel_many(entity_name, array_agg(entity_key), 'unpaid') > 0 FROM awty.future_job WHERE job = 'unpaid' GROUP BY entity_name;
SELECT count(*) FROM awty.future_job WHERE job = 'unpaid';
SELECT awty.unregister('unpaid'), awty.unregister('unshipped');
DROP TABLE shop.placed;
