//! Passes the caller's OID to SECURITY DEFINER functions, because their `current_user` is the function's owner.
//! [`awty_with_caller`] calls the function with the suffix `_as`, and adds the OID as first argument.
//!
//! Invariant: only the owner may execute an `_as` function, and each `_as` function checks the caller's rights.

use super::{text, unbound};
use pgrx::{pg_guard, pg_sys};

const PLAIN: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };

#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_awty_with_caller() -> &'static pg_sys::Pg_finfo_record {
    &PLAIN
}

/// # Safety
///
/// Only PostgreSQL may call this function. An ERROR in the called function jumps over this frame, so the frame must not
/// hold values with a destructor.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn awty_with_caller(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `fcinfo` has `nargs` arguments, and `frame` has room for one more.
    unsafe {
        if (*(*fcinfo).flinfo).fn_extra.is_null() {
            find(fcinfo);
        }
        let called = (*(*fcinfo).flinfo).fn_extra.cast::<pg_sys::FmgrInfo>();
        let count = usize::from((*fcinfo).nargs.unsigned_abs());
        let size = size_of::<pg_sys::FunctionCallInfoBaseData>() + (count + 1) * size_of::<pg_sys::NullableDatum>();
        let frame = pg_sys::palloc0(size).cast::<pg_sys::FunctionCallInfoBaseData>();
        (*frame).flinfo = called;
        (*frame).fncollation = (*fcinfo).fncollation;
        (*frame).resultinfo = (*fcinfo).resultinfo;
        (*frame).nargs = (*fcinfo).nargs + 1;
        let (from, to) = ((*fcinfo).args.as_ptr(), (*frame).args.as_mut_ptr());
        (*to).value = pg_sys::Datum::from(pg_sys::GetUserId());
        std::ptr::copy_nonoverlapping(from, to.add(1), count);
        let Some(address) = (*called).fn_addr else { return pg_sys::Datum::null() };
        let result = unbound::call(address, frame);
        (*fcinfo).isnull = (*frame).isnull;
        result
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn find(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the `flinfo` of PostgreSQL's call frame is valid during the call.
    let info = unsafe { &mut *(*fcinfo).flinfo };
    let Some(called) = belonging_to(info.fn_oid) else {
        pgrx::error!("the function that belongs to function {} does not exist", info.fn_oid.to_u32());
    };
    // SAFETY: `found` is allocated in the memory context of `info`, so both live equally long.
    unsafe {
        let found = pg_sys::MemoryContextAllocZero(info.fn_mcxt, size_of::<pg_sys::FmgrInfo>()).cast();
        let previous = pg_sys::MemoryContextSwitchTo(info.fn_mcxt);
        pg_sys::fmgr_info(called, found);
        pg_sys::MemoryContextSwitchTo(previous);
        info.fn_extra = found.cast();
    }
}

fn belonging_to(function: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let caller = super::procedure::by_oid(function)?;
    let schema = if caller.schema.ends_with("_internal") {
        caller.schema.clone()
    } else {
        format!("{}_internal", caller.schema)
    };
    let schema = text::server(&schema);
    // SAFETY: a transaction is open, and the name is a C string.
    let schema = unsafe { pg_sys::get_namespace_oid(schema.as_ptr(), true) };
    let args: Vec<pg_sys::Oid> = std::iter::once(pg_sys::OIDOID).chain(caller.args).collect();
    super::procedure::by_signature(&format!("{}_as", caller.name), &args, schema)
        .filter(|called| called.owner == caller.owner)
        .map(|called| called.oid)
}
