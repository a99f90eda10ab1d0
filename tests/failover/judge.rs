use crate::marks::{Mark, Ready};
use crate::orders::{Shipped, Told, WITHIN};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub struct Row {
    pub placed_at: DateTime<Utc>,
    pub is_shipped: bool,
    pub alerts: i64,
    pub open: i64,
    pub runs: i64,
    pub done: i64,
}

#[derive(Default)]
pub struct Evidence {
    pub is_synchronous: bool,
    pub told: BTreeMap<i64, Told>,
    pub rows: BTreeMap<i64, Row>,
    pub begun: Vec<Mark>,
    pub seen: Vec<Mark>,
    pub ready: Vec<Ready>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub acknowledged: usize,
    pub late: usize,
    pub alerts: usize,
    pub lost_by_failover: usize,
    pub repeated_by_failover: usize,
    /// Number of runs that a former primary started after the promotion of another server.
    pub on_cut_off: usize,
    pub violations: Vec<String>,
}

impl Evidence {
    pub fn judge(&self) -> Verdict {
        let mut verdict = Verdict::default();
        self.judge_orders(&mut verdict);
        self.judge_seen(&mut verdict);
        self.judge_cut_off(&mut verdict);
        verdict
    }

    fn judge_orders(&self, verdict: &mut Verdict) {
        for (order, told) in &self.told {
            verdict.acknowledged += usize::from(told.is_placed);
            let Some(row) = self.rows.get(order) else {
                verdict.lost_by_failover += usize::from(told.is_placed);
                if told.is_placed && self.is_synchronous {
                    verdict.violations.push(format!("lost: order {order} was acknowledged by a synchronous primary"));
                }
                continue;
            };
            let is_late = !row.is_shipped;
            verdict.late += usize::from(is_late);
            verdict.alerts += row.alerts as usize;
            let in_time = matches!(told.shipped, Shipped::At(at) if at < row.placed_at + WITHIN) && row.is_shipped;
            if matches!(told.shipped, Shipped::At(_)) && is_late {
                verdict.lost_by_failover += 1;
                if self.is_synchronous {
                    verdict.violations.push(format!("lost: order {order} is not shipped, which was acknowledged"));
                }
            }
            let mut violated = |is_violated: bool, what: &str| {
                if is_violated {
                    verdict.violations.push(format!("{what}: order {order}, {row:?}, {told:?}"));
                }
            };
            violated(is_late && row.alerts == 0, "missing: no alert");
            violated(is_late && row.alerts > 0 && row.open == 0, "missing: no open alert");
            violated(row.alerts > 1 || row.runs > 1, "doubled");
            violated(row.runs != row.alerts, "alert and run differ");
            violated(row.alerts > 0 && row.done == 0, "missing in the history");
            violated(in_time && row.alerts > 0, "wrong: shipped in time");
            violated(row.is_shipped && row.open > 0, "wrong: an open alert of a shipped order");
        }
        for order in self.rows.keys().filter(|order| !self.told.contains_key(order)) {
            verdict.violations.push(format!("wrong: no client has placed order {order}"));
        }
    }

    fn judge_seen(&self, verdict: &mut Verdict) {
        let mut timelines = BTreeMap::<i64, Vec<u32>>::new();
        for mark in &self.seen {
            timelines.entry(mark.order).or_default().push(mark.timeline);
        }
        for (order, seen) in timelines {
            let distinct: BTreeSet<u32> = seen.iter().copied().collect();
            if distinct.len() < seen.len() {
                verdict.violations.push(format!("doubled: order {order} ran more than once on a timeline, {seen:?}"));
            }
            if distinct.len() > 1 {
                verdict.repeated_by_failover += 1;
                if self.is_synchronous {
                    verdict.violations.push(format!("doubled: order {order} ran on timelines {distinct:?}"));
                }
            }
        }
    }

    fn judge_cut_off(&self, verdict: &mut Verdict) {
        let begins: BTreeMap<u32, DateTime<Utc>> =
            self.ready.iter().filter_map(|ready| Some((ready.timeline?, ready.at))).collect();
        let is_cut_off = |mark: &&Mark| begins.range(mark.timeline + 1..).any(|(_, began)| mark.at > *began);
        for mark in self.begun.iter().chain(&self.seen).filter(is_cut_off) {
            verdict.on_cut_off += 1;
            if self.is_synchronous {
                verdict.violations.push(format!("on a cut-off primary: {mark:?}, timelines began {begins:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn mark(order: i64, timeline: u32, seconds: i64) -> Mark {
        Mark { order, timeline, at: at(seconds) }
    }

    fn good() -> Evidence {
        let placed = |shipped| Told { is_placed: true, shipped };
        let late = Row { placed_at: at(10), alerts: 1, open: 1, runs: 1, done: 1, ..Row::default() };
        let shipped = Row { placed_at: at(10), is_shipped: true, ..Row::default() };
        Evidence {
            is_synchronous: true,
            told: [(1, placed(Shipped::Never)), (2, placed(Shipped::At(at(11))))].into(),
            rows: [(1, late), (2, shipped)].into(),
            begun: vec![mark(1, 1, 14)],
            seen: vec![mark(1, 1, 14)],
            ready: vec![Ready { at: at(20), timeline: Some(2), first_run: Some(0.1) }],
        }
    }

    fn violations(change: impl FnOnce(&mut Evidence)) -> String {
        let mut evidence = good();
        change(&mut evidence);
        evidence.judge().violations.join("; ")
    }

    fn row(evidence: &mut Evidence, order: i64) -> &mut Row {
        evidence.rows.get_mut(&order).unwrap()
    }

    #[test]
    fn what_is_right_is_counted() {
        let verdict = Verdict { acknowledged: 2, late: 1, alerts: 1, ..Verdict::default() };
        assert_eq!(good().judge(), verdict);
    }

    #[test]
    fn each_kind_of_fault_is_found() {
        assert!(violations(|e| row(e, 1).alerts = 0).contains("missing: no alert"));
        assert!(violations(|e| row(e, 1).open = 0).contains("no open alert"));
        assert!(violations(|e| row(e, 1).alerts = 2).contains("doubled"));
        assert!(violations(|e| row(e, 1).runs = 2).contains("doubled"));
        assert!(violations(|e| row(e, 1).runs = 0).contains("alert and run differ"));
        assert!(violations(|e| row(e, 1).done = 0).contains("history"));
        assert!(violations(|e| row(e, 2).alerts = 1).contains("shipped in time"));
        assert!(violations(|e| row(e, 2).open = 1).contains("open alert of a shipped"));
        assert!(violations(|e| e.rows.extend([(3, Row::default())])).contains("no client has placed"));
        assert!(violations(|e| e.seen.push(mark(1, 1, 15))).contains("more than once on a timeline"));
    }

    #[test]
    fn what_a_failover_loses_is_a_violation_only_where_clients_wait_for_standbys() {
        for is_synchronous in [false, true] {
            let mut evidence = good();
            evidence.is_synchronous = is_synchronous;
            evidence.rows.remove(&1);
            evidence.begun.extend([mark(3, 1, 21), mark(3, 2, 22)]);
            evidence.seen.extend([mark(3, 1, 21), mark(3, 2, 22)]);
            let verdict = evidence.judge();
            let counts = (verdict.lost_by_failover, verdict.repeated_by_failover, verdict.on_cut_off);
            assert_eq!(counts, (1, 1, 2));
            assert_eq!(verdict.violations.len(), if is_synchronous { 4 } else { 0 }, "{:?}", verdict.violations);
        }
    }
}
