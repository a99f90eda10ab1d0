mod again;
mod callers;
mod copies;
mod owners;
mod refusals;
mod schedules;
mod seen;
mod sends;
mod stat;
mod strangers;
mod tenants;
mod waits;

use awty_testkit::Cluster;
use awty_testkit::postgres::Client;

struct Http {
    cluster: Cluster,
}

impl Http {
    fn open() -> Self {
        let cluster = Cluster::builder().start();
        cluster.create_extension("postgres");
        for role in ["app", "other", "gateway"] {
            cluster.create_user("postgres", role);
        }
        cluster.execute(
            "postgres",
            &[
                "CREATE EXTENSION awty_http",
                "GRANT USAGE ON SCHEMA awty_http TO app, other, gateway",
                "SELECT awty_http.add_tenant('app'), awty_http.add_tenant('other')",
                "SELECT awty.allow('http.app', 'gateway', 'claim'), awty.allow('http.other', 'gateway', 'claim')",
            ],
        );
        Self { cluster }
    }

    fn client(&self, role: &str) -> Client {
        self.cluster.client("postgres", role)
    }

    #[track_caller]
    fn ask(&self, role: &str, sql: &str) -> String {
        let sql = format!("SELECT coalesce(x::text, '') FROM ({sql}) AS q (x)");
        let rows = self.client(role).query(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn claim(&self) -> Vec<i64> {
        self.claim_at_least(1)
    }

    #[track_caller]
    fn claim_at_least(&self, count: usize) -> Vec<i64> {
        let mut client = self.client("gateway");
        let mut leases = Vec::new();
        self.cluster.await_that("calls to claim", awty_testkit::PATIENCE, || {
            let rows = client.query("SELECT lease FROM awty.claim('{http.app}', 'gateway', 100)", &[]).unwrap();
            leases.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
            if leases.len() < count { Err(format!("{leases:?}")) } else { Ok(()) }
        });
        leases
    }
}

#[track_caller]
fn refused(client: &mut Client, sql: &str) -> String {
    let refusal = awty_testkit::fixture::refusal(client, sql);
    assert!(!refusal.hint.is_empty(), "{sql}: {refusal:?}");
    refusal.sqlstate
}
