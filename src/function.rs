//! Finds a job's function again before each use, because the function, its owner and its rights may change at any time.

use crate::error::{Error, Result, WatchError};
use crate::pg::text::Text;
use crate::pg::{catalog, changes, relations, table};
pub use crate::signature::Signature;
use crate::store::function as store;
use crate::store::job::Job;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub oid: pg_sys::Oid,
    pub takes: Signature,
    /// Whether the function returns the time of the next run.
    pub answers: bool,
}

pub fn parse(name: &Text, arguments: &[pg_sys::Oid]) -> Result<(Text, Text)> {
    let unreadable = || Error::FunctionName { function: name.to_string() };
    let parts = split(name).filter(|parts| parts.iter().all(|part| part.len() > 0)).ok_or_else(unreadable)?;
    // Refuses a parenthesis, because it would start the function's arguments.
    if name.as_bytes().contains(&b'(') && !name.as_bytes().contains(&b'"') {
        return Err(unreadable());
    }
    match parts.as_slice() {
        [schema, function] => Ok((schema.clone(), function.clone())),
        [function] => {
            let role = catalog::current_role();
            search_path()
                .into_iter()
                .find(|schema| arguments.iter().any(|form| store::find(schema, function, *form, role).is_some()))
                .map(|schema| (schema, function.clone()))
                .ok_or_else(|| Error::FunctionMissing { function: quoted(function), set_based: false })
        }
        _ => Err(unreadable()),
    }
}

pub fn of_jobs() -> [pg_sys::Oid; 3] {
    [Signature::Check, Signature::Set, Signature::Nothing].map(argument)
}

fn argument(takes: Signature) -> pg_sys::Oid {
    match takes {
        Signature::Check => relations::row_type(),
        Signature::Set => relations::row_array_type(),
        Signature::Nothing => pg_sys::InvalidOid,
    }
}

fn split(name: &Text) -> Option<Vec<Text>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the list's elements point into `copy`, and the list and `copy` live until the end of the call.
    unsafe {
        let copy = pg_sys::pstrdup(catalog::c_name(name.as_bytes()).as_ptr());
        if !pg_sys::SplitIdentifierString(copy, b'.' as std::ffi::c_char, &mut list) {
            return None;
        }
        let length = if list.is_null() { 0 } else { (*list).length as usize };
        let part = |index| std::ffi::CStr::from_ptr((*(*list).elements.add(index)).ptr_value.cast()).into();
        Some((0..length).map(part).collect())
    }
}

pub fn quoted(name: &Text) -> String {
    table::quoted(&name.to_string())
}

fn search_path() -> Vec<Text> {
    let mut oids = [pg_sys::InvalidOid; 64];
    // SAFETY: PostgreSQL fills at most `oids.len()` elements.
    let length = unsafe { pg_sys::fetch_search_path_array(oids.as_mut_ptr(), oids.len() as i32) };
    store::schema_names(oids[..(length.max(0) as usize).min(oids.len())].to_vec())
}

pub fn check(job: &Job) -> Result<()> {
    if job.is_external() { Ok(()) } else { of_job(job).map(|_| ()) }
}

pub fn of_job(job: &Job) -> Result<Function> {
    thread_local! {
        static KNOWN: RefCell<HashMap<Key, (u64, Function)>> = RefCell::default();
    }
    let key = Key {
        schema: job.schema.clone(),
        name: job.function.clone(),
        role: job.role,
        registered_by: job.registered_by,
        set_based: job.set_based,
    };
    let epoch = changes::of_functions();
    if let Some((then, function)) = KNOWN.with_borrow(|known| known.get(&key).copied())
        && then == epoch
    {
        return Ok(function);
    }
    let function = resolve(&job.schema, &job.function, job.role, job.registered_by, Some(job.set_based))
        .map_err(|error| Error::OfJob { job: job.name.to_string(), error: Box::new(error) })?;
    KNOWN.with_borrow_mut(|known| known.insert(key, (epoch, function)));
    Ok(function)
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    schema: Text,
    name: Text,
    role: pg_sys::Oid,
    registered_by: pg_sys::Oid,
    set_based: bool,
}

