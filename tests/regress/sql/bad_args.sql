\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');

-- The limit of 1 MiB counts the uncompressed text of the args, with all digits of their numbers and escapes of their strings.
SELECT args, test.sqlstate(format('SELECT awty.schedule(%L, %L, %L, after => %L, args => (%s)::jsonb)', 'orders', '1', 'unpaid', '1 h', args))
FROM unnest(ARRAY['to_jsonb(repeat(''x'', 100000000))', 'repeat(''['', 1000000) || repeat('']'', 1000000)', 'to_jsonb(array_fill(1, ARRAY[200000]))',
    $$'"\u0000"'$$, $$'{"\u0000": 1}'$$, $$'{"a":'$$, $$''$$, $$'"\ud83d"'$$,
    $$concat('[', repeat('1e131000,', 9), '0]')$$, $$jsonb_build_object('a', round(1, 16000), 'b', array_fill(round(1, 16000), ARRAY[70]))$$,
    $$to_jsonb(repeat(chr(1), 180000))$$, $$jsonb_build_object(repeat('"', 600000), 1)$$]) AS args;
SELECT count(*) FROM awty.future_job;

SELECT awty.schedule('orders', '2', 'unpaid', after => '1 h', args => (repeat('[', 1000) || repeat(']', 1000))::jsonb) > 0;
SELECT args = (repeat('[', 1000) || repeat(']', 1000))::jsonb FROM awty.future_job;
SELECT awty.unregister('unpaid');

-- Calls every function with NULL for all arguments, even functions of later versions.
RESET ROLE;
SELECT call, test.raises('SELECT ' || call)
FROM pg_proc AS p CROSS JOIN LATERAL (
    SELECT format('%s(%s)', p.oid::regproc, string_agg('NULL::' || CASE WHEN t::regtype::text ~ 'any' THEN 'integer' ELSE format_type(t, NULL) END, ', ' ORDER BY n)) AS call
    FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, n)
) AS calls
WHERE p.pronamespace = ANY ('{awty,awty_internal}'::regnamespace[]) ORDER BY p.proname, call;
