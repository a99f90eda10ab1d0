use super::hood::Target;
use super::spies::MARK;
use crate::client::Client;
use crate::receiver::{Receiver, Seen};
use crate::shop::{Gateway, Shop, until};
use awty_testkit::postgres::NoTls;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub const PATH: &str = "/victims-path";

/// Lists the past planned times that do not have exactly one successful call.
const WRONG_SLOTS: &str = "SELECT string_agg(slot::text || ': ' || count, ', ') FROM (
    SELECT s.slot, count(a.lease) FROM awty.future_job AS f,
        LATERAL generate_series($1::text::timestamptz, f.first_check_at - interval '1 s', '1 s') AS s (slot)
        LEFT JOIN awty.attempt AS a ON a.job = 'http.victim' AND a.entity_key = '/victims-path' AND a.first_check_at = s.slot AND a.ok
    WHERE f.job = 'http.victim' AND f.entity_key = '/victims-path' GROUP BY s.slot HAVING count(a.lease) <> 1) AS wrong";
/// Only orders with odd ids are late, so only they must have an alert.
const WRONG_ALERTS: &str =
    "SELECT string_agg(id || ': ' || alerts || ' alerts, ' || reports || ' reports', '; ') FROM (
    SELECT o.id, (SELECT count(*) FROM awty.alert AS a WHERE a.rule = 'orders' AND a.entity_key = o.id::text) AS alerts,
        (SELECT count(*) FROM victim.outbox AS b WHERE b.order_id = o.id) AS reports, o.id % 2 AS wanted
    FROM victim.orders AS o) AS o WHERE alerts <> wanted OR reports <> wanted";

pub struct Victim {
    pub receiver: Receiver,
    pub target: Target,
    pub settings: String,
    first_slot: String,
}

pub struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<i64>,
}

impl Victim {
    pub fn settle(shop: &Shop) -> Self {
        let receiver = Receiver::start();
        shop.add_tenant("victim");
        shop.secret("victim", "TOKEN", &format!("{MARK}-secret"));
        let settings = shop.let_secret("victim", "TOKEN", &receiver.origin());
        shop.cluster.execute("postgres", &["CREATE SCHEMA victim AUTHORIZATION victim"]);
        let mut client = shop.cluster.client("postgres", "victim");
        let (uri, key) = (receiver.uri(PATH), receiver.uri("/victims-send"));
        let setup = format!(
            "CREATE TABLE victim.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL DEFAULT now(), status text NOT NULL, note text);
             CREATE TABLE victim.outbox (order_id bigint, level integer);
             CREATE FUNCTION victim.tell(a awty.alert) RETURNS void LANGUAGE sql AS
                 $$ INSERT INTO victim.outbox VALUES (a.entity_key::bigint, a.level) $$;
             SELECT awty.watch('victim.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '2 s', call => 'victim.tell');
             SELECT awty_http.send('{key}', '\"{MARK}-sent\"', key => '{MARK}-key');
             SELECT awty_http.schedule('{uri}', every => '1 s', jitter => '0', catch_up => '1 day',
                 headers => '{{\"X-Plain\": \"{MARK}-header\", \"X-Secret\": \"{{{{secret:TOKEN}}}}\"}}', body => '\"{MARK}-body\"',
                 description => '{MARK}-description', labels => '{{{MARK}}}');"
        );
        client.batch_execute(&setup).unwrap_or_else(|error| panic!("{setup}: {error:?}"));
        let first_slot = shop.text("SELECT first_check_at FROM awty.future_job WHERE entity_key = '/victims-path'");
        let id = shop.text("SELECT id FROM awty_http.endpoint WHERE entity_key = '/victims-path'");
        let target = Target { origin: receiver.origin(), path: PATH.to_owned(), id };
        Victim { receiver, target, settings, first_slot }
    }

    pub fn write(shop: &Shop) -> Writer {
        let (stop, config) = (Arc::<AtomicBool>::default(), shop.cluster.config("postgres", "victim"));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut client, mut id) = (config.connect(NoTls).unwrap(), 0_i64);
            let sql = "INSERT INTO victim.orders VALUES ($1::bigint, now(), CASE WHEN $1 % 2 = 1 THEN 'UNSHIPPED' ELSE 'SHIPPED' END, $2)";
            let sql = client.prepare(sql).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                id += 1;
                client.execute(&sql, &[&id, &format!("{MARK}-row")]).unwrap();
                std::thread::park_timeout(std::time::Duration::from_millis(100));
            }
            id
        });
        Writer { stop, thread }
    }

    pub fn calls(&self) -> Vec<Seen> {
        self.receiver.seen(PATH)
    }

    #[track_caller]
    pub fn await_calls(&self, more: usize) {
        let before = self.calls().len();
        self.receiver.called(PATH, before + more);
    }

    pub fn marks(&self, shop: &Shop, gateway: &Gateway) -> Vec<String> {
        let token = shop.token("victim", "write");
        let client = Client { address: gateway.address(), token: token.clone() };
        let answer = client.get(&format!("/v1/schedules/{}/secret", self.target.id));
        let key = answer.text.split("whsec_").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
        let seen = self.receiver.called(PATH, 1).remove(0);
        assert_eq!(seen.headers["x-secret"], format!("{MARK}-secret"));
        assert_eq!(seen.headers["x-plain"], format!("{MARK}-header"));
        vec![MARK.to_owned(), token, key.unwrap_or_else(|| panic!("no key: {}", answer.text))]
    }

    #[track_caller]
    pub fn assert_nothing_is_lost(&self, shop: &Shop, writer: Writer) {
        writer.stop.store(true, Ordering::Relaxed);
        let rows = writer.thread.join().unwrap();
        assert_eq!(shop.text("SELECT count(*) FROM victim.orders"), rows.to_string());
        let mut superuser = shop.cluster.superuser("postgres");
        until("the alerts", || {
            let wrong: Option<String> = superuser.query_one(WRONG_ALERTS, &[]).unwrap().get(0);
            wrong.map_or(Ok(()), Err)
        });
        until("one successful call for each slot", || {
            let wrong: Option<String> = superuser.query_one(WRONG_SLOTS, &[&self.first_slot]).unwrap().get(0);
            wrong.map_or(Ok(()), Err)
        });
        let wrong: Option<String> = superuser.query_one(WRONG_ALERTS, &[]).unwrap().get(0);
        assert_eq!(wrong, None);
        let paths: BTreeSet<String> = self.receiver.all().into_iter().map(|seen| seen.path).collect();
        let own = [PATH.to_owned(), "/victims-send".to_owned()];
        assert_eq!(paths, BTreeSet::from(own), "a neighbour has called the victim's server");
    }
}
