use awty_testkit::postgres::{Client, types::FromSql};
use awty_testkit::{Cluster, PATIENCE};

const SETTINGS: &str = "
shared_preload_libraries = 'citus,awty'
max_connections = 80
max_worker_processes = 24
shared_buffers = 64MB
wal_level = logical
awty.max_crashes = 1000
citus.enable_unsafe_triggers = on
citus.recover_2pc_interval = '1s'
citus.enable_statistics_collection = off";

/// Each node executes these statements once, and so does a node that joins later.
pub const NODE: &str = "
GRANT USAGE ON SCHEMA awty TO shop;
CREATE TABLE IF NOT EXISTS shop.closed_door (closed boolean);
GRANT ALL ON shop.closed_door TO shop";

pub const JOBS: &str = "
SELECT awty.register('tell', 'shop.tell', max_attempts => 0, retry_after => '1 s', max_checks => 0, timeout => '20 s', replace => true);
SELECT awty.register('fail', 'shop.fail', max_attempts => 3, retry_after => '1 s', replace => true);
SELECT awty.register('wait', 'shop.wait', max_attempts => 0, retry_after => '1 s', timeout => '60 s', replace => true)";

/// The run for an order inserts a row into `outbox`. The row's key is the order's key negated, so that Citus usually
/// stores the order and the row on different nodes.
const SHOP: &[&str] = &[
    "CREATE TABLE shop.orders (id bigint PRIMARY KEY, job text NOT NULL, after interval NOT NULL DEFAULT '0 s')",
    "CREATE TABLE shop.outbox (order_id bigint NOT NULL, what text NOT NULL)",
    "SET citus.shard_count = 8",
    "SELECT create_distributed_table('shop.orders', 'id'), create_distributed_table('shop.outbox', 'order_id')",
    "CREATE FUNCTION shop.placed() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN PERFORM awty.schedule('orders', NEW.id, NEW.job, after => NEW.after); RETURN NULL; END $$",
    "CREATE TRIGGER placed AFTER INSERT OR UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.placed()",
    "CREATE FUNCTION shop.tell(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
     BEGIN INSERT INTO shop.outbox VALUES (-j.entity_key::bigint, j.job); RETURN NULL; END $$",
    "CREATE FUNCTION shop.fail(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
     BEGIN INSERT INTO shop.outbox VALUES (-j.entity_key::bigint, j.job); RAISE 'this job always fails'; END $$",
    "CREATE FUNCTION shop.wait(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
     BEGIN
       IF j.args ? 'waits' THEN
         WHILE EXISTS (SELECT FROM shop.closed_door) LOOP PERFORM pg_sleep(0.05); END LOOP;
       END IF;
       INSERT INTO shop.outbox VALUES (-j.entity_key::bigint, j.job); RETURN NULL;
     END $$",
];

/// Finds orders whose runs did not take effect exactly once.
const WRONG: &str = "
SELECT coalesce(string_agg(format('order %s: %s effects of %s', coalesce(o.id, -x.order_id), coalesce(x.n, 0), o.job), '; '), '')
FROM (SELECT id, job FROM shop.orders) AS o
FULL JOIN (SELECT order_id, count(*) AS n FROM shop.outbox GROUP BY order_id) AS x ON x.order_id = -o.id
WHERE coalesce(x.n, 0) <> CASE o.job WHEN 'fail' THEN 0 ELSE 1 END OR o.id IS NULL";

pub struct Place {
    pub coordinator: Cluster,
    pub nodes: Vec<Cluster>,
}

fn server() -> Cluster {
    let mut server = Cluster::builder().conf(SETTINGS).create();
    // Citus uses this address when the server connects to itself.
    server.configure(&format!("citus.local_hostname = '{}'", address(&server)));
    server.start();
    server.execute("postgres", &["CREATE EXTENSION citus"]);
    server
}

fn address(server: &Cluster) -> String {
    server.socket_directory().display().to_string()
}

impl Place {
    pub fn open(nodes: usize) -> Self {
        let mut place = Self { coordinator: server(), nodes: Vec::new() };
        place.admin(&format!("SELECT citus_set_coordinator_host('{}', 5432)", address(&place.coordinator)));
        for _ in 0..nodes {
            place.add_node();
        }
        place.admin("CREATE EXTENSION awty");
        // The final check of the tables needs amcheck, which only the coordinator can create.
        place.admin("CREATE EXTENSION amcheck");
        place.admin("CREATE ROLE shop LOGIN");
        place.admin("CREATE SCHEMA shop AUTHORIZATION shop");
        place.on_all(NODE);
        let mut shop = place.shop();
        for statement in SHOP {
            shop.batch_execute(statement).unwrap();
        }
        place.on_all_as_shop(JOBS);
        place
    }

