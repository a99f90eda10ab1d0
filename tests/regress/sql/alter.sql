\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres;
GRANT regress_shop TO regress_app;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid', slot => '5 min', max_lateness => '1 hour');
CREATE VIEW test.options WITH (security_barrier) AS
SELECT function_name, set_based, role, slot, timeout, max_checks, max_horizon, max_attempts, retry_after, on_missed,
       max_lateness, keep_history, notify FROM awty.job WHERE job = 'unpaid';

SELECT awty.alter('unpaid');
TABLE test.options;
SELECT awty.alter('unpaid', slot => '1 hour');
SELECT awty.alter('unpaid', timeout => '5 s');
SELECT awty.alter('unpaid', max_checks => 7);
SELECT awty.alter('unpaid', max_horizon => '10 days');
SELECT awty.alter('unpaid', max_attempts => 8);
SELECT awty.alter('unpaid', retry_after => '9 min');
SELECT awty.alter('unpaid', on_missed => 'skip');
SELECT awty.alter('unpaid', max_lateness => '2 days');
SELECT awty.alter('unpaid', keep_history => 'problems', notify => 'late orders');
SELECT awty.alter('unpaid', keep_history => 'ran', notify => NULL);
TABLE test.options;
-- An option in reset gets its default, unless the same call sets the option.
SELECT awty.alter('unpaid', reset => '{slot, max_lateness}');
TABLE test.options;
SELECT awty.alter('unpaid', max_checks => 6, reset => ARRAY['timeout', 'max_checks', 'max_horizon', 'max_attempts',
    'retry_after', 'on_missed', 'keep_history', 'notify', NULL]);
TABLE test.options;
SELECT test.raises($$SELECT awty.alter('unpaid', reset => '{run_as}')$$);
SELECT test.raises($$SELECT awty.alter('unpaid', reset => '{Timeout}')$$);

SELECT awty.alter('unpaid', function => 'shop.stale');
TABLE test.options;
SELECT test.raises($$SELECT awty.alter('unpaid', function => 'shop.nothing')$$);
SELECT test.raises($$SELECT awty.alter('unpaid', function => '')$$);
SELECT awty.alter('unpaid', function => 'shop.unpaid');

-- A refused call changes no option, not even the options before the wrong one.
SELECT test.raises($$SELECT awty.alter('unpaid', timeout => '1 s', max_checks => -1)$$);
TABLE test.options;

-- Pending checks keep their slot, but run with the new options.
SELECT date_trunc('day', now()) AS day \gset
SELECT awty.schedule('orders', '1', 'unpaid', at => :'day'::timestamptz + interval '2 days 10:01') > 0;
SELECT awty.alter('unpaid', slot => '1 hour');
SELECT next_check_at = :'day'::timestamptz + interval '2 days 10:01' FROM awty.future_job;
SELECT awty.schedule('orders', '1', 'unpaid', at => :'day'::timestamptz + interval '2 days 10:01') > 0;
SELECT next_check_at = :'day'::timestamptz + interval '2 days 11:00' FROM awty.future_job;

-- A job can get another role if the caller can become this role, and if the role may execute the function.
SET ROLE regress_app;
SELECT awty.alter('unpaid', run_as => 'regress_app');
TABLE test.options;
SET ROLE regress_shop;
SELECT test.raises($$SELECT awty.alter('unpaid', timeout => '1 s')$$);
SELECT test.raises($$SELECT awty.alter('unpaid', run_as => 'regress_shop')$$);
SET ROLE regress_app;
SELECT test.raises($$SELECT awty.alter('unpaid', run_as => 'regress_eve')$$);
SELECT awty.alter('unpaid', run_as => 'regress_shop');
SELECT test.raises($$SELECT awty.alter('unpaid', run_as => 'regress_nobody')$$);

BEGIN;
SELECT awty.alter('unpaid', max_checks => 99);
ROLLBACK;
SELECT max_checks FROM awty.job WHERE job = 'unpaid';

SELECT test.raises($$SELECT awty.alter('nothing', max_checks => 1)$$);
SELECT awty.unregister('unpaid');
SET ROLE regress_shop;
DROP VIEW test.options;
RESET ROLE;
REVOKE regress_shop FROM regress_app;
