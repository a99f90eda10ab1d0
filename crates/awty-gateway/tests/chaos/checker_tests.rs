use crate::checker::{Booked, Call, Evidence, Fate, Plan, findings};

const SECOND: i64 = 1_000_000;

fn call(path: &str, slot: i64, key: &str, answered: Option<u16>) -> Call {
    Call { at: 1.0, occurrence: (path.into(), slot * SECOND, 0), key: key.into(), answered }
}

fn booked(call: &Call, ok: bool) -> Booked {
    Booked { occurrence: call.occurrence.clone(), key: call.key.clone(), ok }
}

fn good() -> Evidence {
    let calls = vec![
        call("/s/1", 10, "a", Some(200)),
        call("/s/1", 11, "b", None),
        Call { at: 9.0, ..call("/s/1", 11, "b", Some(200)) },
        call("/send/1", 10, "c", Some(200)),
        call("/once/1", 10, "d", Some(200)),
    ];
    let booked = calls.iter().filter(|call| call.answered.is_some()).map(|call| booked(call, true)).collect();
    let plan = Plan { path: "/s/1".into(), first: 10 * SECOND, period: SECOND, pending: 12 * SECOND };
    let sends = [("/send/1", Fate::Committed), ("/never/2", Fate::RolledBack), ("/send/3", Fate::InDoubt)];
    let sends = sends.map(|(path, fate)| (path.to_owned(), fate)).into();
    Evidence { calls, booked, plans: vec![plan], sends, once: "/once", first_fault: 5.0, ..Evidence::default() }
}

#[track_caller]
fn assert_found(change: impl FnOnce(&mut Evidence), what: &str) {
    let mut evidence = good();
    change(&mut evidence);
    let found = findings(&evidence);
    assert!(found.len() == 1 && found[0].contains(what), "{found:#?}");
}

#[test]
fn what_is_true_has_no_findings() {
    assert_eq!(findings(&good()), Vec::<String>::new());
}

#[test]
fn a_slot_that_nobody_called_is_missed() {
    assert_found(|evidence| evidence.plans[0].pending += 2 * SECOND, "2 slots were never called");
    let mut evidence = good();
    evidence.plans[0].pending += SECOND;
    evidence.failed.insert(("/s/1".into(), 12 * SECOND));
    assert_eq!(findings(&evidence), Vec::<String>::new());
}

#[test]
fn keys_and_occurrences_belong_to_each_other() {
    assert_found(|evidence| evidence.booked.push(booked(&call("/s/1", 10, "z", None), false)), "has two keys");
    assert_found(|evidence| evidence.booked.push(booked(&call("/s/1", 12, "a", None), false)), "is the key of");
}

#[test]
fn sends_are_neither_lost_nor_invented() {
    let commit = |evidence: &mut Evidence| _ = evidence.sends.insert("/send/9".into(), Fate::Committed);
    assert_found(commit, "never called");
    assert_found(
        |evidence| {
            commit(evidence);
            evidence.calls.push(call("/send/9", 10, "x", Some(503)));
        },
        "given up",
    );
    assert_found(|evidence| evidence.calls.push(call("/never/2", 10, "x", None)), "rolled back, and called");
}

#[test]
fn a_success_is_booked_once_and_only_if_there_was_one() {
    assert_found(
        |evidence| {
            let again = evidence.booked[0].clone();
            evidence.booked.push(again);
        },
        "two successes",
    );
    assert_found(|evidence| evidence.booked.push(booked(&call("/s/1", 13, "y", None), true)), "nobody has answered");
}

#[test]
fn at_most_once_is_at_most_once_and_nothing_is_repeated_without_a_fault() {
    assert_found(
        |evidence| evidence.calls.push(Call { at: 9.0, ..call("/once/1", 10, "d", Some(200)) }),
        "was called twice",
    );
    assert_found(|evidence| evidence.calls.push(call("/s/1", 10, "a", Some(200))), "without a reason");
    let mut evidence = good();
    evidence.calls.push(call("/s/1", 10, "a", Some(200)));
    evidence.booked.push(booked(&evidence.calls[0], false));
    assert_eq!(findings(&evidence), Vec::<String>::new(), "the books say why");
}
