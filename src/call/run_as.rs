use crate::error::{Error, Result};
use crate::pg::catalog;
use crate::store::job;
use pgrx::pg_sys;

/// Limits the number of a role's jobs, because each inspection and each worker of the role reads all jobs of the role.
const MAX_JOBS: i64 = 10_000;

pub fn check_quota(role: pg_sys::Oid) -> Result<()> {
    if job::count(role, MAX_JOBS) < MAX_JOBS {
        return Ok(());
    }
    Err(Error::TooManyJobs { role: catalog::role_label(role), max: MAX_JOBS })
}

pub fn run_as(role: Option<pg_sys::Oid>, connects: bool) -> Result<pg_sys::Oid> {
    let caller = catalog::current_role();
    let role = role.unwrap_or(caller);
    let label = || catalog::role_label(role);
    if !catalog::can_become(caller, role) {
        let privileged = catalog::is_privileged(role);
        return Err(Error::NotMember { role: label(), caller: catalog::role_label(caller), privileged });
    }
    if !connects {
        return Ok(role);
    }
    catalog::can_connect(catalog::database(), role).map_err(|why| match why {
        catalog::CannotConnect::Gone => Error::UnknownRole { role: label() },
        catalog::CannotConnect::NoLogin => {
            let caller = (caller != role && catalog::can_connect(catalog::database(), caller).is_ok())
                .then(|| catalog::role_label(caller));
            Error::NoLogin { role: label(), caller }
        }
        catalog::CannotConnect::NoConnect | catalog::CannotConnect::NoDatabase => {
            Error::NoConnect { role: label(), database: catalog::database_name() }
        }
    })?;
    Ok(role)
}
