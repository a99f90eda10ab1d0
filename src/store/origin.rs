//! Statements on `awty.origin`: do the rows of this database come from another one?

use super::arg;
use super::statement::statement;
use crate::catalog;
use crate::owner::bracket;
use crate::text::Text;

// Where jobs or checks are and nothing says whence, a restore is going on: this table comes after theirs.
statement!(
    count_foreign,
    [OIDOID],
    c"SELECT pg_catalog.count(*) FILTER (WHERE CASE WHEN o.ctid IS NULL
                 THEN EXISTS (SELECT FROM awty.job) OR EXISTS (SELECT FROM awty.future_job)
                 ELSE o.identity IS DISTINCT FROM i.last_value OR o.database IS DISTINCT FROM $1 END)
      FROM awty.identity AS i LEFT JOIN awty.origin AS o ON true"
);

statement!(delete_all, [], c"DELETE FROM awty.origin");

statement!(
    insert_own,
    [OIDOID],
    c"INSERT INTO awty.origin (identity, database) SELECT i.last_value, $1 FROM awty.identity AS i
      ON CONFLICT (identity) DO UPDATE SET database = excluded.database"
);

// Writes nothing where something has been said: two sessions that register do not wait for each other.
statement!(
    claim_own,
    [OIDOID],
    c"INSERT INTO awty.origin (identity, database) SELECT i.last_value, $1 FROM awty.identity AS i
      WHERE NOT EXISTS (SELECT FROM awty.origin) ON CONFLICT (identity) DO NOTHING"
);

statement!(select_version, [], c"SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'awty'");

/// The version of awty's SQL objects in this database.
pub fn installed_version() -> Option<String> {
    bracket(|| select_version(|s| s.query(&[], |rows| rows.first::<Text>(1)))).map(|version| version.to_string())
}

/// Is it the library's?
pub fn is_library_version() -> bool {
    installed_version().as_deref() == Some(env!("CARGO_PKG_VERSION"))
}

/// Are there rows of another database, so that nothing may run before `awty.adopt()`?
pub fn is_foreign() -> bool {
    bracket(|| count_foreign(|s| s.query(&[arg(catalog::database())], |rows| rows.first::<i64>(1)))).unwrap_or(0) > 0
}

/// Says that the rows are this database's own.
pub fn adopt() {
    bracket(|| {
        delete_all(|s| s.execute(&[]));
        insert_own(|s| s.execute(&[arg(catalog::database())]));
    });
}

/// Says so where nothing has been said yet: called before anything is registered.
pub fn claim_if_new() {
    if !is_foreign() {
        bracket(|| claim_own(|s| s.execute(&[arg(catalog::database())])));
    }
}
