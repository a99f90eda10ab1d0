//! Rules with a calendar, stops, reminders and holds must work in the new server as before.

use awty_testkit::Cluster;

pub fn set_up(old: &Cluster, database: &str, role: &str) {
    old.client(database, role)
        .batch_execute(
            "INSERT INTO kept.ticket VALUES (1, now() - interval '2 hours', 'open'), (2, now() - interval '2 hours', 'waiting'), (3, now(), 'open'), (4, now() - interval '2 hours', 'open')",
        )
        .unwrap();
    let told = "SELECT count(*) = 2 FROM awty.alert WHERE rule = 'kept_reply' AND told > 0 AND level = 1";
    old.await_sql(database, "the alerts of the tickets", told);
    let looked = "SELECT check_count > 0 FROM awty.future_job WHERE job = 'kept_reply' AND entity_key = '2'";
    old.await_sql(database, "the check of the stopped ticket", looked);
    old.client(database, role)
        .batch_execute(
            "SELECT awty.hold('ticket', 1, 'kept_reply', note => 'soon', held_until => now() + interval '1 minute'),
                awty.hold('ticket', 4, 'kept_reply', note => 'later', held_until => now() + interval '9 days')",
        )
        .unwrap();
}

pub fn go_on(new: &Cluster, database: &str, role: &str) {
    let held = "SELECT held_by IS NOT NULL AND note = 'later' AND held_until > now() + interval '8 days' FROM awty.late WHERE rule = 'kept_reply' AND entity_key = '4'";
    assert!(new.value::<bool>(database, held), "a hold whose end is to come");
    let told = |what: &str, told: &str| {
        new.await_sql(database, what, &format!("SELECT EXISTS (SELECT FROM kept.told WHERE {told})"))
    };
    let again = "SELECT told > 2 AND held_by IS NULL FROM awty.alert WHERE rule = 'kept_reply' AND entity_key = '1'";
    new.await_sql(database, "the hold to end, and the alert to be told again", again);
    let mut client = new.client(database, role);
    client.batch_execute("UPDATE kept.ticket SET state = 'there' WHERE id = 1").unwrap();
    told("call_cleared", "rule = 'kept_reply' AND key = '1' AND cleared");
    client
        .batch_execute(
            "UPDATE kept.ticket SET state = 'open' WHERE id = 2;
             INSERT INTO kept.ticket VALUES (5, now() - interval '29 minutes 55 seconds'), (6, now() - interval '21 days')",
        )
        .unwrap();
    let moved =
        "SELECT f.next_check_at = awty.next_slot(t.since + interval '30 minutes' + (upper(s.stops) - lower(s.stops)))
            AND lower(s.stops) = t.since AND s.stopped_since IS NULL
        FROM kept.ticket AS t JOIN awty_internal.stop AS s ON s.key = t.id::text AND s.rule = 'kept_reply'
        JOIN awty.future_job AS f ON f.entity_key = s.key AND f.job = s.rule WHERE t.id = 2";
    assert!(new.value::<bool>(database, moved), "the end of a stop that began before the upgrade");
    told("the reminder", "rule = 'kept_reply' AND key = '5' AND level = 0");
    told("the due time of a row", "rule = 'kept_due' AND key = '6' AND level = 2");
}
