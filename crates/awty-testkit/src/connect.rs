use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use crate::poll::{PATIENCE, poll};
use crate::{Cluster, account};

impl Cluster {
    pub fn try_client(&self, database: &str, role: &str) -> Result<Client, postgres::Error> {
        self.config(database, role).connect(NoTls)
    }

    pub fn config(&self, database: &str, role: &str) -> Config {
        let mut config = Config::new();
        config.host_path(self.socket_directory()).port(Self::PORT).dbname(database).user(role);
        config.application_name("awty-testkit");
        config
    }

    #[track_caller]
    pub fn client(&self, database: &str, role: &str) -> Client {
        let client = self.try_client(database, role);
        client.unwrap_or_else(|error| panic!("cannot connect to {database} as {role}: {error}"))
    }

    #[track_caller]
    pub fn superuser(&self, database: &str) -> Client {
        self.client(database, "postgres")
    }

    #[track_caller]
    pub fn execute(&self, database: &str, statements: &[&str]) {
        let mut client = self.superuser(database);
        for statement in statements {
            if let Err(error) = client.batch_execute(statement) {
                panic!("{statement}: {}", explain(&error));
            }
        }
    }

    #[track_caller]
    pub fn create_extension(&self, database: &str) {
        self.execute(database, &["CREATE EXTENSION awty"]);
    }

    #[track_caller]
    pub fn create_user(&self, database: &str, role: &str) {
        self.execute(
            database,
            &[
                &format!("CREATE ROLE {role} LOGIN"),
                &format!("CREATE SCHEMA {role} AUTHORIZATION {role}"),
                &format!("GRANT USAGE ON SCHEMA awty TO {role}"),
            ],
        );
    }

    #[track_caller]
    pub fn value<T: for<'a> postgres::types::FromSql<'a>>(&self, database: &str, sql: &str) -> T {
        let row = self.superuser(database).query_one(sql, &[]);
        row.unwrap_or_else(|error| panic!("{sql}: {}", explain(&error))).get(0)
    }

    #[track_caller]
    pub fn await_sql(&self, database: &str, what: &str, sql: &str) {
        let mut client = self.superuser(database);
        self.await_that(what, PATIENCE, || match client.query_opt(sql, &[]) {
            Ok(Some(row)) if row.get::<_, Option<bool>>(0) == Some(true) => Ok(()),
            Ok(row) => Err(format!("{:?} from {sql}", row.map(|row| row.get::<_, Option<bool>>(0)))),
            Err(error) => Err(explain(&error)),
        });
    }

    #[track_caller]
    pub fn await_that<T>(&self, what: &str, within: Duration, ask: impl FnMut() -> Result<T, String>) -> T {
        poll(what, within, ask).unwrap_or_else(|message| panic!("{message}"))
    }

    #[track_caller]
    pub fn pids(&self, backend_type: &str) -> Vec<i32> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE starts_with(backend_type, $1) ORDER BY backend_start";
        let rows = self.superuser("postgres").query(sql, &[&backend_type]);
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {}", explain(&error)));
        rows.iter().map(|row| row.get(0)).collect()
    }

    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.executable(name));
        self.environment().into_iter().for_each(|(name, value)| {
            command.env(name, value);
        });
        command
    }

    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        let host = self.socket_directory().to_path_buf();
        [("PGHOST", host), ("PGPORT", Self::PORT.to_string().into()), ("PGUSER", "postgres".into())]
    }

    #[track_caller]
    pub fn psql(&self, database: &str, script: &str) -> String {
        let mut psql = self.tool("psql");
        account::run(psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", script]))
    }
}

pub(crate) fn explain(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => {
            let more = [("DETAIL", db.detail()), ("HINT", db.hint())];
            let more: String = more.iter().filter_map(|(k, v)| v.map(|v| format!("\n{k}: {v}"))).collect();
            format!("{}: {}{more}", db.code().code(), db.message())
        }
        None => error.to_string(),
    }
}
