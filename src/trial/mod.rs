mod dry_run;
mod statements;
mod travel;
