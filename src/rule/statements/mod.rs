pub mod by_oid;
pub mod distributed;
mod dynamic_sql;
mod names;
pub mod rule;
pub mod rule_function;
pub mod rule_objects;
pub mod rule_trigger;
pub mod watched;
