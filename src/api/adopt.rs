use crate::call::args::Args;
use crate::call::rights;
use crate::error::{self, Error, Result};
use crate::pg::{catalog, clock};
use crate::quiet;
use crate::rule::statements::{rule, rule_function};
use crate::shmem::wakeup;
use crate::store::origin;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn adopt(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<(), ErrorReport> {
    let _ = Args::new(fcinfo);
    Ok(adopt_database()?)
}

fn adopt_database() -> Result<()> {
    rights::gate("awty.adopt()")?;
    if !catalog::owns_database(catalog::current_role()) {
        return Err(Error::NotDatabaseOwner { database: catalog::database_name() });
    }
    if !origin::adopt() {
        error::log::notice(format!("database \"{}\" already runs its own checks", catalog::database_name()));
    }
    quiet::end_passed(quiet::ALL, clock::now());
    rule::sweep_all();
    rule_function::forget_oids();
    wakeup::inspect_at_commit(true);
    Ok(())
}
