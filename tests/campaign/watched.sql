-- A table that is watched, of a role of its own; all roles write to it.
CREATE TABLE camp.parcel (id bigint PRIMARY KEY DEFERRABLE, since timestamptz, state text NOT NULL, note text);
-- What its rule says, written in the transaction that tells awty; no row: there is no rule.
CREATE TABLE camp.terms (there text[] NOT NULL, within interval NOT NULL);
ALTER TABLE camp.parcel OWNER TO frank;
ALTER TABLE camp.terms OWNER TO frank;
GRANT CREATE ON SCHEMA camp TO frank;
GRANT USAGE ON SCHEMA awty TO frank;
GRANT ALL ON camp.parcel TO PUBLIC;
