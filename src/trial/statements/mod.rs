pub mod dry_run;
pub mod travel;
