-- A small shop that wants to know of every order that has not shipped 3 seconds after it was placed, and again after 5.
-- (A real one would say hours.) Run by the role shop, which owns the schema shop and has USAGE on the schema awty.

CREATE TABLE shop.orders (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status    text NOT NULL DEFAULT 'UNSHIPPED',
    placed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ready_at  timestamptz                          -- when the warehouse will have packed it; NULL: never
);
CREATE INDEX orders_to_ship_idx ON shop.orders (ready_at) WHERE status = 'UNSHIPPED';

CREATE TABLE shop.shipment (
    order_id         bigint PRIMARY KEY REFERENCES shop.orders,
    checks_cancelled integer NOT NULL,
    shipped_at       timestamptz NOT NULL          -- read from the clock after the check was cancelled
);

CREATE TABLE shop.alert (
    order_id  bigint REFERENCES shop.orders,
    level     integer,                             -- 0: late; 1: escalated
    raised_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (order_id, level)
);

-- The check of one order: are we there yet?
CREATE FUNCTION shop.unshipped(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE o shop.orders;
BEGIN
  SELECT * INTO o FROM shop.orders WHERE id = j.entity_key::bigint;
  IF NOT FOUND OR o.status <> 'UNSHIPPED' THEN RETURN NULL; END IF;             -- we are there: done
  INSERT INTO shop.alert(order_id, level) VALUES (o.id, j.check_count);
  IF j.check_count = 0 THEN RETURN o.placed_at + interval '5 seconds'; END IF;  -- not yet: ask again then
  RETURN NULL;
END $$;

SELECT awty.register('unshipped', 'shop.unshipped');

-- Placing an order schedules its check; shipping it cancels the check.
CREATE FUNCTION shop.order_placed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM awty.schedule('orders', NEW.id::text, 'unshipped', at => NEW.placed_at + interval '3 seconds');
  RETURN NULL;
END $$;
CREATE TRIGGER placed AFTER INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.order_placed();

CREATE FUNCTION shop.order_shipped() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n integer;
BEGIN
  n := awty.cancel('orders', NEW.id::text);
  INSERT INTO shop.shipment(order_id, checks_cancelled, shipped_at) VALUES (NEW.id, n, clock_timestamp());
  RETURN NULL;
END $$;
CREATE TRIGGER shipped AFTER UPDATE OF status ON shop.orders FOR EACH ROW
  WHEN (OLD.status = 'UNSHIPPED' AND NEW.status = 'SHIPPED') EXECUTE FUNCTION shop.order_shipped();
