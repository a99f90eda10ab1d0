use super::typed::statement;
use crate::settings;

statement! {
    fn is_any_recent() -> bool = query,
    c"SELECT 1 FROM pg_catalog.pg_prepared_xacts AS p
      WHERE p.database = pg_catalog.current_database() AND p.prepared > pg_catalog.clock_timestamp() - '1 minute'::pg_catalog.interval LIMIT 1"
}

/// Returns whether a transaction was prepared in the last minute. If so, workers search again, because this
/// transaction's checks become visible only at COMMIT PREPARED.
pub fn any_young() -> bool {
    settings::max_prepared_transactions() > 0 && is_any_recent()
}
