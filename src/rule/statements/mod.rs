mod by_oid;
pub mod distributed;
mod dynamic_sql;
pub mod rule;
pub mod rule_function;
pub mod rule_objects;
pub mod watched;
