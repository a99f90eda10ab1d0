-- All roles write to this table, which belongs to another role.
CREATE TABLE camp.parcel (id bigint PRIMARY KEY DEFERRABLE, since timestamptz, state text NOT NULL, note text);
-- The transaction that changes the rule writes the new condition and time here. Without a rule, the table is empty.
CREATE TABLE camp.terms (there text[] NOT NULL, within interval NOT NULL);
ALTER TABLE camp.parcel OWNER TO frank;
ALTER TABLE camp.terms OWNER TO frank;
GRANT CREATE ON SCHEMA camp TO frank;
GRANT USAGE ON SCHEMA awty TO frank;
GRANT ALL ON camp.parcel TO PUBLIC;
