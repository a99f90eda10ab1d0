use crate::error::Result;
use crate::function;
use crate::pg::relations;
use crate::pg::text::Text;
use crate::rule::Watched;
use crate::rule::statements::rule_objects;
use crate::store::check_row;
use pgrx::pg_sys;

pub fn with_alerts(
    watched: &Watched,
    (schema, name): &(Text, Text),
    alerts: impl ExactSizeIterator<Item = pg_sys::Datum>,
) -> Result<()> {
    let function = function::of_alerts(schema, name, watched.rule.terms.role, watched.rule.watched_by)?;
    let rows = check_row::array(alerts, relations::alert_type());
    rule_objects::call_with(function, rows, relations::alert_array_type());
    Ok(())
}
