pub mod alert;
pub mod cleared_alert;
pub mod raised;
pub mod rule_check;
pub mod stop;
