use super::arrays;
use super::heartbeat::live;
use super::statements::lease;
use crate::call::args::{Args, calls};
use crate::call::rights;
use crate::error::Result;
use crate::pg::clock;

calls! {
    fn requeue -> i64 = give_back;
}

fn give_back(args: &Args) -> Result<i64> {
    rights::gate_lease("awty.requeue()")?;
    let numbers: Vec<i64> = arrays::leases(args)?.into_iter().flatten().collect();
    let mut live: Vec<i64> = live(&numbers, clock::now()).into_iter().map(|(given, _)| given.number).collect();
    live.sort_unstable();
    Ok(if live.is_empty() { 0 } else { lease::requeue(&live).len() as i64 })
}
