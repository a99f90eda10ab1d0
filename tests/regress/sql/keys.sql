-- No setting of the session changes a key.
\pset format unaligned
\pset tuples_only on
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid');

-- Keys can have any scalar type. Literals, untyped parameters and other string types are text.
SELECT awty.schedule('orders', 42, 'unpaid', after => '1 day') > 0, awty.schedule('orders', 42::smallint, 'unpaid', after => '1 day', on_conflict => 'keep') > 0;
SELECT awty.schedule('orders', key, 'unpaid', after => '1 day') > 0 FROM (VALUES (-9223372036854775807::bigint)) AS v (key);
SELECT awty.schedule('orders', 'c0ffee00-0000-4000-8000-000000000001'::uuid, 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('orders', true, 'unpaid', after => '1 day') > 0, awty.schedule('orders', 1.50, 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('orders', 'a name'::name, 'unpaid', after => '1 day') > 0, awty.schedule('orders', 'a varchar'::varchar, 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('orders', 'a literal', 'unpaid', after => '1 day') > 0, awty.schedule('orders', '{1,2}', 'unpaid', after => '1 day') > 0;
PREPARE p AS SELECT awty.schedule('orders', $1, 'unpaid', after => '1 day') > 0;
EXECUTE p ('a parameter');
CREATE DOMAIN shop.order_id AS bigint;
CREATE TYPE shop.colour AS ENUM ('red');
SELECT awty.schedule('orders', 7::shop.order_id, 'unpaid', after => '1 day') > 0, awty.schedule('orders', 'red'::shop.colour, 'unpaid', after => '1 day') > 0;
SELECT entity_key FROM awty.future_job ORDER BY entity_key;
SELECT DISTINCT event FROM awty.explain('orders', 42) ORDER BY 1;
SELECT awty.cancel('orders', 42), awty.cancel('orders', '7', 'unpaid'), awty.cancel('orders', 1.5), awty.cancel('orders', 1.50);

SELECT awty.schedule('styles', at, 'unpaid', after => '1 day') > 0 FROM (VALUES ('2026-11-22 12:00+00'::timestamptz)) AS v (at);
SELECT awty.schedule('styles', interval '1 day 2 hours', 'unpaid', after => '1 day') > 0, awty.schedule('styles', 0.1::float8 + 0.2::float8, 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('styles', '\x0102'::bytea, 'unpaid', after => '1 day') > 0, awty.schedule('styles', 'shop.unpaid'::regproc, 'unpaid', after => '1 day') > 0;
SELECT awty.schedule('styles', date '2026-11-22', 'unpaid', after => '1 day') > 0;
SELECT entity_key FROM awty.future_job WHERE entity_name = 'styles' ORDER BY entity_key;
SELECT awty.key(a, b, c, d) AS key FROM (VALUES ('2026-11-22 12:00+00'::timestamptz, date '2026-11-22', interval '1 day', 0.1::float8 + 0.2::float8)) AS v (a, b, c, d)
\gset
SET datestyle = 'German';
SET timezone = 'Asia/Kathmandu';
SET intervalstyle = iso_8601;
SET extra_float_digits = -15;
SET bytea_output = escape;
SET search_path = shop;
SELECT awty.cancel('styles', '2026-11-22 12:00+00'::timestamptz), awty.cancel('styles', interval '1 day 2 hours'), awty.cancel('styles', 0.1::float8 + 0.2::float8),
    awty.cancel('styles', '\x0102'::bytea), awty.cancel('styles', 'unpaid'::regproc), awty.cancel('styles', date '2026-11-22');
SELECT awty.key(a, b, c, d) = :'key' FROM (VALUES ('2026-11-22 12:00+00'::timestamptz, date '2026-11-22', interval '1 day', 0.1::float8 + 0.2::float8)) AS v (a, b, c, d);
SELECT '2026-11-22 12:00+00'::timestamptz, interval '1 day', '\x0102'::bytea, current_setting('search_path');
RESET datestyle;
RESET timezone;
RESET intervalstyle;
RESET extra_float_digits;
RESET bytea_output;
RESET search_path;
SELECT :'key';

SELECT awty.key(1, 'b'), awty.key(true, 1.50, NULL::text IS NULL), awty.key('one'), awty.key(VARIADIC ARRAY['a', 'b']);
SELECT awty.key('"', E'\\', E'\n\t', 'ünï', ''), awty.key('a, "b"') = awty.key('a', 'b'), awty.key(1, 23) = awty.key(12, 3);
SELECT awty.key('a"b', 2)::jsonb = jsonb_build_array('a"b', '2'), awty.key(1, 2) = json_build_array('1', '2')::text;
SELECT awty.schedule('lines', awty.key(o, n), 'unpaid', after => '1 day') > 0 FROM (VALUES (7, 'x')) AS v (o, n);
SELECT entity_key FROM awty.future_job WHERE entity_name = 'lines';

SELECT test.raises(call) FROM unnest(ARRAY[
    $$SELECT awty.schedule('orders', ROW(1, 2), 'unpaid', after => '1 day')$$, $$SELECT awty.cancel('orders', c) FROM awty.future_job AS c LIMIT 1$$,
    $$SELECT awty.schedule('orders', NULL::integer, 'unpaid', after => '1 day')$$, $$SELECT awty.schedule('orders', to_jsonb(repeat('x', 1100)), 'unpaid', after => '1 day')$$,
    $$SELECT awty.key(1, NULL)$$, $$SELECT awty.key(NULL)$$, $$SELECT awty.key(VARIADIC NULL::text[])$$, $$SELECT awty.key(VARIADIC '{}'::int[])$$, $$SELECT awty.key(ROW(1, 2))$$, $$SELECT awty.key(1, ARRAY[1])$$]) AS call;
-- An array is refused as a key. awty.schedule_many() takes many keys.
SELECT test.sqlstate($$SELECT awty.schedule('orders', ARRAY[1, 2], 'unpaid', after => '1 day')$$), test.sqlstate($$SELECT awty.key()$$);

SELECT awty.unregister('unpaid') > 0;
DROP DOMAIN shop.order_id;
DROP TYPE shop.colour;

-- The key of a single value is its text, so that one join fits all tables.
SELECT awty.key(7), awty.key('a"b'), awty.key(true), awty.key(date '2026-11-22'), awty.key('');
