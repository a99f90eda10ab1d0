//! `awty.cancel()` with the name of a rule silences a watched row, so that awty raises no alert for the row.
//!
//! A silenced row's check stays pending and held, so that the row gets no new check. The silence ends when an UPDATE
//! changes the row's key or `since`, or when the row begins or ceases to meet the rule.

use super::statements::rule_check::{self, ScheduledBy};
use crate::call::own_checks::{is_own, is_rules};
use crate::pg::reraise::reported;
use crate::pg::text::Text;
use crate::pg::{catalog, clock};
use crate::rule::Watched;
use crate::rule::statements::watched::WatchedRow;
use crate::store::hold;
use crate::store::job::Job;
use awty_core::Time;
use awty_core::watch::{self, Alert, Stops};

pub fn applies(job: &Job, entity_name: &Text) -> bool {
    !is_own(entity_name.as_bytes()) && is_rules(job) && Watched::find(&job.name).is_ok()
}

pub fn rows(job: &Job, entity_name: &Text, keys: &[Text]) -> i64 {
    let Ok(watched) = Watched::find(&job.name) else { return 0 };
    if watched.rule.entity_name != *entity_name {
        return 0;
    }
    let (role, now) = (catalog::current_role(), clock::now());
    // Reads rows for the table's owner only. The module `hold` says why.
    if watched.rule.walk.adds_rows() && watched.source.table.owner == role {
        add_unwalked(&watched, keys, ScheduledBy { role, at: now });
    }
    let mut ids = rule_check::lock(&watched.rule, keys);
    let silenced = hold::silenced(&ids);
    ids.retain(|id| !silenced.contains(id));
    let count = ids.len() as i64;
    if count > 0 {
        hold::apply(ids.clone());
        hold::silence(ids, role, now, &watched.rule.name);
    }
    count
}

fn add_unwalked(watched: &Watched, keys: &[Text], by: ScheduledBy) {
    let seen = reported(|| watched.source.by_exact_keys(keys));
    let limits = &watched.job.options.limits;
    let start = |row: &WatchedRow| -> Option<Time> {
        watch::start(row.state.found(by.at, Stops::never()), Alert::NONE, &watched.levels, limits, by.at)
    };
    let (keys, slots): (Vec<Text>, Vec<Time>) =
        seen.into_iter().filter_map(|(_, row)| start(&row).map(|slot| (row.key, slot))).unzip();
    if !keys.is_empty() {
        rule_check::keep(&watched.rule, &keys, &slots, by);
    }
}
