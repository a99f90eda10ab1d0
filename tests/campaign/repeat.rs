//! Creates, cancels, holds and moves repetitions at random. All repetitions have the entity name [`ENTITY`], which no
//! other client uses.

use crate::checker::Told;
use crate::load::Customer;
use awty_testkit::postgres::{Client, Error};
use chrono::Utc;

pub const ENTITY: &str = "again";

#[derive(Clone, Debug, Default)]
pub struct Repeated {
    pub alone: Vec<String>,
    pub doubled: Vec<String>,
    pub closed: Vec<String>,
}

impl Repeated {
    pub fn faults(&self, clock_was_set: bool) -> Vec<String> {
        let alone = self.alone.iter().map(|what| format!("a repetition without a check: {what}"));
        let doubled = self.doubled.iter().map(|what| format!("a slot was booked twice: {what}"));
        let closed = self.closed.iter().map(|what| format!("an occurrence in closed time: {what}"));
        // If the clock was set back, two runs may rightly have the same due time, because the clock reached the time
        // twice.
        alone.chain(doubled.chain(closed).filter(|_| !clock_was_set)).collect()
    }
}

pub const ALONE: &str = "SELECT left(r::text, 300) FROM awty.repetition AS r WHERE next_check_at IS NULL";

/// Finds occurrences that ran twice. A second run is allowed after `awty.check_now()`, or if a client called
/// `awty.repeat()` again before the first run started.
pub const DOUBLED: &str = "SELECT string_agg(left(h::text, 300), ' and ' ORDER BY id) FROM awty.future_job_history AS h
    WHERE entity_name = 'again' AND outcome NOT IN ('cancelled', 'replaced')
        AND id NOT IN (SELECT check_id FROM camp.placed)
    GROUP BY job, entity_key, first_check_at HAVING count(*) > 1 AND (max(scheduled_at) < min(started_at)) IS NOT TRUE";

pub const CLOSED: &str = "SELECT camp.closed_occurrences()";

pub fn act(customer: &mut Customer, client: &mut Client) -> Result<(), Error> {
    let job = format!("{}_again", customer.role);
    let key = format!("{}{}", customer.role, customer.random.below(4));
    match customer.random.below(20) {
        0..6 => repeat(customer, client, &job, &key),
        6 | 7 => cancel(customer, client, &job, &key),
        8 => {
            let seconds = customer.soon();
            let sql =
                "SELECT awty.schedule($1, $2, $3, at => clock_timestamp() + make_interval(secs => $4), args => $5)";
            client.execute(sql, &[&ENTITY, &key, &job, &seconds, &errand(customer)]).map(|_| ())
        }
        9 => client.batch_execute(&format!("SELECT awty.pause('{job}'); SELECT awty.resume('{job}')")),
        10 => unless_refused(
            &["42704", "55000", "55006"],
            client.execute("SELECT awty.check_now($1, $2, $3)", &[&ENTITY, &key, &job]),
        ),
        11 => unless_refused(
            &["42704"],
            client.execute("SELECT awty.hold($1, $2, $3, 'campaign')", &[&ENTITY, &key, &job]),
        ),
        12 | 13 => release(client, &job, &key),
        14 | 15 => in_open_time(customer, client, &job),
        16 | 17 => hold_until(customer, client, &job, &key),
        18 => {
            let seconds = 1.0 + customer.random.below(3) as f64;
            let sql = "SELECT awty.pause($1, 'campaign', clock_timestamp() + make_interval(secs => $2))";
            unless_refused(&["22023"], client.execute(sql, &[&job, &seconds]))
        }
        _ => client.batch_execute(&format!("SELECT camp.replace_calendar('{}')", customer.role)),
    }
}

fn release(client: &mut Client, job: &str, key: &str) -> Result<(), Error> {
    let done = client.execute("SELECT awty.release($1, $2, $3)", &[&ENTITY, &key, &job]);
    unless_refused(&["42704", "55000"], done)
}

fn hold_until(customer: &mut Customer, client: &mut Client, job: &str, key: &str) -> Result<(), Error> {
    let seconds = 1.0 + customer.random.below(3) as f64;
    let sql = "SELECT awty.hold($1, $2, $3, 'campaign', clock_timestamp() + make_interval(secs => $4))";
    // If the hold would end while the call waits for a lock, awty refuses the call (22023).
    unless_refused(&["42704", "55000", "22023"], client.execute(sql, &[&ENTITY, &key, &job, &seconds]))
}

fn in_open_time(customer: &mut Customer, client: &mut Client, job: &str) -> Result<(), Error> {
    let key = format!("{}c", customer.role);
    match customer.random.below(4) {
        0 => hold_until(customer, client, job, &key),
        1 => release(client, job, &key),
        _ => {
            let when = *customer.random.pick(&[
                "every => '1 s'",
                "every => '2 s', catch_up => '20 s'",
                "cron => '*/3 * * * * *'",
            ]);
            let sql = format!(
                "SELECT awty.repeat($1, {when}, calendar => $2, zone => 'UTC', entity_name => $3, entity_key => $4, args => $5)"
            );
            let args = errand(customer);
            unless_refused(&["22023"], client.execute(&sql, &[&job, &customer.role, &ENTITY, &key, &args]))
        }
    }
}

fn errand(customer: &mut Customer) -> serde_json::Value {
    let act = match customer.random.below(20) {
        0 | 1 => "error",
        2 => "own_cancel",
        3 => "own_replace",
        4 => "past",
        5 => "timeout",
        _ => "ok",
    };
    let again = customer.random.below(2);
    let nap = if customer.random.per_mille(100) { 1.5 } else { 0.0 };
    serde_json::json!({"act": act, "nap": nap, "again": again, "times": 1 + 98 * customer.random.below(2)})
}

fn repeat(customer: &mut Customer, client: &mut Client, job: &str, key: &str) -> Result<(), Error> {
    let when = *customer.random.pick(&[
        "every => '1 s'",
        "every => '2 s', catch_up => '20 s'",
        "every => '3 s', jitter => '2 s'",
        "cron => '*/2 * * * * *', catch_up => '5 s'",
        "cron => '* * * * * *', zone => 'Europe/Berlin', jitter => '5 s'",
        "every => '1 s', ends => clock_timestamp() + interval '5 s'",
    ]);
    let sql = format!("SELECT awty.repeat($1, {when}, entity_name => $2, entity_key => $3, args => $4)");
    let args = errand(customer);
    // awty refuses the call (22023) if a fault has set the clock past `ends`, or has set `awty.slot` to more than the
    // requested period.
    unless_refused(&["22023"], client.execute(&sql, &[&job, &ENTITY, &key, &args]))
}

fn unless_refused(codes: &[&str], done: Result<u64, Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.code().is_some_and(|code| codes.contains(&code.code())) => Ok(()),
        done => done.map(|_| ()),
    }
}

fn cancel(customer: &mut Customer, client: &mut Client, job: &str, key: &str) -> Result<(), Error> {
    let sql = "SELECT awty.cancel($1, $2, $3), pg_current_xact_id()::text::bigint";
    let row = client.query_one(sql, &[&ENTITY, &key, &job])?;
    customer.tell(Told::Cancelled { xid: row.get(1), count: row.get(0), at: Utc::now() });
    Ok(())
}
