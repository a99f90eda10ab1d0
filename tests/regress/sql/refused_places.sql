\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');
CREATE FUNCTION test.calls() RETURNS SETOF text LANGUAGE sql AS $$ SELECT unnest(ARRAY[
    $_$register('new', 'shop.unpaid')$_$, $_$alter('unpaid', max_checks => 1)$_$, $_$unregister('unpaid')$_$, $_$pause('unpaid')$_$, $_$resume('unpaid')$_$,
    $_$allow('unpaid', 'regress_app')$_$, $_$disallow('unpaid', 'regress_app')$_$, $_$schedule('orders', '1', 'unpaid', after => '1 hour')$_$,
    $_$cancel('orders', '1')$_$, $_$release('orders', '1')$_$, $_$adopt()$_$]) $$;

BEGIN READ ONLY;
SELECT call, test.raises('SELECT awty.' || call) FROM test.calls() AS call;
SELECT awty.next_slot('2099-06-01 10:00:30+00', 'unpaid') = '2099-06-01 10:01:00+00', enabled FROM awty.status;
COMMIT;
-- awty refuses a read-only transaction before it looks up the job, so that the error reveals nothing about jobs.
BEGIN READ ONLY;
SELECT test.raises($$SELECT awty.schedule(NULL, NULL, 'nothing')$$);
COMMIT;
SET default_transaction_read_only = on;
SELECT test.sqlstate($$SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour')$$);
SET default_transaction_read_only = off;

-- Index expressions, materialized views and ANALYZE are security-restricted operations.
CREATE FUNCTION shop.sneaky(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_setting('test.sneak', true) = 'on' THEN
        PERFORM awty.schedule('sneaky', id::text, 'unpaid', after => '1 hour');
    END IF;
    RETURN id;
END $$;
CREATE TABLE shop.orders AS SELECT generate_series(1, 10)::bigint AS id;
CREATE INDEX orders_sneaky_idx ON shop.orders (shop.sneaky(id));
CREATE MATERIALIZED VIEW shop.sneaky_orders AS SELECT shop.sneaky(id) AS id FROM shop.orders;
RESET ROLE;
SET test.sneak = on;
SELECT command, test.raises(command) FROM unnest(ARRAY['CREATE INDEX orders_sneaky2_idx ON shop.orders (shop.sneaky(id))',
    'REINDEX INDEX shop.orders_sneaky_idx', 'REFRESH MATERIALIZED VIEW shop.sneaky_orders', 'ANALYZE shop.orders', 'CLUSTER shop.orders USING orders_sneaky_idx']) AS command;
CREATE FUNCTION test.restricted(call text) RETURNS text LANGUAGE plpgsql AS $_$
BEGIN
    EXECUTE format($$CREATE OR REPLACE FUNCTION shop.sneaky(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
        'BEGIN IF current_setting(''test.sneak'', true) = ''on'' THEN PERFORM awty.%s; END IF; RETURN id; END'$$, replace(call, '''', ''''''));
    RETURN test.raises('REFRESH MATERIALIZED VIEW shop.sneaky_orders');
END $_$;
GRANT ALL ON FUNCTION test.restricted TO PUBLIC;
SET ROLE regress_shop;
SELECT call, split_part(test.restricted(call), E'\n', 1) FROM test.calls() AS call;
SELECT count(*) FROM awty.future_job;
SET test.sneak = off;
SET client_min_messages = warning;
DROP TABLE shop.orders CASCADE;
RESET client_min_messages;
DROP FUNCTION shop.sneaky;

SELECT awty.schedule('fine', '1', 'unpaid', after => '1 hour') > 0;
SELECT awty.unregister('unpaid');
RESET ROLE;
DROP FUNCTION test.restricted, test.calls;

-- Even a superuser cannot call the trigger function directly.
SELECT test.raises('SELECT awty_internal.job_changed()');
