//! Draws a table of the conditions ("links") that must all hold before a job's function can run. The first conditions
//! concern the server, and the last conditions concern the job's checks. If a condition does not hold, the table says
//! why.

use super::parts::{Mark, due, is_late, mark, none, string, table, text, time};
use super::words::count;
use maud::{Markup, html};
use serde_json::Value;

pub struct Seen<'a> {
    pub database: &'a Value,
    /// Reasons why checks do not run, such as paused jobs and blocked targets. Also says whether any check is pending.
    pub stops: &'a Value,
    pub findings: &'a [Value],
    /// Name of this gateway, and the reasons why the gateway is not ready, if any.
    pub gateway: (&'a str, &'a [String]),
    pub clock: Option<&'a str>,
    pub times: &'a Value,
    pub next: &'a Value,
}

struct Link {
    name: &'static str,
    holds: bool,
    /// True if a person or a target asked awty to stop the work.
    is_stop: bool,
    detail: Markup,
}

/// Phrases by which the page recognizes a problem in a message of `awty.status` or `awty.doctor()`. Each constant is
/// named after its problem.
const NOT_PRELOADED: [&str; 1] = ["is not in shared_preload_libraries"];
const NO_WORKER: [&str; 3] =
    ["launcher is not running", "no background worker slot was free", "workers that may run it are busy"];
const NO_STANDBY: [&str; 1] = ["waits for a synchronous standby"];
const NO_RIGHT: [&str; 4] = ["cannot run it", "cannot be called", "has no LOGIN", "has no CONNECT"];

impl Seen<'_> {
    /// Returns the table, and whether all conditions hold.
    pub fn draw(&self) -> (Markup, bool) {
        let row = |link: Link| {
            let word = match (link.holds, link.is_stop) {
                (true, _) => mark(Mark::Good, "yes"),
                (false, true) => mark(Mark::Held, "no"),
                (false, false) => mark(Mark::Bad, "no"),
            };
            vec![html! { (link.name) }, word, link.detail]
        };
        let links: Vec<Link> = self.of_server().into_iter().chain(self.of_checks()).collect();
        let hold = links.iter().all(|link| link.holds);
        let rows = links.into_iter().map(row).collect();
        (table("From the server to a run", &[text("Link"), text("Holds"), text("Detail")], rows), hold)
    }

    fn of_server(&self) -> Vec<Link> {
        let of = self.database;
        let (version, library) = (string(&of["version"]), string(&of["library"]));
        let is_same = library == version || library.starts_with(&format!("{version}."));
        let is_adopted = of["database_held"] != true && of["held"] != true;
        vec![
            link("The database answers", true, html! { (string(&of["name"])) }),
            link("Library and SQL have the same version", is_same, html! { (version) ", library " (library) }),
            self.unless("The library is preloaded", &NOT_PRELOADED),
            check("awty is enabled", of["enabled"] == true, "The setting awty.enabled is off."),
            check("The database is adopted", is_adopted, "The checks of this database wait for awty.adopt()."),
            check("The server is the primary", self.stops["standby"] != true, "The server is a standby."),
            link("The clock is right", self.clock.is_none(), time(&self.times["now"])),
            self.unless("No commit waits for a standby", &NO_STANDBY),
            self.unless("Workers are free", &NO_WORKER),
            self.unless("Jobs have their rights and functions", &NO_RIGHT),
            self.of_gateway(),
        ]
    }

    fn of_gateway(&self) -> Link {
        let (name, reasons) = self.gateway;
        let why = reasons.first().map(|reason| reason.split_once("; ").map_or(reason.as_str(), |(why, _)| why));
        let why_not = format!("The gateway {name} claims no calls: {}.", why.unwrap_or_default());
        check("This gateway claims calls", why.is_none(), &why_not)
    }

    fn of_checks(&self) -> Vec<Link> {
        let of = self.database;
        let (held, oldest) = (of["held_checks"].as_i64().unwrap_or(0), &of["oldest_overdue"]);
        let wait = match oldest.is_null() {
            true => none(),
            false => html! { "the oldest is " (due(oldest, is_late(oldest))) },
        };
        let error = match of["last_error"].as_str() {
            Some(error) => html! { (error) " " (time(&of["last_error_at"])) },
            None => none(),
        };
        let held = (held > 0).then(|| format!("{} held.", count(held, "check is", "checks are")));
        let paused = self.stops["paused"].as_str().map(|job| format!("Job “{job}” is paused."));
        let is_pending = self.stops["pending"] == true;
        let next = match (self.next.is_null(), is_pending) {
            (false, _) => html! { "the next is " (due(self.next, is_late(self.next))) },
            (true, true) => html! { "each is held, or its job is paused" },
            (true, false) => html! { "nothing is due" },
        };
        vec![
            stop("No job is paused", paused.as_deref()),
            stop("No check is held", held.as_deref()),
            stop("No target is blocked or failing", self.stops["closed"].as_str()),
            stop("No target is at its limit", self.stops["full"].as_str()),
            link("Due checks run", !is_late(oldest), wait),
            link("The last error is over", of["last_error"].is_null(), error),
            Link { is_stop: true, ..link("A check is pending", is_pending, next) },
        ]
    }

    /// Returns a condition that is met unless an error or a finding of awty contains one of `words`.
    fn unless(&self, name: &'static str, words: &[&str]) -> Link {
        let of_database = ["why", "last_error"].into_iter().filter_map(|field| self.database[field].as_str());
        let found = self.findings.iter().flat_map(|finding| [string(&finding["finding"]), string(&finding["detail"])]);
        let broken = of_database.chain(found).find(|text| words.iter().any(|word| text.contains(word)));
        link(name, broken.is_none(), broken.map_or_else(none, |text| html! { (text) }))
    }
}

fn link(name: &'static str, holds: bool, detail: Markup) -> Link {
    Link { name, holds, is_stop: false, detail }
}

fn check(name: &'static str, holds: bool, why_not: &str) -> Link {
    link(
        name,
        holds,
        if holds {
            none()
        } else {
            html! { (why_not) }
        },
    )
}

fn stop(name: &'static str, what: Option<&str>) -> Link {
    Link { is_stop: true, ..link(name, what.is_none(), what.map_or_else(none, |what| html! { (what) })) }
}
