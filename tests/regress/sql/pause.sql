\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
CREATE FUNCTION test.state() RETURNS TABLE (paused boolean, resumed text) LANGUAGE sql AS $$
    SELECT paused, CASE WHEN resumed_at BETWEEN now() - interval '1 minute' AND clock_timestamp() THEN 'just now' ELSE resumed_at::text END FROM awty.job $$;

SELECT * FROM test.state();
SELECT awty.pause('unpaid');
SELECT * FROM test.state();
SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour') > 0, awty.schedule('orders', '2', 'unpaid', at => now()) > 0;
SELECT awty.cancel('orders', '1', 'unpaid');
SELECT awty.alter('unpaid', max_checks => 3);
SELECT * FROM test.state();
-- resume() of a job that is not paused changes nothing, so missed slots stay missed.
SELECT awty.pause('unpaid');
SELECT * FROM test.state();
SELECT awty.resume('unpaid');
SELECT * FROM test.state();
SELECT resumed_at AS before FROM awty.job
\gset
SELECT awty.resume('unpaid');
SELECT resumed_at = :'before' FROM awty.job;
SELECT awty.pause('unpaid');
SELECT paused, resumed_at = :'before' FROM awty.job;
SELECT awty.resume('unpaid');
SELECT paused, resumed_at > :'before' FROM awty.job;

BEGIN;
SELECT awty.pause('unpaid');
ROLLBACK;
SELECT paused FROM awty.job;

SET ROLE regress_eve;
SELECT test.raises($$SELECT awty.pause('unpaid')$$);
SELECT test.raises($$SELECT awty.resume('unpaid')$$);
SELECT test.raises($$SELECT awty.pause('nothing')$$);
SET ROLE regress_shop;
SELECT awty.unregister('unpaid');
DROP FUNCTION test.state;
