CREATE EXTENSION awty;
CREATE SCHEMA smith AUTHORIZATION smith;
GRANT USAGE ON SCHEMA awty TO smith;
SET ROLE smith;

CREATE TABLE smith.statement (id bigint PRIMARY KEY, sql text NOT NULL);
CREATE TABLE smith.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, placed timestamptz DEFAULT now(), note text, args jsonb);
CREATE TABLE smith.line (orders bigint REFERENCES smith.orders DEFERRABLE INITIALLY DEFERRED, amount numeric, tags text[]);
INSERT INTO smith.orders (note, args) SELECT md5(i::text), jsonb_build_object('i', i) FROM generate_series(1, 100) AS i;
INSERT INTO smith.line SELECT 1 + i % 100, i / 7.0, ARRAY[i::text] FROM generate_series(1, 300) AS i;

CREATE FUNCTION smith.executes(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE (SELECT s.sql FROM smith.statement AS s WHERE s.id = j.entity_key::bigint);
    RETURN NULL;
END $$;
RESET ROLE;

CREATE FUNCTION public.nothing(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS $$ SELECT NULL::timestamptz $$;
GRANT USAGE ON SCHEMA awty TO bystander;
