use super::by_locks::must;
use super::hood::Neighbour;
use super::trap::Trap;
use awty_testkit::postgres::Client;
use std::time::Duration;

fn every_second(n: &Neighbour, client: &mut Client, trap: &Trap, count: usize) {
    let (uri, before) = (trap.uri("/"), trap.accepted());
    must(
        client,
        &format!(
            "SELECT awty_http.schedule('{uri}' || i, every => '1 s', jitter => '0', timeout => '10 s', keep_response => true)
             FROM generate_series(1, {count}) AS i"
        ),
    );
    while trap.accepted() == before && n.wait(Duration::from_millis(100)) {}
}

fn due(client: &mut Client, origin: &str, job: &str, path: &str, count: usize) {
    must(
        client,
        &format!(
            "SELECT awty.schedule_many('{origin}', array_agg('{path}#' || i), '{job}', after => '0',
                 args => array_agg('{{\"timeout\": \"15 min\"}}'::jsonb)) FROM generate_series(1, {count}) AS i"
        ),
    );
}

pub fn hangs(n: &Neighbour, client: &mut Client) {
    let (origin, job, before) = (n.traps.hang.uri(""), n.job(), n.traps.hang.accepted());
    must(client, &format!("SELECT awty.alter_target('{job}', '{origin}', concurrency => 1000)"));
    due(client, &origin, &job, &format!("/hang/{}", n.round), if n.round == 0 { 2_500 } else { 100 });
    while n.round == 0 && n.traps.hang.accepted() == before && n.wait(Duration::from_millis(100)) {}
    n.hold();
}

pub fn hangs_in_many_jobs(n: &Neighbour, client: &mut Client) {
    let (origin, job) = (n.traps.hang.uri(""), n.job());
    if n.round == 0 {
        for number in 0..50 {
            must(client, &format!("SELECT awty.register('{job}-{number}', heartbeat => '15 s', max_attempts => 0)"));
            must(client, &format!("SELECT awty.allow('{job}-{number}', 'gateway', 'claim')"));
            due(client, &origin, &format!("{job}-{number}"), "/many", 12);
        }
    }
    due(client, &origin, &job, &format!("/many/{}", n.round), 100);
    n.hold();
}

pub fn large_requests(n: &Neighbour, client: &mut Client) {
    let (origin, job, before) = (n.traps.deaf.uri(""), n.job(), n.traps.deaf.accepted());
    must(client, &format!("SELECT awty.alter_target('{job}', '{origin}', concurrency => 1000)"));
    must(
        client,
        &format!(
            "SELECT awty_http.schedule('{origin}/large/' || i, after => '0', timeout => '15 min', retries => '{{\"max_attempts\": 1}}',
                 headers => jsonb_build_object('X-Large', repeat('a', 8000), 'X-More', repeat('b', 8000)),
                 body => to_jsonb(repeat('c', 250000)))
             FROM generate_series({}, {}) AS i",
            100 * n.round,
            100 * n.round + 99
        ),
    );
    while n.round == 0 && n.traps.deaf.accepted() == before && n.wait(Duration::from_millis(100)) {}
    n.hold();
}

pub fn early_answers(n: &Neighbour, client: &mut Client) {
    every_second(n, client, &n.traps.early, 6);
}

pub fn endless_answers(n: &Neighbour, client: &mut Client) {
    every_second(n, client, &n.traps.head, 6);
    every_second(n, client, &n.traps.body, 6);
}

pub fn drips(n: &Neighbour, client: &mut Client) {
    every_second(n, client, &n.traps.drip, 20);
}

pub fn asks_again(n: &Neighbour, client: &mut Client) {
    every_second(n, client, &n.traps.again, 20);
    must(
        client,
        &format!("SELECT awty_http.unschedule('{}' || i) FROM generate_series(1, 20) AS i", n.traps.again.uri("/")),
    );
}
