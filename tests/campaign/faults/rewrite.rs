//! Rewrites awty's tables with statements such as VACUUM FULL, which an administrator may execute at any time.

use super::bulk::{Bulk, Kind};
use crate::integrity;
use crate::left::{CHECK_STAT, IN_FLIGHT};
use crate::load::{DATABASES, Shared, explain};
use crate::random::Random;
use awty_testkit::postgres::error::SqlState;
use awty_testkit::postgres::{Client, Error};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rewrite {
    VacuumFull,
    Cluster,
    Truncate,
    Tablespace,
    Fillfactor,
    Columns,
    Reindex,
}

const WHILE: Duration = Duration::from_millis(400);

const TRIES: usize = 5;

struct Table {
    name: String,
    index: [String; 2],
    options: Option<String>,
}

pub fn strike(how: Rewrite, shared: &Shared, random: &mut Random) -> bool {
    let database = *random.pick(&DATABASES);
    let kind = match random.below(100) {
        _ if how == Rewrite::Columns => Kind::FutureJob,
        0..65 => Kind::FutureJob,
        65..80 => Kind::History,
        80..90 => Kind::CheckStat,
        _ => Kind::InFlight,
    };
    let mut struck = false;
    if let Err(error) = rewrite(how, database, kind, shared, random, &mut struck) {
        println!("         {how:?} of {kind:?} in {database}: {}", explain(error));
    }
    integrity::verify(shared, database).into_iter().for_each(|what| shared.saw("integrity", what));
    struck
}

fn rewrite(
    how: Rewrite,
    database: &'static str,
    kind: Kind,
    shared: &Shared,
    random: &mut Random,
    struck: &mut bool,
) -> Result<(), Error> {
    let mut bulk = Bulk::new(shared, database, kind, random)?;
    if random.per_mille(700) {
        bulk.read_other()?;
    }
    if how == Rewrite::Tablespace {
        make_tablespace(&mut bulk.admin)?;
    }
    bulk.come_and_go()?;
    let table = Table::find(&mut bulk.admin, kind)?;
    for statement in table.statements(how, random) {
        execute(&mut bulk.admin, &statement, shared)?;
        std::thread::park_timeout(WHILE);
    }
    *struck = true;
    if random.per_mille(500) {
        bulk.read_other()?;
    }
    bulk.come_again()?;
    bulk.admin.batch_execute(&format!("SELECT count(*) FROM {}", table.name))?;
    bulk.admin.batch_execute(&format!("VACUUM {}", table.name))?;
    bulk.go()
}

/// awty must lock its tables in an order that causes no deadlock with an administrator's statement.
fn execute(admin: &mut Client, statement: &str, shared: &Shared) -> Result<(), Error> {
    for _ in 0..TRIES {
        match admin.batch_execute(statement) {
            Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                shared.saw("P10", format!("{statement} met a deadlock"));
            }
            other => return other,
        }
    }
    Ok(())
}

/// The tablespace is in the data directory, so that its path differs between a primary and its standbys.
fn make_tablespace(admin: &mut Client) -> Result<(), Error> {
    if admin.query_opt("SELECT FROM pg_tablespace WHERE spcname = 'elsewhere'", &[])?.is_none() {
        admin.batch_execute("SET allow_in_place_tablespaces = on")?;
        admin.batch_execute("CREATE TABLESPACE elsewhere LOCATION ''")?;
    }
    Ok(())
}

impl Table {
    fn find(admin: &mut Client, kind: Kind) -> Result<Self, Error> {
        let name = match kind {
            Kind::FutureJob => "awty.future_job".into(),
            Kind::CheckStat => CHECK_STAT.into(),
            Kind::InFlight => IN_FLIGHT.into(),
            Kind::History => {
                let largest = "SELECT inhrelid::regclass::text FROM pg_inherits
                               WHERE inhparent = 'awty.future_job_history'::regclass
                               ORDER BY pg_relation_size(inhrelid) DESC LIMIT 1";
                admin.query_one(largest, &[])?.get::<_, String>(0)
            }
        };
        // Omits partial indexes, which CLUSTER does not accept.
        let sql = "SELECT i.relname::text, i.oid::regclass::text, array_to_string(t.reloptions, ', ')
                   FROM pg_class AS t JOIN pg_index ON indrelid = t.oid JOIN pg_class AS i ON i.oid = indexrelid
                   WHERE t.oid = $1::text::regclass AND indpred IS NULL AND indisvalid ORDER BY random() LIMIT 1";
        let row = admin.query_one(sql, &[&name])?;
        Ok(Self { name, index: [row.get(0), row.get(1)], options: row.get(2) })
    }

    fn statements(&self, how: Rewrite, random: &mut Random) -> Vec<String> {
        let Table { name, index: [index, qualified_index], options } = self;
        // Restores the table's original fillfactor, because RESET alone would lose the fillfactor of tables such as
        // `in_flight`.
        let options = options.iter().flat_map(|options| options.split(", "));
        let fillfactor = options.into_iter().find(|option| option.starts_with("fillfactor="));
        let set_back = fillfactor.map_or("RESET (fillfactor)".into(), |option| format!("SET ({option})"));
        match how {
            Rewrite::VacuumFull => vec![format!("VACUUM FULL {name}")],
            Rewrite::Cluster => {
                vec![format!("CLUSTER {name} USING {index}"), format!("ALTER TABLE {name} SET WITHOUT CLUSTER")]
            }
            Rewrite::Truncate => vec![format!("VACUUM {name}")],
            Rewrite::Tablespace => ["elsewhere", "pg_default"]
                .iter()
                .flat_map(|place| {
                    [format!("TABLE {name}"), format!("INDEX {qualified_index}")]
                        .map(|what| format!("ALTER {what} SET TABLESPACE {place}"))
                })
                .collect(),
            Rewrite::Fillfactor => vec![
                format!("ALTER TABLE {name} SET (fillfactor = 20)"),
                format!("VACUUM FULL {name}"),
                format!("ALTER TABLE {name} {set_back}"),
            ],
            Rewrite::Columns => vec![
                format!("ALTER TABLE {name} ADD COLUMN note text{}", random.pick(&["", " DEFAULT 'none'"])),
                format!("ALTER TABLE {name} DROP COLUMN note"),
            ],
            Rewrite::Reindex => vec![format!("REINDEX TABLE {} {name}", random.pick(&["", "", "CONCURRENTLY"]))],
        }
    }
}
