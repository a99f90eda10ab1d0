-- A watched table with its own owner. All roles write to it.
CREATE TABLE camp.parcel (id bigint PRIMARY KEY DEFERRABLE, since timestamptz, state text NOT NULL, note text);
-- The terms of its rule, written in the transaction that changes the rule. No row means no rule.
CREATE TABLE camp.terms (there text[] NOT NULL, within interval NOT NULL);
ALTER TABLE camp.parcel OWNER TO frank;
ALTER TABLE camp.terms OWNER TO frank;
GRANT CREATE ON SCHEMA camp TO frank;
GRANT USAGE ON SCHEMA awty TO frank;
GRANT ALL ON camp.parcel TO PUBLIC;
