use crate::receiver::Seen;
use chrono::DateTime;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Times are in seconds, memory in MiB.
pub struct Figures {
    pub calls: usize,
    pub longest_gap: f64,
    pub p50: f64,
    pub p99: f64,
    /// p50 and p99 lateness of the plain client.
    pub plain: (f64, f64),
    pub memory: u64,
}

pub struct Attacked {
    pub figures: Figures,
    pub rounds: Vec<(&'static str, usize)>,
    pub gap_after: f64,
}

pub fn longest_gap(calls: &[Seen], from: SystemTime, to: SystemTime) -> f64 {
    let within = calls.iter().map(|call| call.at).filter(|at| (from..=to).contains(at));
    let moments: Vec<SystemTime> = std::iter::once(from).chain(within).chain([to]).collect();
    let gaps = moments.windows(2).map(|pair| pair[1].duration_since(pair[0]).unwrap_or_default());
    gaps.max().unwrap_or_default().as_secs_f64()
}

/// Returns the lateness of each call between `from` and `to`, the least first.
fn lateness(calls: &[Seen], from: SystemTime, to: SystemTime) -> Vec<f64> {
    let late = |seen: &Seen| {
        let slot = DateTime::parse_from_rfc3339(&seen.headers["awty-slot"]).unwrap();
        let slot = UNIX_EPOCH + Duration::from_micros(slot.timestamp_micros().try_into().unwrap());
        seen.at.duration_since(slot).unwrap_or_default().as_secs_f64()
    };
    let mut lateness: Vec<f64> = calls.iter().filter(|call| (from..=to).contains(&call.at)).map(late).collect();
    lateness.sort_by(f64::total_cmp);
    lateness
}

pub fn figures(calls: &[Seen], plain: &[Seen], from: SystemTime, to: SystemTime, memory: u64) -> Figures {
    let part = |sorted: &[f64], hundredths: usize| sorted[(sorted.len() * hundredths).div_ceil(100).max(1) - 1];
    let (lateness, plain) = (lateness(calls, from, to), lateness(plain, from, to));
    Figures {
        calls: lateness.len(),
        longest_gap: longest_gap(calls, from, to),
        p50: part(&lateness, 50),
        p99: part(&lateness, 99),
        plain: (part(&plain, 50), part(&plain, 99)),
        memory: memory / 1024,
    }
}

fn kept(kept: bool) -> &'static str {
    if kept { "kept" } else { "NOT KEPT" }
}

pub fn page(quiet: &Figures, attacked: &Attacked, minutes: f64) -> String {
    let loud = &attacked.figures;
    let mut page = format!(
        "# Neighbours: what twenty hostile tenants take from one victim\n\n\
         The victim has a schedule of every second, and a client that inserts ten rows a second into a watched table. Every second row is\n\
         late. Twenty tenants repeat one attack each, all at the same time, for {minutes} minutes. The quiet twin is a run of the same\n\
         length and with the same settings before it: the twenty tenants exist and do nothing. The victim's server stamps arrivals.\n\
         Lateness is arrival minus slot. The plain client shows what the machine itself costs: it waits for each second, runs `SELECT 1`\n\
         and makes one HTTP request.\n\n\
         | figure | quiet twin | beside twenty neighbours | goal | |\n|---|--:|--:|---|---|\n"
    );
    let (gap, ratio) = (loud.longest_gap, loud.p99 / quiet.p99);
    let _ = writeln!(page, "| calls of the victim | {} | {} | | |", quiet.calls, loud.calls);
    let _ = writeln!(
        page,
        "| longest gap between calls | {:.2} s | {gap:.2} s | at most 3 s | {} |",
        quiet.longest_gap,
        kept(gap <= 3.0)
    );
    let _ = writeln!(page, "| p50 lateness | {:.0} ms | {:.0} ms | | |", quiet.p50 * 1e3, loud.p50 * 1e3);
    let _ = writeln!(
        page,
        "| p99 lateness | {:.0} ms | {:.0} ms ({ratio:.2} ×) | at most 2 × | {} |",
        quiet.p99 * 1e3,
        loud.p99 * 1e3,
        kept(ratio <= 2.0)
    );
    for (name, quiet, loud) in [("p50", quiet.plain.0, loud.plain.0), ("p99", quiet.plain.1, loud.plain.1)] {
        let (ratio, quiet, loud) = (loud / quiet, quiet * 1e3, loud * 1e3);
        let _ =
            writeln!(page, "| {name} lateness of a plain client | {quiet:.1} ms | {loud:.1} ms ({ratio:.2} ×) | | |");
    }
    let _ = writeln!(
        page,
        "| memory of the gateway, at most | {} MiB | {} MiB | at most {} MiB | {} |",
        quiet.memory,
        loud.memory,
        super::MOST / 1024,
        kept(loud.memory <= super::MOST / 1024)
    );
    let _ = writeln!(
        page,
        "| longest gap in the 15 s after the neighbours left | | {:.2} s | at most 2 s: one slot, and the slot of the call | {} |",
        attacked.gap_after,
        kept(attacked.gap_after <= 2.0)
    );
    page.push_str(
        "\nAsserted in the same run: no neighbour saw a row, header value, body, key or secret of the victim; each slot has exactly one\n\
         successful call; each late row has exactly one alert, reported once; no call of a neighbour reached the victim's server.\n\n\
         | attack | rounds |\n|---|--:|\n",
    );
    for (attack, rounds) in &attacked.rounds {
        let _ = writeln!(page, "| {attack} | {rounds} |");
    }
    page
}
