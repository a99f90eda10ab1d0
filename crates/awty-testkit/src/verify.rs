//! Invariant: amcheck leaves the database unchanged, because a transaction that installs amcheck is rolled back.

use postgres::Client;
use postgres::error::SqlState;

use crate::Cluster;
use crate::connect::explain;

const TABLES: &str = "
    CREATE TEMPORARY TABLE awty_verified ON COMMIT DROP AS
    WITH own AS (
        SELECT c.oid, c.reltoastrelid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname IN ('awty', 'awty_internal') AND c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
    )
    SELECT c.oid FROM pg_class AS c
    WHERE c.relam = (SELECT oid FROM pg_am WHERE amname = 'heap')
      AND c.oid IN (SELECT oid FROM own UNION SELECT reltoastrelid FROM own)";

const PREPARE: &str = "
    SET session_replication_role = replica; SET lock_timeout = '2s'; SET statement_timeout = '20s';
    SET search_path = pg_catalog; SET default_tablespace = ''; SET client_min_messages = error;
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

impl Cluster {
    #[track_caller]
    pub fn verify(&self, database: &str) {
        match self.try_client(database, "postgres").and_then(|mut client| faults_in(&mut client)) {
            Ok(faults) => assert!(faults.is_empty(), "amcheck in {database}: {faults:#?}"),
            Err(error) => panic!("{database} could not be verified: {}", explain(&error)),
        }
    }

    pub(crate) fn faults_of_tables(&self) -> Vec<String> {
        if !self.is_running() {
            return Vec::new();
        }
        let databases = match self.databases() {
            Ok(databases) => databases,
            Err(error) => {
                eprintln!("awty-testkit: no database was verified: {}", explain(&error));
                return Vec::new();
            }
        };
        let mut faults = Vec::new();
        for database in databases {
            match self.try_client(&database, "postgres").and_then(|mut client| faults_in(&mut client)) {
                Ok(found) => faults.extend(found.into_iter().map(|fault| format!("{database}: {fault}"))),
                Err(error) if is_inaccessible(&error) => {
                    eprintln!("awty-testkit: {database} was not verified: {}", explain(&error));
                }
                Err(error) => faults.push(format!("{database} could not be verified: {}", explain(&error))),
            }
        }
        faults
    }

    /// Returns the databases that amcheck can check. A standby has none, because amcheck cannot be installed on a
    /// standby.
    fn databases(&self) -> Result<Vec<String>, postgres::Error> {
        // Connects to a second database if the first fails, because a test may have dropped the database `postgres`.
        let mut client =
            self.try_client("postgres", "postgres").or_else(|_| self.try_client("template1", "postgres"))?;
        let sql = "SELECT datname::text FROM pg_database WHERE datallowconn AND NOT pg_is_in_recovery() ORDER BY oid";
        Ok(client.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
    }
}

fn faults_in(client: &mut Client) -> Result<Vec<String>, postgres::Error> {
    let present = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname IN ('awty', 'awty_internal'))";
    if !client.query_one(present, &[])?.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    client.batch_execute(PREPARE)?;
    let installed = "SELECT quote_ident(nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = extnamespace
                     WHERE extname = 'amcheck'";
    let schema = match client.query_opt(installed, &[])? {
        Some(row) => row.get(0),
        None if client.query("SELECT FROM pg_available_extensions WHERE name = 'amcheck'", &[])?.is_empty() => {
            eprintln!("awty-testkit: nothing was verified, because this server has no amcheck");
            return Ok(Vec::new());
        }
        None => {
            client.batch_execute("CREATE SCHEMA awty_verify; CREATE EXTENSION amcheck SCHEMA awty_verify")?;
            "awty_verify".to_owned()
        }
    };
    client.batch_execute(TABLES)?;
    // A table without a size was dropped meanwhile. OFFSET makes PostgreSQL look at each size just before the check.
    let heaps = format!(
        "SELECT format('%s, block %s, row %s: %s', v.oid::regclass, blkno, offnum, msg)
         FROM (SELECT oid FROM awty_verified WHERE pg_relation_size(oid) IS NOT NULL OFFSET 0) AS v CROSS JOIN LATERAL {schema}.verify_heapam(v.oid, check_toast => true)"
    );
    // Finds at most one fault per index, because amcheck stops at the first damage in an index.
    let indexes = format!(
        "SELECT count({schema}.bt_index_check(i.indexrelid, true)) FROM awty_verified AS v
         JOIN pg_index AS i ON i.indrelid = v.oid JOIN pg_class AS c ON c.oid = i.indexrelid
         WHERE i.indisvalid AND i.indisready AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')"
    );
    let mut faults = Vec::new();
    for sql in [heaps, indexes] {
        client.batch_execute("SAVEPOINT one")?;
        match client.simple_query(&sql) {
            Ok(messages) if sql.contains("verify_heapam") => faults.extend(messages.iter().filter_map(text)),
            Ok(_) => {}
            Err(error) if is_corruption(&error) => faults.push(explain(&error)),
            Err(error) => return Err(error),
        }
        client.batch_execute("ROLLBACK TO one")?;
    }
    client.batch_execute("ROLLBACK")?;
    Ok(faults)
}

fn text(message: &postgres::SimpleQueryMessage) -> Option<String> {
    match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }
}

/// Returns whether the test itself may have caused the error, for example by locks or a full disk.
fn is_inaccessible(error: &postgres::Error) -> bool {
    let classes = ["08", "28", "53", "57", "58"];
    error.code().is_none_or(|code| {
        classes.iter().any(|class| code.code().starts_with(class)) || ["55P03", "42501", "3D000"].contains(&code.code())
    })
}

fn is_corruption(error: &postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED))
}
