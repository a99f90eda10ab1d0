\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
CREATE EXTENSION awty_http;
GRANT USAGE ON SCHEMA awty_http TO regress_shop;

-- Lists the public functions and columns. Every function has its own search_path, or is one statement with qualified
-- names.
SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ') → ' || pg_get_function_result(p.oid)
FROM pg_proc AS p WHERE p.pronamespace = 'awty_http'::regnamespace ORDER BY 1;
SELECT p.oid::regprocedure FROM pg_proc AS p
WHERE p.pronamespace = ANY ('{awty_http,awty_http_internal}'::regnamespace[]) AND p.prokind = 'f' AND p.prosqlbody IS NULL
  AND p.prolang <> (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'c')
  AND (p.proconfig @> '{"search_path=pg_catalog, pg_temp"}') IS NOT TRUE;
SELECT p.oid::regprocedure AS "SECURITY DEFINER" FROM pg_proc AS p
WHERE p.pronamespace = ANY ('{awty_http,awty_http_internal}'::regnamespace[]) AND p.prosecdef ORDER BY 1;
SELECT a.attrelid::regclass::text, string_agg(a.attname, ' ' ORDER BY a.attnum)
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = ANY ('{awty_http,awty_http_internal}'::regnamespace[]) AND c.relkind IN ('r', 'v') AND a.attnum > 0 GROUP BY 1 ORDER BY 1;

SELECT unnest(extconfig)::regclass FROM pg_extension WHERE extname = 'awty_http';

SELECT awty_http.add_tenant('regress_shop');
SET ROLE regress_shop;
SELECT awty_http.schedule('https://api.example.com/tick', cron => '0 9 * * *', zone => 'UTC') ~ '^s_';
SELECT awty_http.send('https://api.example.com/order', '{"n": 1}', 'order-1', after => '1 day') > 0;
SELECT test.raises(call) FROM unnest(ARRAY[
    $$SELECT awty_http.schedule('api.example.com/tick', '1 h')$$,
    $$SELECT awty_http.schedule('https://api.example.com/tick')$$,
    $$SELECT awty_http.schedule('https://api.example.com/tick', '1 h', "replace" => false)$$,
    $$SELECT awty_http.send('https://api.example.com/order', '{"n": 2}', 'order-1')$$,
    $$SELECT awty_http.create_token('regress_shop', 'all', '1 day')$$,
    $$SELECT awty_http.drop_token(0)$$,
    $$SELECT awty_http_internal.retry(0)$$,
    $$SELECT awty_http.add_tenant('regress_shop')$$,
    $$SELECT awty_http.drop_tenant('regress_shop')$$]) AS call;
SELECT uri, state FROM awty_http_internal.schedule_status;
SELECT key, state, uri FROM awty_http_internal.send_status;
SELECT awty_http_internal.cancel_send('order-1');
SET client_min_messages = notice;
-- The key of a cancelled call cannot be used for another call.
SELECT awty_http.send('https://api.example.com/order', '{"n": 1}', 'order-1', after => '1 day') > 0;
SELECT awty_http.send('https://api.example.com/order', '{"n": 2}', 'order-2', after => '1 day') > 0;
SELECT awty.cancel(entity_name, entity_key, job) FROM awty.future_job WHERE entity_key LIKE '%order-2';
SELECT awty_http.send('https://api.example.com/order', '{"n": 2}', 'order-2', after => '1 day') > 0;
SELECT awty.alter_target('http.regress_shop', 'https://api.example.com', blocked_until => 'infinity', note => 'repairs');
SELECT awty_http.schedule('https://api.example.com/tick', every => '1 h') ~ '^s_';
SELECT awty_http.unschedule('https://api.example.com/tick');
SET client_min_messages = warning;
RESET ROLE;

-- The jobs belong to awty, so they stay when awty_http is dropped.
DROP EXTENSION awty_http;
SELECT job, awty.unregister(job) FROM awty.job WHERE job LIKE 'http%' OR job = 'awty_http.roll_up' ORDER BY job;
