use crate::clients::{self, NOTE_ID};
use awty_testkit::fixture::Shop;
use std::path::{Path, PathBuf};

struct Scripts([PathBuf; 2]);

impl Scripts {
    fn write(shop: &Shop) -> Self {
        let directory: String =
            shop.cluster.value("postgres", "SELECT setting || '/extension' FROM pg_config WHERE name = 'SHAREDIR'");
        let here: String = shop.cluster.value("postgres", "SELECT extversion FROM pg_extension WHERE extname = 'awty'");
        let script = |from: &str, to: &str, fillfactor: u32| {
            let file = Path::new(&directory).join(format!("awty--{from}--{to}.sql"));
            let text = format!(
                "SELECT pg_catalog.pg_sleep(0.05);
                 ALTER TABLE awty.future_job SET (fillfactor = {fillfactor});
                 ALTER TABLE awty.future_job ALTER COLUMN held SET DEFAULT false;"
            );
            std::fs::write(&file, text).unwrap();
            file
        };
        Self([script(&here, "test", 90), script("test", &here, 100)])
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        self.0.iter().for_each(|file| drop(std::fs::remove_file(file)));
    }
}

#[test]
fn an_update_under_load_loses_nothing() {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    let scripts = Scripts::write(&shop);
    let here: String = shop.cluster.value("postgres", "SELECT extversion FROM pg_extension WHERE extname = 'awty'");
    let placing = clients::place(&shop, &["55000"]);
    let mut dba = shop.cluster.superuser("postgres");
    for _ in 0..4 {
        for version in ["test", here.as_str()].repeat(4) {
            let update = format!("ALTER EXTENSION awty UPDATE TO '{version}'");
            dba.batch_execute(&update).unwrap_or_else(|error| panic!("{update}: {error:?}"));
        }
        clients::await_more_runs(&shop.cluster, "postgres");
    }
    dba.batch_execute("ALTER EXTENSION awty UPDATE TO 'test'").unwrap();
    shop.cluster.await_log(&["WARNING", "which its library"], 0);
    dba.batch_execute(&format!("ALTER EXTENSION awty UPDATE TO '{here}'")).unwrap();
    placing.judge(&shop);
    let log = shop.cluster.log_since(0);
    assert!(!log.contains("deadlock detected"), "{log}");
    drop(scripts);
}

#[test]
fn maintenance_of_the_tables_under_load_loses_nothing() {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    let placing = clients::place(&shop, &[]);
    let mut dba = shop.cluster.superuser("postgres");
    for _ in 0..5 {
        for statement in [
            "VACUUM FULL awty.future_job",
            "CLUSTER awty.future_job USING future_job_pkey",
            "REINDEX TABLE CONCURRENTLY awty.future_job",
            "ALTER TABLE awty.future_job SET (fillfactor = 80)",
            "VACUUM FULL awty_internal.check_stat",
            "ANALYZE awty.future_job",
        ] {
            dba.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
    }
    placing.judge(&shop);
}
