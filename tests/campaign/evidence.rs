use crate::checker::{Effect, Ended, Evidence, Pending, Placed, Told};
use crate::deadline::{BROKEN, COUNTED};
use crate::faults::MAX_CRASHES;
use crate::outside::IS_OUTSIDE;
use crate::repeat::{ALONE, CLOSED, DOUBLED, Repeated};
use crate::watched::{MISSED, WRONG, Watched};

use awty_testkit::postgres::{Client, Error, IsolationLevel, Row};

pub fn read(client: &mut Client, told: Vec<Told>, clock_was_set: bool) -> Result<Evidence, Error> {
    // Each query takes its own snapshot, because a table looks empty in a snapshot that is older than the table's
    // TRUNCATE.
    let first = |found: Vec<Row>| found.iter().map(|row| row.get(0)).collect();
    let (wrong, missed) = (first(client.query(WRONG, &[&clock_was_set])?), first(client.query(MISSED, &[])?));
    let counted: serde_json::Value = client.query_one(COUNTED, &[])?.get(0);
    let mut snapshot =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start()?;
    let mut rows = |sql: &str| snapshot.query(sql, &[]);
    let effects = rows(
        "SELECT check_id, check_count, slot, began, xid, act, bad, own, pg_xact_commit_timestamp(xmin) FROM camp.effect",
    )?;
    // awty may put a check on hold after too many deaths of its external workers. If the test has changed the system
    // clock, the deaths cannot be counted, because awty may have deleted their records early.
    let pending = rows(&format!(
        "SELECT id, check_count, attempt, first_check_at,
                held AND id NOT IN (SELECT check_id FROM awty_internal.hold)
                    AND NOT ({IS_OUTSIDE} AND ({clock_was_set} OR (SELECT count(*) FROM awty.attempt AS a WHERE a.id = f.id AND sqlstate = '08006') >= {MAX_CRASHES})),
                xmin::text::bigint, args->>'act', entity_name = 'again' FROM awty.future_job AS f
         WHERE entity_name <> 'filler' AND job NOT IN ('parcel', 'ticket', 'promise', 'kept', 'kept_reply', 'kept_due')",
    ))?;
    // After a jump of the clock, awty may create a day's partition late and move rows into the partition. `xmin` of
    // these rows is the transaction that moved them.
    let ended = rows(&format!(
        "SELECT id, check_count, first_check_at, next_check_at, started_at, outcome, xmin::text::bigint,
                pg_xact_commit_timestamp(xmin), extract(epoch FROM run_time)::float8, attempts,
                (SELECT extract(epoch FROM timeout)::float8 FROM awty.job WHERE job = h.job AND function_name IS NOT NULL), message, sqlstate,
                {clock_was_set} AND (max(pg_xact_commit_timestamp(xmin) - finished_at) OVER (PARTITION BY xmin::text) > interval '200 ms'
                    OR xmin::text = (SELECT c.xmin::text FROM pg_class AS c WHERE c.oid = h.tableoid))
         FROM awty.future_job_history AS h WHERE entity_name <> 'filler' AND job NOT IN ('parcel', 'ticket', 'promise', 'kept', 'kept_reply', 'kept_due')",
    ))?;
    let placed = rows(
        "SELECT check_id, wanted FROM camp.placed
         UNION ALL SELECT id, NULL FROM awty.future_job WHERE entity_name = 'again' AND id NOT IN (SELECT check_id FROM camp.placed)
         UNION ALL SELECT id, NULL FROM awty.future_job_history WHERE entity_name = 'again' AND id NOT IN (SELECT check_id FROM camp.placed)",
    )?;
    let [alone, doubled, closed] =
        [ALONE, DOUBLED, CLOSED].map(|sql| rows(sql).map(|found| found.iter().map(|row| row.get(0)).collect()));
    let fillers = rows(
        "SELECT (SELECT coalesce(sum(checks), 0)::bigint FROM camp.bulk),
                (SELECT count(*) FROM awty.future_job WHERE entity_name = 'filler')",
    )?;
    let seen = rows(
        "SELECT (SELECT last_value FROM camp.overlaps WHERE is_called), (SELECT last_value FROM camp.early WHERE is_called),
                (SELECT last_value FROM camp.leaks WHERE is_called)",
    )?;
    let deadlines = snapshot.query(BROKEN, &[&clock_was_set, &counted])?;
    let count = |column| seen[0].get::<_, Option<i64>>(column).unwrap_or(0);
    Ok(Evidence {
        effects: effects.iter().map(effect).collect(),
        pending: pending.iter().map(self::pending).collect(),
        ended: ended.iter().map(self::ended).collect(),
        placed: placed.iter().map(|row| Placed { check: row.get(0), wanted: row.get(1) }).collect(),
        told,
        struck: Vec::new(),
        overlaps: count(0),
        early: count(1),
        leaks: count(2),
        fillers: [0, 1].map(|column| fillers[0].get(column)),
        left: None,
        watched: Watched { wrong, missed },
        ledger: Vec::new(),
        repeated: Repeated { alone: alone?, doubled: doubled?, closed: closed? },
        deadlines: deadlines.iter().map(|row| (row.get(0), row.get(1))).collect(),
        clock_was_set,
    })
}

fn effect(row: &Row) -> Effect {
    Effect {
        check: row.get(0),
        check_count: row.get(1),
        slot: row.get(2),
        began: row.get(3),
        xid: row.get(4),
        act: row.get(5),
        bad: row.get(6),
        own: row.get(7),
        committed: row.get(8),
    }
}

fn pending(row: &Row) -> Pending {
    Pending {
        check: row.get(0),
        check_count: row.get(1),
        attempt: row.get(2),
        first_slot: row.get(3),
        held: row.get(4),
        is_handled: row.get(7),
        act: row.get(6),
        xmin: row.get(5),
    }
}

fn ended(row: &Row) -> Ended {
    Ended {
        check: row.get(0),
        check_count: row.get(1),
        first_slot: row.get(2),
        slot: row.get(3),
        started: row.get(4),
        outcome: row.get(5),
        xmin: row.get(6),
        committed: row.get(7),
        run_time: row.get(8),
        attempts: row.get(9),
        timeout: row.get(10),
        message: row.get(11),
        sqlstate: row.get(12),
        is_moved: row.get(13),
    }
}
