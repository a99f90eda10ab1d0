-- A role sees and uses the jobs of roles that it may become. From PostgreSQL 16 on, a membership without SET is not
-- enough.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_member LOGIN;
CREATE ROLE regress_near LOGIN;
GRANT USAGE ON SCHEMA awty TO regress_member, regress_near;
GRANT regress_shop TO regress_member;
DO $$
BEGIN
    IF current_setting('server_version_num')::integer >= 160000 THEN
        EXECUTE 'GRANT regress_shop TO regress_near WITH INHERIT FALSE, SET FALSE';
    END IF;
END $$;
SET ROLE regress_shop;
SELECT awty.register('unpaid', 'shop.unpaid'), awty.register('gone', 'shop.unpaid');
SELECT awty.schedule('orders', '1', 'unpaid', after => '1 hour') > 0, awty.schedule('orders', '2', 'unpaid', after => '1 hour') > 0;
SELECT awty.cancel('orders', '2');
SET ROLE regress_member;
SELECT (SELECT count(*) FROM awty.job), (SELECT count(*) FROM awty.future_job), (SELECT count(*) > 0 FROM awty.future_job_history);
SELECT awty.schedule('orders', '3', 'unpaid', after => '1 hour') > 0;
SELECT test.raises($$SELECT awty.pause('unpaidd')$$);
SET ROLE regress_near;
SELECT (SELECT count(*) FROM awty.job), (SELECT count(*) FROM awty.future_job), (SELECT count(*) > 0 FROM awty.future_job_history);
SELECT test.raises($$SELECT awty.schedule('orders', '3', 'unpaid', after => '1 hour')$$);
SELECT test.raises($$SELECT awty.pause('unpaid')$$);
SELECT test.raises($$SELECT awty.pause('unpaidd')$$);
SELECT awty.cancel('orders', '1');
RESET ROLE;
SELECT count(*) FROM awty.future_job WHERE entity_name = 'orders';

SELECT awty.unregister('unpaid'), awty.unregister('gone');
DROP OWNED BY regress_member, regress_near;
DROP ROLE regress_member, regress_near;
