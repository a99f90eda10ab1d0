-- The extension installs into an empty database, and an ordinary role can use it after one GRANT.
CREATE EXTENSION awty;
SELECT extversion IS NOT NULL AS installed, extrelocatable FROM pg_extension WHERE extname = 'awty';

CREATE ROLE regress_shop LOGIN;
CREATE SCHEMA shop AUTHORIZATION regress_shop;
SET ROLE regress_shop;
-- SQLSTATE, DETAIL and HINT are part of the answer: \set VERBOSITY default shows the last two, :LAST_ERROR_SQLSTATE the first.
SELECT awty.schedule('orders', '42', 'unshipped', after => '3 hours');
\echo SQLSTATE :LAST_ERROR_SQLSTATE
RESET ROLE;
GRANT USAGE ON SCHEMA awty TO regress_shop;
