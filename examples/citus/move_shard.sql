-- Moves a shard of a Citus table together with its pending checks, in one distributed transaction. Run this file as a superuser on the
-- coordinator, and again after a node has joined. Then, for the checks of entity "orders", whose keys are values of the distribution
-- column:
--
--     SELECT awty_citus.move_shard('shop.orders', 102008, 'node-2', 5432, ARRAY['orders']);
--
-- The checks keep their time, their args and a hold. Repetitions and leases stay on the old node.

DROP SCHEMA IF EXISTS awty_citus CASCADE;
CREATE SCHEMA awty_citus;

-- Inserting a row for a node fires the trigger on that node, in the transaction that moves the shard.
CREATE TABLE awty_citus.parcel (
    place bigint NOT NULL,
    relation text NOT NULL,
    shard bigint NOT NULL,
    entity_names text[] NOT NULL,
    checks jsonb
);
SELECT create_distributed_table('awty_citus.parcel', 'place', colocate_with => 'none', shard_count => 32);

CREATE FUNCTION awty_citus.handle() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.checks IS NULL THEN
        -- The lock undoes a run in progress, and waits until a client that has locked a check commits.
        SELECT coalesce(jsonb_agg(to_jsonb(c)), '[]') INTO NEW.checks
        FROM (SELECT f.* FROM awty.future_job AS f
              WHERE f.entity_name = ANY (NEW.entity_names)
                AND get_shard_id_for_distribution_column(NEW.relation::regclass, f.entity_key) = NEW.shard FOR UPDATE) AS c;
        PERFORM awty.cancel_many(c.entity_name, array_agg(c.entity_key), c.job)
        FROM jsonb_populate_recordset(NULL::awty.future_job, NEW.checks) AS c GROUP BY c.entity_name, c.job;
    ELSE
        PERFORM awty.schedule_many(c.entity_name, array_agg(c.entity_key), c.job,
            at => array_agg(c.next_check_at), args => array_agg(c.args), on_conflict => 'keep')
        FROM jsonb_populate_recordset(NULL::awty.future_job, NEW.checks) AS c GROUP BY c.entity_name, c.job;
        PERFORM awty.hold(c.entity_name, c.entity_key, c.job)
        FROM jsonb_populate_recordset(NULL::awty.future_job, NEW.checks) AS c WHERE c.held;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER handle BEFORE INSERT ON awty_citus.parcel FOR EACH ROW EXECUTE FUNCTION awty_citus.handle();

CREATE FUNCTION awty_citus.place(of_group integer) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_place CONSTANT bigint := (
        SELECT min(k.place) FROM generate_series(1::bigint, 1000) AS k (place)
        JOIN pg_dist_placement AS p ON p.shardid = get_shard_id_for_distribution_column('awty_citus.parcel', k.place)
        WHERE p.groupid = of_group);
BEGIN
    IF found_place IS NULL THEN
        RAISE EXCEPTION 'table awty_citus.parcel has no shard on node group %', of_group USING HINT = 'Run move_shard.sql again.';
    END IF;
    RETURN found_place;
END $$;

CREATE FUNCTION awty_citus.move_shard(
    relation regclass, shard bigint, node_name text, node_port integer, entity_names text[], mode citus.shard_transfer_mode = 'auto'
) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    source record;
    source_place bigint;
    target_place bigint;
    taken jsonb;
BEGIN
    SELECT n.nodename, n.nodeport, n.groupid INTO STRICT source
    FROM pg_dist_placement AS p JOIN pg_dist_node AS n ON n.groupid = p.groupid AND n.noderole = 'primary'
    WHERE p.shardid = shard;
    source_place := awty_citus.place(source.groupid);
    target_place := awty_citus.place((
        SELECT n.groupid FROM pg_dist_node AS n WHERE n.nodename = node_name AND n.nodeport = node_port));
    -- The move comes first, because Citus refuses it after other changes in the transaction. Until the commit, no other transaction writes
    -- to the shard.
    PERFORM citus_move_shard_placement(shard, source.nodename, source.nodeport, node_name, node_port, mode);
    INSERT INTO awty_citus.parcel VALUES (source_place, relation::text, shard, entity_names) RETURNING checks INTO taken;
    INSERT INTO awty_citus.parcel VALUES (target_place, relation::text, shard, entity_names, taken);
    RETURN jsonb_array_length(taken);
END $$;
