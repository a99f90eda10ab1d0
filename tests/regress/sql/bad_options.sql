\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');

SELECT option, CASE WHEN a = r THEN r ELSE concat_ws(E'\n', 'register:', r, 'alter:', a) END
FROM unnest(ARRAY[
    $$max_checks => -1$$, $$max_checks => 1000001$$, $$max_checks => -2147483648$$,
    $$max_attempts => -1$$, $$max_attempts => 1001$$,
    $$timeout => '0'$$, $$timeout => '-1 s'$$, $$timeout => '999 us'$$, $$timeout => '1 day 1 us'$$, $$timeout => '178000000 years'$$,
    $$max_horizon => '0'$$, $$max_horizon => '-1 day'$$, $$max_horizon => '999 ms'$$, $$max_horizon => '36525 days 1 us'$$,
    $$retry_after => '0'$$, $$retry_after => '-1 min'$$, $$retry_after => '367 days'$$,
    $$max_lateness => '0'$$, $$max_lateness => '-1 min'$$, $$max_lateness => '101 years'$$,
    $$slot => '0'$$, $$slot => '-1 min'$$, $$slot => '61 s'$$,
    $$on_missed => 'Run'$$, $$on_missed => ''$$, $$on_missed => 'drop'$$, $$on_missed => 'next slot'$$,
    $$notify => ''$$, $$notify => repeat('x', 64)$$,
    $$keep_history => 'some'$$, $$keep_history => 'NONE'$$, $$keep_history => ' all'$$]) AS option
CROSS JOIN LATERAL test.raises(format('SELECT awty.register(%L, %L, %s)', 'new', 'shop.unpaid', option)) AS r
CROSS JOIN LATERAL test.raises(format('SELECT awty.alter(%L, %s)', 'unpaid', option)) AS a;

-- Options that always need a value refuse NULL.
SELECT option, test.raises(format('SELECT awty.register(%L, %L, %s => NULL)', 'new', 'shop.unpaid', option))
FROM unnest('{timeout, max_checks, max_horizon, max_attempts, retry_after, on_missed, keep_history}'::text[]) AS option;
SELECT awty.register('nulls', 'shop.unpaid', slot => NULL, max_lateness => NULL, run_as => NULL);
SELECT slot, max_lateness, role FROM awty.job WHERE job = 'nulls';
SELECT awty.unregister('nulls');

SELECT job, timeout = '30 s' AND max_checks = 5 AND max_horizon = '366 days' AND max_attempts = 3 AND retry_after = '1 min'
    AND on_missed = 'run' AND max_lateness IS NULL AND keep_history = 'all' AND slot IS NULL AS by_default FROM awty.job;

SELECT test.sqlstate($$SELECT awty.register('new', 'shop.unpaid', max_check => 3)$$);
SELECT test.sqlstate($$SELECT awty.alter('unpaid', max_checks => 1.5)$$);
SELECT test.sqlstate($$SELECT awty.alter('unpaid', timeout => 'soon')$$);
SELECT test.sqlstate($$SELECT awty.alter('unpaid', max_checks => 3000000000)$$);

SELECT awty.unregister('unpaid');
