//! Makes a transaction commit in two phases if the transaction used other nodes of a Citus cluster.
//!
//! From PostgreSQL 16 on, libraries hide their functions, so awty finds those of Citus only if Citus is built with
//! `CFLAGS_SL_MODULE=` (docs/citus.md).

use crate::pg::claim_lock::flush_at_commit;
use pgrx::pg_sys;
use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::sync::OnceLock;

struct Citus {
    in_coordinated_transaction: unsafe extern "C" fn() -> bool,
    use_two_phases: unsafe extern "C" fn(),
}

static CITUS: OnceLock<Option<Citus>> = OnceLock::new();

/// Makes Citus commit in two phases. With one phase, a crash could leave a run committed only on another node, and awty
/// would repeat the run.
///
/// Also flushes the local commit record, because Citus commits the other nodes after this record.
pub fn before_commit() {
    let Some(citus) = CITUS.get_or_init(find) else { return };
    // SAFETY: both functions only read or set a variable of Citus, and raise no ERROR.
    unsafe {
        if (citus.in_coordinated_transaction)() {
            (citus.use_two_phases)();
            flush_at_commit();
        }
    }
}

pub fn is_created() -> bool {
    // SAFETY: a transaction is open, and the name is a C string.
    unsafe {
        pg_sys::get_relname_relid(c"pg_dist_partition".as_ptr(), pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE))
            != pg_sys::InvalidOid
    }
}

fn find() -> Option<Citus> {
    // SAFETY: PostgreSQL sets the variable before it loads libraries, and never changes it.
    let preloaded = unsafe { pg_sys::shared_preload_libraries_string.as_ref().map(|text| CStr::from_ptr(text)) }?;
    let library = preloaded.to_str().ok()?.split(',').map(|name| name.trim().trim_matches('"'));
    let library = library.into_iter().find(|name| Path::new(name).file_stem().is_some_and(|stem| stem == "citus"))?;
    let library = CString::new(library).ok()?;
    let found = [c"InCoordinatedTransaction", c"Use2PCForCoordinatedTransaction"].map(|name| {
        // SAFETY: both names are C strings, and a missing function gives NULL.
        unsafe { pg_sys::load_external_function(library.as_ptr(), name.as_ptr(), false, std::ptr::null_mut()) }
    });
    if found.iter().any(|function| function.is_null()) {
        pgrx::warning!(
            "awty: Citus hides its functions for two-phase commits, so a crash may repeat a run on another node; build Citus with CFLAGS_SL_MODULE="
        );
        return None;
    }
    let [asks, orders] = found;
    // SAFETY: transaction_management.h of Citus declares both functions with these types.
    Some(unsafe {
        Citus {
            in_coordinated_transaction: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> bool>(asks),
            use_two_phases: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(orders),
        }
    })
}
