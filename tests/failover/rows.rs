use crate::judge::Row;
use awty_testkit::poll;
use awty_testkit::postgres::{Client, Error};
use std::collections::BTreeMap;
use std::time::Duration;

const ROWS: &str = "
WITH alerts AS (SELECT entity_key::bigint AS id, count(*) AS all_of_them, count(*) FILTER (WHERE cleared_at IS NULL) AS open
                FROM awty.alert WHERE rule = 'orders' GROUP BY 1),
     runs AS (SELECT order_id AS id, count(*) AS runs FROM shop.outbox GROUP BY 1),
     checks AS (SELECT entity_key::bigint AS id, count(*) AS done FROM awty.future_job_history
                WHERE job = 'orders' AND entity_name = 'orders' AND outcome = 'done' GROUP BY 1)
SELECT id, placed_at, shipped, coalesce(all_of_them, 0), coalesce(open, 0), coalesce(runs, 0), coalesce(done, 0)
FROM shop.orders LEFT JOIN alerts USING (id) LEFT JOIN runs USING (id) LEFT JOIN checks USING (id)";

pub const WITHOUT_ALERT: &str = "
SELECT count(*) FROM shop.orders AS o WHERE NOT shipped AND placed_at < now() - interval '6 seconds'
  AND NOT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = 'orders' AND a.entity_key = o.id::text AND a.cleared_at IS NULL)";

const WAITING: &str =
    "SELECT count(*) FROM shop.orders WHERE NOT shipped AND placed_at >= now() - interval '6 seconds'";

pub fn read(client: &mut Client) -> Result<BTreeMap<i64, Row>, Error> {
    let row = |row: &awty_testkit::postgres::Row| {
        let [alerts, open, runs, done] = [3, 4, 5, 6].map(|place| row.get(place));
        (row.get(0), Row { placed_at: row.get(1), is_shipped: row.get(2), alerts, open, runs, done })
    };
    Ok(client.query(ROWS, &[])?.iter().map(row).collect())
}

pub fn await_alerts(client: &mut Client) -> Result<(), String> {
    poll("each late order to have its alert", Duration::from_secs(90), || {
        let mut count = |sql: &str| client.query_one(sql, &[]).map(|row| row.get::<_, i64>(0));
        match (count(WAITING), count(WITHOUT_ALERT)) {
            (Ok(0), Ok(0)) => Ok(()),
            counts => Err(format!("{counts:?} not late yet and without an alert")),
        }
    })
}