/// Only a registration passes `None` as `set_based`, because a registered job stores whether its function takes many
/// checks at once.
pub fn resolve(
    schema: &Text,
    name: &Text,
    role: pg_sys::Oid,
    registered_by: pg_sys::Oid,
    set_based: Option<bool>,
) -> Result<Function> {
    let label = format!("{}.{}", quoted(schema), quoted(name));
    if schema.as_bytes().starts_with(b"pg_temp") {
        return Err(Error::TemporaryFunction { function: label });
    }
    let (takes, found) = find(schema, name, role, set_based, &label)?;
    if found.kind != b'f' {
        return Err(Error::NotAFunction { function: label });
    }
    let times = if takes == Signature::Set { pg_sys::TIMESTAMPTZARRAYOID } else { pg_sys::TIMESTAMPTZOID };
    if found.returns_set || (found.result != times && found.result != pg_sys::VOIDOID) {
        return Err(Error::WrongResult { function: label, takes });
    }
    // Only awty itself registers a job whose function is in the schema `awty_internal`.
    let is_own = set_based.is_some() && schema.as_bytes() == b"awty_internal";
    if !found.may_use_schema && !is_own {
        return Err(Error::NoUsage { schema: schema.to_string(), role: catalog::role_label(role) });
    }
    trusted(&found, &format!("{label}({})", takes.signature()), role, registered_by)?;
    Ok(Function { oid: found.oid, takes, answers: found.result != pg_sys::VOIDOID })
}

fn trusted(
    found: &store::CatalogFunction,
    signature: &str,
    role: pg_sys::Oid,
    registered_by: pg_sys::Oid,
) -> Result<()> {
    let signature = || signature.to_owned();
    if !found.owned_by_superuser && store::is_privileged(role) {
        return Err(Error::Untrusted { function: signature(), role: catalog::role_label(role) });
    }
    // Accepts a function of the registering role only while the registering role may SET ROLE to the job's role.
    let is_registrars = || found.owner == registered_by && catalog::can_become(registered_by, role);
    if !found.owned_by_superuser && !catalog::is_member(role, found.owner) && !is_registrars() {
        let owner = catalog::role_label(found.owner);
        return Err(Error::ForeignFunction { function: signature(), owner, role: catalog::role_label(role) });
    }
    if !found.may_execute {
        return Err(Error::NoExecute { function: signature(), role: catalog::role_label(role) });
    }
    Ok(())
}

pub fn of_alerts(schema: &Text, name: &Text, role: pg_sys::Oid, watched_by: pg_sys::Oid) -> Result<pg_sys::Oid> {
    let label = format!("{}.{}", quoted(schema), quoted(name));
    let found = store::find(schema, name, relations::alert_type(), role)
        .filter(|found| found.kind == b'f' && !found.returns_set && found.result == pg_sys::VOIDOID)
        .ok_or_else(|| WatchError::Call { function: label.clone() })?;
    if !found.may_use_schema {
        return Err(Error::NoUsage { schema: schema.to_string(), role: catalog::role_label(role) });
    }
    trusted(&found, &format!("{label}(awty.alert)"), role, watched_by)?;
    Ok(found.oid)
}

/// Finds a job's function by its name. If the name is ambiguous, a registration fails, but a later lookup prefers a
/// function with a parameter to one without.
fn find(
    schema: &Text,
    name: &Text,
    role: pg_sys::Oid,
    set_based: Option<bool>,
    label: &str,
) -> Result<(Signature, store::CatalogFunction)> {
    let forms: &[Signature] = match set_based {
        None => &[Signature::Check, Signature::Set, Signature::Nothing],
        Some(true) => &[Signature::Set],
        Some(false) => &[Signature::Check, Signature::Nothing],
    };
    let mut found = forms.iter().filter_map(|takes| Some((*takes, store::find(schema, name, argument(*takes), role)?)));
    let missing = || Error::FunctionMissing { function: label.to_owned(), set_based: set_based == Some(true) };
    let first = found.next().ok_or_else(missing)?;
    match found.next() {
        Some((second, _)) if set_based.is_none() => {
            Err(Error::Ambiguous { function: label.to_owned(), takes: [first.0, second] })
        }
        _ => Ok(first),
    }
}
