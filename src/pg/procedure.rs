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

/// Reads pg_proc itself, because PostgreSQL's cache would keep the bodies of all functions that were looked up.
pub fn by_oid(oid: pg_sys::Oid) -> Option<Procedure> {
    // SAFETY: a transaction is open, and `tuple` is read before the end of the scan.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let procedures = pg_sys::table_open(pg_sys::ProcedureRelationId, lock);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::F_OIDEQ.into(),
            pg_sys::Datum::from(oid),
        );
        let index = pg_sys::ProcedureOidIndexId.into();
        let scan = pg_sys::systable_beginscan(procedures, index, true, std::ptr::null_mut(), 1, &mut key);
        let tuple = pg_sys::systable_getnext(scan);
        let found = (!tuple.is_null()).then(|| Procedure::read(tuple));
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(procedures, lock);
        found
    }
}

pub fn by_name(name: &str) -> Vec<Procedure> {
    let wanted = text::server(name);
    // SAFETY: `list` is read before its release.
    unsafe {
        let list = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            1,
            pg_sys::Datum::from(wanted.as_ptr()),
            pg_sys::Datum::from(0),
            pg_sys::Datum::from(0),
        );
        let found = (0..(*list).n_members as usize)
            .map(|place| {
                let member = *(*list).members.as_ptr().add(place);
                Procedure::read(std::ptr::addr_of_mut!((*member).tuple))
            })
            .collect();
        pg_sys::ReleaseCatCacheList(list);
        found
    }
}