    pub fn add_node(&mut self) {
        let node = server();
        self.admin(&format!("SELECT citus_add_node('{}', 5432)", address(&node)));
        self.nodes.push(node);
    }

    #[track_caller]
    pub fn admin(&self, statement: &str) {
        self.coordinator.execute("postgres", &[statement]);
    }

    pub fn shop(&self) -> Client {
        self.coordinator.client("postgres", "shop")
    }

    #[track_caller]
    pub fn value<T: for<'a> FromSql<'a>>(&self, sql: &str) -> T {
        self.coordinator.value("postgres", sql)
    }

    #[track_caller]
    pub fn on_all(&self, statements: &str) -> Vec<String> {
        on_all(&mut self.coordinator.superuser("postgres"), statements)
    }

    #[track_caller]
    pub fn on_all_as_shop(&self, statements: &str) -> Vec<String> {
        on_all(&mut self.shop(), statements)
    }

    #[track_caller]
    pub fn sum(&self, sql: &str) -> i64 {
        self.on_all(sql).iter().map(|value| value.parse::<i64>().unwrap()).sum()
    }

    #[track_caller]
    pub fn await_all_ended(&self) {
        self.await_none("every check to end", "SELECT count(*) FROM awty.future_job");
    }

    #[track_caller]
    pub fn await_none(&self, what: &str, sql: &str) {
        self.coordinator.await_that(what, PATIENCE, || {
            let mut client = self.coordinator.try_client("postgres", "postgres").map_err(|error| error.to_string())?;
            let rows = client.query("SELECT success, result FROM run_command_on_all_nodes($1)", &[&sql]);
            let rows = rows.map_err(|error| error.to_string())?;
            let left = rows.iter().map(|row| row.get::<_, Option<String>>(1).unwrap_or_default());
            let left: Vec<String> = left.collect();
            if left.iter().all(|left| left == "0") { Ok(()) } else { Err(left.join(", ")) }
        });
    }

    /// Returns the keys of orders that are stored on the node `of` and whose runs write to the node `effects_on`.
    #[track_caller]
    pub fn keys(&self, of: &Cluster, effects_on: &Cluster, from: i64, count: i64) -> Vec<i64> {
        let sql = "
            SELECT n FROM generate_series($1::bigint, $1 + 2000) AS n
            JOIN citus_shards AS o ON o.shardid = get_shard_id_for_distribution_column('shop.orders', n)
            JOIN citus_shards AS x ON x.shardid = get_shard_id_for_distribution_column('shop.outbox', -n)
            WHERE o.nodename = $2 AND x.nodename = $3 ORDER BY n LIMIT $4";
        let mut client = self.coordinator.superuser("postgres");
        let rows = client.query(sql, &[&from, &address(of), &address(effects_on), &count]).unwrap();
        assert_eq!(rows.len() as i64, count, "too few such orders");
        rows.iter().map(|row| row.get(0)).collect()
    }

    #[track_caller]
    pub fn judge(&self) {
        let wrong: String = self.value(WRONG);
        assert_eq!(wrong, "");
    }

    #[track_caller]
    pub fn clear(&self) {
        self.admin("TRUNCATE shop.orders, shop.outbox");
    }

    #[track_caller]
    pub fn moved(&self, node: usize, to: &Cluster) {
        let sql = "SELECT citus_update_node(nodeid, $2, 5432, true) FROM pg_dist_node WHERE nodename = $1";
        let mut client = self.coordinator.superuser("postgres");
        client.query_one(sql, &[&address(&self.nodes[node]), &address(to)]).unwrap();
    }

    #[track_caller]
    pub fn address(&self, node: usize) -> String {
        address(&self.nodes[node])
    }
}

#[track_caller]
fn on_all(client: &mut Client, statements: &str) -> Vec<String> {
    let sql = "SELECT nodeid, success, result FROM run_command_on_all_nodes($1) ORDER BY nodeid";
    let rows = client.query(sql, &[&statements]).unwrap();
    let result = |row: &awty_testkit::postgres::Row| {
        let result = row.get::<_, Option<String>>(2).unwrap_or_default();
        assert!(row.get::<_, bool>(1), "{statements} on node {}: {result}", row.get::<_, i32>(0));
        result
    };
    rows.iter().map(result).collect()
}
