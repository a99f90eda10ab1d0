-- In the measurement "two roles", the role `other` uses the functions and tables of the role `shop`.
CREATE SCHEMA IF NOT EXISTS shop AUTHORIZATION shop;
GRANT USAGE ON SCHEMA shop TO PUBLIC;
GRANT USAGE ON SCHEMA awty TO shop, other;
SET ROLE shop;

CREATE TABLE shop.orders (
    id        bigint PRIMARY KEY,
    status    text NOT NULL,
    placed_at timestamptz NOT NULL,
    customer  text NOT NULL
);
CREATE TABLE shop.alert (
    order_id  bigint NOT NULL,
    level     integer NOT NULL,
    raised_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT ON shop.orders TO PUBLIC;
GRANT INSERT ON shop.alert TO PUBLIC;

CREATE FUNCTION shop.look_at(order_id bigint, level integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE status text;
BEGIN
    SELECT o.status INTO status FROM shop.orders AS o WHERE o.id = look_at.order_id;
    IF status = 'UNSHIPPED' THEN
        INSERT INTO shop.alert (order_id, level) VALUES (look_at.order_id, look_at.level);
    END IF;
END $$;

CREATE FUNCTION shop.unshipped(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE status text;
BEGIN
    SELECT o.status INTO status FROM shop.orders AS o WHERE o.id = j.entity_key::bigint;
    IF status = 'UNSHIPPED' THEN
        INSERT INTO shop.alert (order_id, level) VALUES (j.entity_key::bigint, j.check_count);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION shop.unshipped_set(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.alert (order_id, level)
    SELECT o.id, c.check_count
    FROM unnest(j) AS c JOIN shop.orders AS o ON o.id = c.entity_key::bigint
    WHERE o.status = 'UNSHIPPED';
    RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]);
END $$;

SELECT awty.register('one', 'shop.unshipped');
SELECT awty.register('set', 'shop.unshipped_set');
RESET ROLE;

GRANT shop TO other;
SET ROLE other;
SELECT awty.register('other', 'shop.unshipped');
RESET ROLE;

-- Inserts the orders in the server, so that the client's time does not count.
CREATE PROCEDURE shop.one_by_one(orders regclass, n integer, each boolean) LANGUAGE plpgsql AS $$
BEGIN
    IF orders = 'shop.watched'::regclass THEN
        FOR i IN 1..n LOOP
            INSERT INTO shop.watched VALUES (i, 'UNSHIPPED', now(), 'somebody');
            IF each THEN COMMIT; END IF;
        END LOOP;
    ELSE
        FOR i IN 1..n LOOP
            INSERT INTO shop.unwatched VALUES (i, 'UNSHIPPED', now(), 'somebody');
            IF each THEN COMMIT; END IF;
        END LOOP;
    END IF;
END $$;
