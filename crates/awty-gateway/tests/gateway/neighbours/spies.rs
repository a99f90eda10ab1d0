use super::hood::{self, Hood, Target};
use crate::client::{Client, encoded};
use crate::shop::{Gateway, Shop};
use awty_testkit::postgres;

pub const MARK: &str = "victims-5d1e";

const READABLE: &str = "SELECT format('%I.%I', n.nspname, c.relname), string_agg(quote_ident(a.attname), ', ')
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relkind IN ('r', 'v', 'm', 'p', 'S') AND n.nspname NOT LIKE 'pg_toast%' AND n.nspname <> 'information_schema'
      AND ($1 OR n.nspname <> 'pg_catalog')
      AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
    GROUP BY n.nspname, c.relname";
const SHOWING: [&str; 4] = [
    "SELECT e::text FROM awty.explain($1, $2) AS e",
    "SELECT d::text FROM awty.dry_run($1, $2, 'http.victim') AS d",
    "SELECT e::text FROM awty.explain('orders', '1') AS e WHERE $1 <> $2",
    "SELECT d::text FROM awty.doctor() AS d WHERE $1 <> $2",
];

/// The searched texts are parameters, so that the search does not find its own query in `pg_stat_activity`.
pub fn found_by_sql(client: &mut postgres::Client, target: &Target, marks: &[String], catalog: bool) -> Vec<String> {
    let marks: Vec<String> = marks.iter().map(|mark| format!("%{}%", mark.replace('_', "\\_"))).collect();
    let mut found = Vec::new();
    client.batch_execute("SET jit = off; SET statement_timeout = '2s'").unwrap();
    let readable = client.query(READABLE, &[&catalog]).unwrap();
    assert!(readable.len() > 10, "only {} relations can be read", readable.len());
    for row in readable {
        let (relation, columns): (String, String) = (row.get(0), row.get(1));
        let sql = format!("SELECT EXISTS (SELECT FROM {relation} WHERE ROW({columns})::text LIKE ANY ($1))");
        match client.query_one(&sql, &[&marks]) {
            Ok(row) if row.get(0) => found.push(relation),
            Ok(_) => (),
            Err(error) if error.code() == Some(&postgres::error::SqlState::INSUFFICIENT_PRIVILEGE) => (),
            // Skips a view whose query timed out, because the search also reads the tables behind the view.
            Err(error) if error.code() == Some(&postgres::error::SqlState::QUERY_CANCELED) => {
                println!("not read in time: {relation}")
            }
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }
    let bare: Vec<&str> = marks.iter().map(|mark| mark.trim_matches('%')).collect();
    for sql in SHOWING {
        let rows = client.query(sql, &[&target.origin, &target.path]).unwrap_or_default();
        let shown = rows.iter().filter_map(|row| row.get::<_, Option<String>>(0)).collect::<String>();
        if bare.iter().any(|mark| shown.contains(mark)) {
            found.push(sql.to_owned());
        }
    }
    found
}

fn found_by_api(client: &Client, target: &Target, marks: &[String]) -> Vec<String> {
    let (id, uri) = (&target.id, encoded(&format!("{}{}", target.origin, target.path)));
    let lists = [
        format!("/v1/schedules?uri={uri}"),
        format!("/v1/history?uri={uri}"),
        format!("/v1/schedules?label={MARK}"),
        format!("/v1/schedules?q={MARK}"),
        format!("/v1/sends/{MARK}-key"),
        format!("/v1/targets/{}", encoded(&target.origin)),
    ];
    let lists = lists
        .into_iter()
        .chain(["schedules", "history", "targets", "tokens", "status"].map(|list| format!("/v1/{list}?limit=500")));
    let own = ["", "/secret", "/attempts", "/next", "/stats"].map(|part| ("GET", format!("/v1/schedules/{id}{part}")));
    let acts = ["/run", "/pause", "/resume"].map(|part| ("POST", format!("/v1/schedules/{id}{part}")));
    let of_victim = own.into_iter().chain(acts).chain([("DELETE", format!("/v1/schedules/{id}"))]);
    let mut found = Vec::new();
    let mut ask = |method: &str, path: &str, must_fail: bool| {
        let answer = client.ask_once(method, path, "", "");
        let text = format!("{}{}", answer.head, answer.text).replace(path, "").replace(&format!("{MARK}-key"), "");
        if marks.iter().any(|mark| text.contains(mark)) || must_fail && (200..400).contains(&answer.status) {
            found.push(format!("{method} {path}: {} {}", answer.status, answer.text));
        }
    };
    lists.for_each(|path| ask("GET", &path, false));
    of_victim.for_each(|(method, path)| ask(method, &path, true));
    found
}

#[track_caller]
pub fn assert_nothing_is_seen(shop: &Shop, gateway: &Gateway, hood: &Hood, target: &Target, marks: &[String]) {
    // Checks first that the search finds the values for their owner. Otherwise, empty results for other roles would
    // prove nothing.
    let own = found_by_sql(&mut shop.cluster.client("postgres", "victim"), target, marks, false);
    for relation in ["awty_http.endpoint", "awty_http_internal.content", "victim.orders"] {
        assert!(own.iter().any(|found| found == relation), "{relation} is not in {own:?}");
    }
    for (role, catalog) in [(hood::role(0), true), (hood::role(14), false)] {
        let found = found_by_sql(&mut shop.cluster.client("postgres", &role), target, marks, catalog);
        assert!(found.is_empty(), "{role} sees values of the victim in {found:?}");
    }
    let client = Client { address: gateway.address(), token: shop.token(&hood::role(0), "admin") };
    let found = found_by_api(&client, target, marks);
    assert!(found.is_empty(), "the API shows values of the victim: {found:?}");
    let metrics = gateway.get("/metrics").1;
    let heard = hood.traps.all().map(super::trap::Trap::heard);
    for mark in marks {
        assert!(!metrics.contains(mark.as_str()), "the metrics contain {mark}");
        assert!(
            heard.iter().all(|heard| !heard.contains(mark.as_str())),
            "an endpoint of a neighbour has received {mark}"
        );
    }
}
