use super::table::{kind_name, name_of_schema, quoted};
use super::text::{self, type_name, utf8};
use pgrx::pg_sys;

#[derive(Clone, Debug)]
pub struct Procedure {
    pub oid: pg_sys::Oid,
    pub owner: pg_sys::Oid,
    pub namespace: pg_sys::Oid,
    pub schema: String,
    pub name: String,
    pub args: Vec<pg_sys::Oid>,
    pub result: pg_sys::Oid,
}

impl Procedure {
    pub fn qualified(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    pub fn signature(&self) -> String {
        let types: Vec<String> = self.args.iter().map(|kind| kind_name(*kind)).collect();
        format!("{}({})", self.qualified(), types.join(", "))
    }

    pub fn label(&self) -> String {
        let types: Vec<String> = self.args.iter().map(|kind| type_name(*kind)).collect();
        format!("{}({})", self.qualified(), types.join(", "))
    }

    unsafe fn read(tuple: pg_sys::HeapTuple) -> Self {
        // SAFETY: `tuple` is a row of pg_proc, whose fixed part ends with the argument types.
        unsafe {
            let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
            Self {
                oid: row.oid,
                owner: row.proowner,
                namespace: row.pronamespace,
                schema: name_of_schema(row.pronamespace),
                name: utf8(row.proname.data.as_ptr()),
                args: row.proargtypes.values.as_slice(usize::try_from(row.pronargs).unwrap_or(0)).to_vec(),
                result: row.prorettype,
            }
        }
    }
}

pub fn by_oid(oid: pg_sys::Oid) -> Option<Procedure> {
    let index = pg_sys::ProcedureOidIndexId.into();
    let column = pg_sys::Anum_pg_proc_oid;
    scan(index, column, pg_sys::F_OIDEQ, pg_sys::Datum::from(oid)).pop()
}

pub fn by_name(name: &str) -> Vec<Procedure> {
    let mut wanted = pg_sys::NameData::default();
    // SAFETY: `namestrcpy` cuts a text that is too long.
    unsafe { pg_sys::namestrcpy(&mut wanted, text::server(name).as_ptr()) };
    let index = pg_sys::ProcedureNameArgsNspIndexId.into();
    let column = pg_sys::Anum_pg_proc_proname;
    scan(index, column, pg_sys::F_NAMEEQ, pg_sys::Datum::from(&raw const wanted))
}

/// Looks up a function of awty's by PostgreSQL's cache. The other functions here do without the cache, which keeps the
/// bodies of all functions that were looked up.
pub fn by_signature(name: &str, args: &[pg_sys::Oid], namespace: pg_sys::Oid) -> Option<Procedure> {
    let wanted = text::server(name);
    // SAFETY: the keys outlive the search, and `tuple` is read before its release.
    unsafe {
        let types = pg_sys::buildoidvector(args.as_ptr(), args.len() as i32);
        let tuple = pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Datum::from(wanted.as_ptr()),
            pg_sys::Datum::from(types),
            pg_sys::Datum::from(namespace),
        );
        if tuple.is_null() {
            return None;
        }
        let found = Procedure::read(tuple);
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

fn scan(index: pg_sys::Oid, column: u32, equals: u32, wanted: pg_sys::Datum) -> Vec<Procedure> {
    // SAFETY: a transaction is open, `wanted` outlives the scan, and each tuple is read before the next.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let procedures = pg_sys::table_open(pg_sys::ProcedureRelationId, lock);
        let mut key = pg_sys::ScanKeyData::default();
        let strategy = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
        pg_sys::ScanKeyInit(&mut key, column as pg_sys::AttrNumber, strategy, equals.into(), wanted);
        let scan = pg_sys::systable_beginscan(procedures, index, true, std::ptr::null_mut(), 1, &mut key);
        let next = || {
            let tuple = pg_sys::systable_getnext(scan);
            (!tuple.is_null()).then(|| Procedure::read(tuple))
        };
        let found = std::iter::from_fn(next).collect();
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(procedures, lock);
        found
    }
}
