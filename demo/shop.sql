-- A small shop wants an alert for every order that has not shipped 3 seconds after it was placed, and another after 5 seconds.

CREATE TABLE shop.orders (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status    text NOT NULL DEFAULT 'UNSHIPPED',
    placed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ready_at  timestamptz                          -- when the warehouse will have packed it; NULL: never
);
CREATE INDEX orders_to_ship_idx ON shop.orders (ready_at) WHERE status = 'UNSHIPPED';

-- This call is the whole rule. awty writes the rule's alerts to awty.alert.
SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 seconds', escalate => '{5 seconds}');

-- PostgreSQL fires triggers by name. The trigger shipped fires after awty's triggers, so it reads the clock later.
CREATE TABLE shop.shipment (
    order_id         bigint PRIMARY KEY REFERENCES shop.orders,
    shipped_at       timestamptz NOT NULL
);
CREATE FUNCTION shop.order_shipped() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO shop.shipment(order_id, shipped_at) VALUES (NEW.id, clock_timestamp());
  RETURN NULL;
END $$;
CREATE TRIGGER shipped AFTER UPDATE OF status ON shop.orders FOR EACH ROW
  WHEN (OLD.status = 'UNSHIPPED' AND NEW.status = 'SHIPPED') EXECUTE FUNCTION shop.order_shipped();
