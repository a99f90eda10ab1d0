//! Stores ("books") the answers of calls.
//!
//! Invariant: the transaction that stores an answer also makes all changes that result from the answer. An answer whose
//! lease is no longer valid changes nothing.

use super::{Db, Trouble};
use chrono::{DateTime, Utc};
use deadpool_postgres::{Object, Transaction};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tokio_postgres::Error;

#[derive(Clone, Debug)]
pub struct Booking {
    pub lease: i64,
    pub job: String,
    pub answer: Answer,
    pub result: Value,
    pub changes: Option<Changes>,
    pub wait: Option<Wait>,
    /// Job, entity name and entity key of a call ordered with `awty_http.send()`.
    pub send: Option<[String; 3]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub job: String,
    pub target: String,
    pub until: DateTime<Utc>,
    pub note: String,
}

#[derive(Clone, Debug)]
pub enum Answer {
    Complete { again: Option<DateTime<Utc>> },
    Fail(Failure),
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub message: String,
    pub retry_at: Option<DateTime<Utc>>,
    pub not_started: bool,
    pub target_down: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub id: String,
    /// New value of the schedule's flag `failing`, and the time of the change. `None` if the answer leaves the flag
    /// unchanged.
    pub failing: Option<(bool, DateTime<Utc>)>,
    /// `hold` or `stop`, with the endpoint's reason, if the endpoint asks awty to hold or stop its schedule.
    pub asked: Option<(&'static str, String)>,
}

impl Booking {
    /// Replaces each character outside of ASCII with a question mark, because a database with another encoding than
    /// UTF-8 may be unable to store the character. Returns whether any text was changed.
    pub fn become_ascii(&mut self) -> bool {
        let mut result = self.result.to_string();
        let message = match &mut self.answer {
            Answer::Fail(failure) => Some(&mut failure.message),
            Answer::Complete { .. } => None,
        };
        let note = self.wait.as_mut().map(|wait| &mut wait.note);
        let asked = self.changes.as_mut().and_then(|changes| changes.asked.as_mut()).map(|(_, why)| why);
        let texts = [Some(&mut result), message, note, asked].into_iter().flatten();
        let mut is_changed = false;
        for text in texts.filter(|text| !text.is_ascii()) {
            *text = ascii(text);
            is_changed = true;
        }
        self.result = serde_json::from_str(&result).unwrap_or_default();
        is_changed
    }
}

fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// Limits each statement to two seconds, because the answers of one tenant may take long to store: awty searches for the
/// next time of each repetition. The gateway then stores the answers of each job apart.
const TERMS: &str =
    "SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.set_config('lock_timeout', $1, true),
    pg_catalog.set_config('statement_timeout', '2s', true)";
const COMPLETE: &str = "SELECT awty.complete_many($1, $2, $3)";
const FAIL: &str = "SELECT awty.fail_many($1, $2, NULL, $3, $4, $5, $6, $7)";
const LOCK: &str = "SELECT awty_http_internal.lock_answered($1)";
const SENT_WELL: &str = "SELECT awty_http_internal.sent_well($1, $2, $3)";
const ANSWERED: &str = "SELECT awty_http_internal.answered($1, $2, $3)";
const WAIT: &str = "SELECT awty_http_internal.asked_to_wait($1, $2, $3, $4)";
const ASKED: &str = "SELECT awty_http_internal.asked($1, $2, $3)";

impl Db {
    pub async fn book(&self, bookings: &[Booking], patience: Duration) -> Result<Vec<(i64, String)>, Trouble> {
        self.on(async |client: &mut Object| {
            let transaction = client.transaction().await?;
            transaction.query_one(TERMS, &[&format!("{}ms", patience.as_millis())]).await?;
            let locked = lock(&transaction, bookings).await?;
            let is_locked = |changes: &Changes| locked.contains(&changes.id);
            // Stores the answer later if another session locks the schedule, because the endpoint's answer also asked
            // for a change of the schedule. Both must commit together.
            let comes_later = |changes: &Changes| changes.asked.is_some() && is_locked(changes);
            let (later, now): (Vec<&Booking>, Vec<&Booking>) =
                bookings.iter().partition(|booking| booking.changes.as_ref().is_some_and(comes_later));
            let mut words = complete(&transaction, &now).await?;
            words.extend(fail(&transaction, &now).await?);
            // `void` means that the lease is invalid. `busy` means that another session locks the check. The gateway
            // stores busy answers later.
            let nothing = |word: &str| matches!(word, "void" | "busy");
            let void: HashSet<i64> = words.iter().filter(|(_, word)| nothing(word)).map(|(lease, _)| *lease).collect();
            let counts: Vec<&Booking> = now.into_iter().filter(|booking| !void.contains(&booking.lease)).collect();
            // Does not update `failing` while another session locks the schedule's row. The schedule's next answer
            // corrects `failing`, because the gateway compares each answer with the stored row.
            let changes = counts.iter().filter_map(|booking| booking.changes.as_ref());
            for changes in changes.filter(|changes| !is_locked(changes)) {
                if let Some((asked, why)) = &changes.asked {
                    transaction.query_one(ASKED, &[&changes.id, asked, why]).await?;
                }
                if let Some((failing, at)) = changes.failing {
                    transaction.query_one(ANSWERED, &[&changes.id, &!failing, &at]).await?;
                }
            }
            sent_well(&transaction, &counts).await?;
            for Wait { job, target, until, note } in waits(&counts) {
                transaction.query_one(WAIT, &[job, target, until, note]).await?;
            }
            transaction.commit().await?;
            words.extend(later.iter().map(|booking| (booking.lease, "busy".to_owned())));
            Ok(words)
        })
        .await
    }
}

async fn lock(transaction: &Transaction<'_>, bookings: &[Booking]) -> Result<HashSet<String>, Error> {
    let ids: Vec<&str> = bookings.iter().filter_map(|booking| Some(booking.changes.as_ref()?.id.as_str())).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let locked: Vec<String> = transaction.query_one(LOCK, &[&ids]).await?.try_get(0)?;
    Ok(locked.into_iter().collect())
}

async fn sent_well(transaction: &Transaction<'_>, bookings: &[&Booking]) -> Result<(), Error> {
    let (mut jobs, mut names, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for booking in bookings.iter().filter(|booking| matches!(booking.answer, Answer::Complete { again: None })) {
        if let Some([job, name, key]) = &booking.send {
            jobs.push(job);
            names.push(name);
            keys.push(key);
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let statement = transaction.prepare_cached(SENT_WELL).await?;
    transaction.query_one(&statement, &[&jobs, &names, &keys]).await.map(drop)
}

/// Sorts the targets, so that two gateways lock them in the same order.
fn waits<'a>(bookings: &[&'a Booking]) -> impl Iterator<Item = &'a Wait> {
    let mut all = BTreeMap::<(&str, &str), &Wait>::new();
    for wait in bookings.iter().filter_map(|booking| booking.wait.as_ref()) {
        let longest = all.entry((&wait.job, &wait.target)).or_insert(wait);
        if longest.until < wait.until {
            *longest = wait;
        }
    }
    all.into_values()
}

async fn complete(transaction: &Transaction<'_>, bookings: &[&Booking]) -> Result<Vec<(i64, String)>, Error> {
    let (mut leases, mut next_at, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for booking in bookings {
        if let Answer::Complete { again } = &booking.answer {
            leases.push(booking.lease);
            next_at.push(*again);
            results.push(&booking.result);
        }
    }
    if leases.is_empty() {
        return Ok(Vec::new());
    }
    let statement = transaction.prepare_cached(COMPLETE).await?;
    let words: Vec<String> = transaction.query_one(&statement, &[&leases, &next_at, &results]).await?.try_get(0)?;
    Ok(leases.into_iter().zip(words).collect())
}

async fn fail(transaction: &Transaction<'_>, bookings: &[&Booking]) -> Result<Vec<(i64, String)>, Error> {
    let failed = |booking: &&Booking| match &booking.answer {
        Answer::Fail(failure) => Some((booking.lease, failure.clone(), booking.result.clone())),
        Answer::Complete { .. } => None,
    };
    let all: Vec<_> = bookings.iter().filter_map(failed).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let leases: Vec<i64> = all.iter().map(|(lease, ..)| *lease).collect();
    let messages: Vec<&str> = all.iter().map(|(_, failure, _)| failure.message.as_str()).collect();
    let retries: Vec<_> = all.iter().map(|(_, failure, _)| failure.retry_at).collect();
    let finals: Vec<bool> = retries.iter().map(Option::is_none).collect();
    let not_started: Vec<bool> = all.iter().map(|(_, failure, _)| failure.not_started).collect();
    let down: Vec<bool> = all.iter().map(|(_, failure, _)| failure.target_down).collect();
    let results: Vec<&Value> = all.iter().map(|(.., result)| result).collect();
    let statement = transaction.prepare_cached(FAIL).await?;
    let row = transaction
        .query_one(&statement, &[&leases, &messages, &retries, &finals, &not_started, &down, &results])
        .await?;
    Ok(leases.into_iter().zip(row.try_get::<_, Vec<String>>(0)?).collect())
}
