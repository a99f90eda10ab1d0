use awty_testkit::fixture::{NOTE, Shop};

/// Length of the text in bytes. The memory limit of a server process leaves room for one such text, but not for two.
const LENGTH: u64 = 100_000_000;
const MEMORY: u64 = LENGTH * 3 / 2;

#[test]
fn a_text_that_is_too_long_is_refused_without_a_copy() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    // random() keeps the planner from storing a copy of the text as a constant.
    let long = format!("repeat(repeat('x', 100000), (random() * 0 + {LENGTH} / 100000)::integer)");
    let calls = [
        "awty.schedule(LONG, 'k', 'note', after => '1 h')",
        "awty.schedule('e', LONG, 'note', after => '1 h')",
        "awty.schedule('e', 'k', LONG, after => '1 h')",
        "awty.schedule('e', 'k', 'note', after => '1 h', on_conflict => LONG)",
        "awty.cancel(LONG, 'k')",
        "awty.cancel('e', LONG)",
        "awty.cancel('e', 'k', LONG)",
        "awty.register(LONG, 'shop.note')",
        "awty.register('new', LONG)",
        "awty.register('new', 'shop.note', on_missed => LONG)",
        "awty.register('new', 'shop.note', keep_history => LONG)",
        "awty.alter(LONG, timeout => '1 s')",
        "awty.alter('note', function => LONG)",
        "awty.alter('note', on_missed => LONG)",
        "awty.unregister(LONG)",
        "awty.pause(LONG)",
        "awty.resume(LONG)",
        "awty.allow(LONG, 'shop')",
        "awty.disallow(LONG, 'shop')",
        "awty.next_slot(now(), LONG)",
    ];
    let mut witness = shop.client();
    let postmaster = shop.cluster.postmaster_pid();
    for call in calls {
        let mut client = shop.client();
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
        shop.cluster.limit_memory(pid, MEMORY);
        client.batch_execute(&format!("SELECT octet_length({long})")).unwrap_or_else(|error| panic!("{error:?}"));
        let error = client.batch_execute(&format!("SELECT {}", call.replace("LONG", &long))).unwrap_err();
        let code = error.code().map(|code| code.code().to_owned());
        let refused = code.as_deref().is_some_and(|code| ["22001", "22023", "42602", "42622"].contains(&code));
        assert!(refused, "{call}: {error:?}");
        assert!(error.to_string().len() < 10_000, "{call}: the text is in the message");
    }
    witness.batch_execute("SELECT FROM shop.note").expect("the server has ended all sessions");
    assert_eq!(shop.cluster.postmaster_pid(), postmaster);
}
