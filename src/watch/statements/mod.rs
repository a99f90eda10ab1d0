pub mod alert;
mod dynamic_sql;
pub mod raised;
pub mod rule;
pub mod rule_check;
pub mod rule_function;
pub mod rule_objects;
pub mod stop;
pub mod watched;
