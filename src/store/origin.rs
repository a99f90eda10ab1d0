//! Statements on `awty_internal.origin`: do the rows of this database come from another one?

use super::arg;
use super::statement::statement;
use crate::pg::catalog;
use crate::pg::owner::as_owner;

// Where there are jobs or checks and nothing says where they come from, a restore is going on: this table comes after theirs.
statement!(
    count_foreign,
    [OIDOID],
    c"SELECT pg_catalog.count(*) FILTER (WHERE CASE WHEN o.ctid IS NULL
                 THEN EXISTS (SELECT FROM awty.job) OR EXISTS (SELECT FROM awty.future_job)
                 ELSE o.identity IS DISTINCT FROM i.last_value OR o.database IS DISTINCT FROM $1 END)
      FROM awty_internal.identity AS i LEFT JOIN awty_internal.origin AS o ON true"
);

statement!(delete_all, [], c"DELETE FROM awty_internal.origin");

statement!(
    insert_own,
    [OIDOID],
    c"INSERT INTO awty_internal.origin (identity, database) SELECT i.last_value, $1 FROM awty_internal.identity AS i
      ON CONFLICT (identity) DO UPDATE SET database = excluded.database"
);

// Writes nothing where something has been said: two sessions that register do not wait for each other.
statement!(
    claim_own,
    [OIDOID],
    c"INSERT INTO awty_internal.origin (identity, database) SELECT i.last_value, $1 FROM awty_internal.identity AS i
      WHERE NOT EXISTS (SELECT FROM awty_internal.origin) ON CONFLICT (identity) DO NOTHING"
);

// Logical replication copies rows and no sequences. Checks, alerts and repetitions have their numbers from one sequence.
statement!(
    pass_used_ids,
    [],
    c"SELECT pg_catalog.setval('awty.future_job_id_seq', u.id)
      FROM awty.future_job_id_seq AS s,
           (SELECT greatest((SELECT pg_catalog.max(id) FROM awty.future_job), (SELECT pg_catalog.max(id) FROM awty.future_job_history),
                            (SELECT pg_catalog.max(id) FROM awty.alert), (SELECT pg_catalog.max(id) FROM awty_internal.repetition)) AS id) AS u
      WHERE u.id >= s.last_value"
);

statement!(select_identity, [], c"SELECT i.last_value FROM awty_internal.identity AS i");

/// The number of this installation, which a dump does not carry.
pub fn identity() -> i64 {
    as_owner(|| select_identity(|s| s.query_latest(&[], |rows| rows.first(1)))).unwrap_or(0)
}

/// Are there rows of another database, so that nothing may run before `awty.adopt()`?
pub fn is_foreign() -> bool {
    as_owner(|| count_foreign(|s| s.query(&[arg(catalog::database())], |rows| rows.first::<i64>(1)))).unwrap_or(0) > 0
}

/// Says that the rows are this database's own. New checks get numbers that no row has.
pub fn adopt() {
    as_owner(|| {
        pass_used_ids(|s| s.execute(&[]));
        delete_all(|s| s.execute(&[]));
        insert_own(|s| s.execute(&[arg(catalog::database())]));
    });
}

/// Says so where nothing has been said yet: called before anything is registered.
pub fn claim_if_new() {
    if !is_foreign() {
        as_owner(|| claim_own(|s| s.execute(&[arg(catalog::database())])));
    }
}
