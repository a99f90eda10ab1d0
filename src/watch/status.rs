//! Functions that awty's views call. They write nothing, and also work on a standby and without the preloaded library.

use super::statements::{alert, stop};
use crate::call::args::{Args, calls};
use crate::call::argument_limits::{MAX_ENTITY_KEY, MAX_JOB};
use crate::error::Result;
use crate::pg::table;
use crate::pg::text::Text;
use crate::rule::statements::{rule, rule_trigger};
use crate::rule::{fault, functions};
use crate::store::from_timestamptz;
use awty_core::Time;
use awty_core::watch::Stops;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

calls! {
    fn cannot_watch -> Option<Vec<Text>> = rule_trouble;
    fn next_level_at -> Option<TimestampWithTimeZone> = next_level;
}

fn rule_trouble(args: &Args) -> Result<Option<Vec<Text>>> {
    let Some(rule) = rule::find(&args.name(0, "rule", MAX_JOB)?) else { return Ok(None) };
    let Some(table) = table::describe(rule.relation) else { return Ok(None) };
    Ok(functions::fault(&rule, &table).map(|fault| {
        let (why, fix) = fault::words(&rule, &table, &fault);
        [why, fix].map(|text| Text::of_utf8(&text)).into()
    }))
}

#[pg_extern(sql = false)]
fn is_rule(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<bool, ErrorReport> {
    Ok(rule::find(&Args::new(fcinfo).name(0, "rule", MAX_JOB)?).is_some())
}

fn next_level(args: &Args) -> Result<Option<TimestampWithTimeZone>> {
    let Some(rule) = rule::find(&args.name(0, "rule", MAX_JOB)?) else { return Ok(None) };
    let (Some(level), Some(start)) = (args.get::<i32>(1), args.get::<TimestampWithTimeZone>(2)) else {
        return Ok(None);
    };
    let level = level.unsigned_abs().saturating_add(1);
    let key = args.text(3, "key", MAX_ENTITY_KEY)?;
    let known = key.filter(|_| rule.terms.stopped.is_some()).and_then(|key| stop::read(&rule.name, &[key]).pop());
    let clock = known.and_then(|known| known.clock);
    let stops = clock.as_ref().map_or(Stops::never(), |clock| &clock.stops);
    let next = rule.terms.levels().ok().and_then(|levels| {
        let time = levels.time(level, from_timestamptz(start))?;
        Some(levels.moved(time, stops, Time::MIN_UTC))
    });
    Ok(next.filter(|next| *next != Time::MAX_UTC).and_then(alert::moment))
}

#[pg_extern(sql = false)]
fn is_trigger_of(fcinfo: pg_sys::FunctionCallInfo) -> std::result::Result<bool, ErrorReport> {
    let args = Args::new(fcinfo);
    let (rule, trigger) = (args.name(0, "rule", MAX_JOB)?, args.text(1, "trigger", MAX_JOB)?);
    Ok(trigger.is_some_and(|trigger| rule_trigger::is_trigger_name(&rule, &trigger)))
}
