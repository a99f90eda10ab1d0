use super::column::Column;
use super::scalar;
use super::table::{name_of_schema, quoted};
use super::text::{Text, utf8};
use pgrx::pg_sys;

#[derive(Clone, Debug)]
pub struct KeyColumn {
    pub column: Column,
    equals: pg_sys::Oid,
}

impl KeyColumn {
    /// Returns the column's type, or the base type of a domain, because a cast to a domain runs its CHECK.
    pub fn cast_to(&self) -> pg_sys::Oid {
        // SAFETY: a transaction is open.
        unsafe { pg_sys::getBaseType(self.column.kind) }
    }

    /// Returns the partition's column of the same name. Its number may differ.
    pub fn of_partition(&self, partition: pg_sys::Oid) -> Option<Self> {
        Some(Self { column: Column::by_name(partition, &self.column.text())?, equals: self.equals })
    }

    pub fn equals(&self) -> String {
        operator(self.equals)
    }
}

/// Returns `None` if the table has no primary key with a B-tree index.
pub fn columns_of(oid: pg_sys::Oid) -> Option<Vec<KeyColumn>> {
    const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: a transaction is open, and the caller has locked the table.
    unsafe {
        let table = pg_sys::try_relation_open(oid, MODE);
        if table.is_null() {
            return None;
        }
        let key = primary_index(table);
        let columns = key.map(|key| {
            let index = pg_sys::index_open(key, MODE);
            let is_btree = (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID;
            let columns = is_btree.then(|| columns(table, index));
            pg_sys::index_close(index, MODE);
            columns
        });
        pg_sys::relation_close(table, MODE);
        columns.flatten()
    }
}

/// Also finds a deferrable primary key, whose index PostgreSQL does not report as primary.
unsafe fn primary_index(table: pg_sys::Relation) -> Option<pg_sys::Oid> {
    // SAFETY: `table` is open, and each tuple is read before its release.
    unsafe {
        let list = pg_sys::RelationGetIndexList(table);
        if list.is_null() {
            return None;
        }
        (0..(*list).length as usize).map(|place| (*(*list).elements.add(place)).oid_value).find(|index| {
            let tuple =
                pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::INDEXRELID as i32, pg_sys::Datum::from(*index));
            if tuple.is_null() {
                return false;
            }
            let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
            let is_primary = form.indisprimary && form.indisvalid;
            pg_sys::ReleaseSysCache(tuple);
            is_primary
        })
    }
}

unsafe fn columns(table: pg_sys::Relation, index: pg_sys::Relation) -> Vec<KeyColumn> {
    // SAFETY: `index` is open, and each key column has an operator family and a type.
    unsafe {
        let form = &*(*index).rd_index;
        let numbers = form.indkey.values.as_slice(form.indnatts as usize);
        (0..form.indnkeyatts as usize)
            .filter_map(|place| {
                let column = Column::by_number((*table).rd_id, numbers[place])?;
                let (family, input) = (*(*index).rd_opfamily.add(place), *(*index).rd_opcintype.add(place));
                let equals = pg_sys::get_opfamily_member(family, input, input, pg_sys::BTEqualStrategyNumber as i16);
                Some(KeyColumn { column, equals })
            })
            .collect()
    }
}

fn operator(oid: pg_sys::Oid) -> String {
    // SAFETY: `tuple` is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::OPEROID as i32, pg_sys::Datum::from(oid));
        if tuple.is_null() {
            return "OPERATOR(pg_catalog.=)".into();
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_operator>();
        let name = utf8(row.oprname.data.as_ptr());
        let written = format!("OPERATOR({}.{name})", quoted(&name_of_schema(row.oprnamespace)));
        pg_sys::ReleaseSysCache(tuple);
        written
    }
}

pub fn key_text(columns: &[KeyColumn], values: &[pg_sys::Datum]) -> Text {
    let mut texts: Vec<Text> =
        columns.iter().zip(values).map(|(part, value)| scalar::text(*value, part.column.kind)).collect();
    if texts.len() == 1 { texts.remove(0) } else { scalar::json_array(&texts) }
}

/// Casts a key as a statement does. An error of a cast unwinds as in [`carried`].
///
/// [`carried`]: super::reraise::carried
pub fn cast_key(columns: &[KeyColumn], key: &Text) {
    for (place, column) in columns.iter().enumerate() {
        scalar::cast(key, (columns.len() > 1).then_some(place), column.cast_to());
    }
}
