//! Measures requests for lists. Ignores the first requests, because PostgreSQL must plan their statements.

use super::compare::add;
use crate::calls::Options;
use crate::calls::place::Place;
use crate::results::{Outcome, Wanted};
use awty_testkit::postgres::Client;
use awty_testkit::{PATIENCE, poll};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

const FEW: i32 = 1_000;
const ORIGINS: i32 = 100;
const FACTOR: i32 = 50;
const ATTEMPTS: i32 = 10;
/// Number of requests for each list. Many more requests would exceed the gateway's limit of a hundred requests that a
/// token may send at once.
const REQUESTS: usize = 30;
const UNCOUNTED: usize = 5;
const WANTED: Wanted = Wanted::AtMost(2.0);

const LISTS: [(&str, &str); 4] = [
    ("the first page of the schedules", "/v1/schedules"),
    ("ten schedules of one origin", "/v1/schedules?limit=10&origin=https%3A%2F%2Fh1.example.com"),
    ("the calls of one schedule", "/v1/schedules/{7}/attempts"),
    ("the calls of a schedule of a second", "/v1/schedules/{8}/attempts"),
];
const OF_A_DAY: i32 = 86_400;

const ENDPOINTS: &str = "INSERT INTO awty_http_internal.endpoint (id, job, uri, entity_name, entity_key, at, created_by)
    SELECT awty_http_internal.id(t.number, o.origin || '/' || n), t.job, o.origin || '/' || n, o.origin, '/' || n, now() + interval '1 day',
        'app'::regrole
    FROM awty_http.tenant AS t, generate_series($1::int, $2::int) AS n, LATERAL (SELECT 'https://h' || n % $3::int || '.example.com' AS origin) AS o";
const CHECKS: &str = "SELECT sum(awty.schedule_many(o.origin, o.keys, 'http.app', after => interval '1 day'))
    FROM (SELECT 'https://h' || n % $3::int || '.example.com' AS origin, array_agg('/' || n) AS keys
          FROM generate_series($1::int, $2::int) AS n GROUP BY 1) AS o";
const CALLS: &str = "INSERT INTO awty_internal.attempt
    SELECT n::bigint * 1000 + a, n, 'http.app', 'https://h' || n % $3::int || '.example.com', '/' || n, t.at, t.at, 0, 1, false, 'app'::regrole, t.at,
        'key', t.at, t.at, t.at, 'gateway', t.at + interval '50 ms', '10 ms', true, NULL, NULL,
        '{\"status\": 200, \"lateness\": 0.01, \"phases\": {\"queue\": 0.001, \"first_byte\": 0.04, \"total\": 0.05}}', 'app'::regrole
    FROM generate_series($1::int, $2::int) AS n, generate_series(1, $4::int) AS a,
        LATERAL (SELECT now() - interval '1 s' * $5::int * a AS at) AS t";

fn fine(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

pub fn fill(client: &mut Client, from: i32, to: i32, attempts: i32) {
    client.execute(ENDPOINTS, &[&from, &to, &ORIGINS]).unwrap();
    client.execute(CHECKS, &[&from, &to, &ORIGINS]).unwrap();
    client.execute(CALLS, &[&from, &to, &ORIGINS, &attempts, &60]).unwrap();
    analyze(client);
}

fn analyze(client: &mut Client) {
    for statement in
        ["VACUUM ANALYZE awty_http_internal.endpoint, awty.future_job, awty_internal.attempt", "CHECKPOINT"]
    {
        client.batch_execute(statement).unwrap();
    }
}

pub fn ask(address: &str, header: &str, path: &str) -> Result<f64, String> {
    let began = Instant::now();
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}\r\nConnection: close\r\n\r\n")
        .map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    let head = answer.lines().next().unwrap_or_default();
    if head.contains(" 200 ") { Ok(began.elapsed().as_secs_f64()) } else { Err(format!("{path}: {head}")) }
}

fn times(place: &mut Place) -> Result<[Vec<f64>; LISTS.len()], String> {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let token = "SELECT awty_http.create_token('app', 'read', '1 day')::text";
    let mut client = place.app();
    let token: String = client.query_one(token, &[]).map_err(|error| format!("{error:?}"))?.get(0);
    let token = format!("Authorization: Bearer {token}");
    let mut id = |n: u32| -> String {
        let sql = format!("SELECT awty_http_internal.id(number, 'https://h{n}.example.com/{n}') FROM awty_http.tenant");
        client.query_one(&sql, &[]).unwrap().get(0)
    };
    let (seven, eight) = (id(7), id(8));
    place.start_gateway_at(&address, &[]);
    poll("the gateway to answer", PATIENCE, || ask(&address, &token, &format!("/v1/schedules/{seven}")))?;
    let mut all = [const { Vec::new() }; LISTS.len()];
    for ((name, path), times) in LISTS.iter().zip(&mut all) {
        let path = path.replace("{7}", &seven).replace("{8}", &eight);
        for request in 0..REQUESTS {
            let took = ask(&address, &token, &path).map_err(|error| format!("{name}: {error}"))?;
            if request >= UNCOUNTED {
                times.push(took);
            }
        }
    }
    place.end_gateway();
    Ok(all)
}

pub fn figures(options: &Options, outcome: &mut Outcome) -> Result<(), String> {
    let mut place = Place::open();
    let mut client = place.cluster.superuser("postgres");
    client.batch_execute("ALTER ROLE gateway NOINHERIT").unwrap();
    let many = i32::try_from(options.schedules).unwrap() * FACTOR;
    fill(&mut client, 1, FEW, ATTEMPTS);
    let few = times(&mut place)?;
    println!("{many} schedules and {ATTEMPTS} attempts of each are made");
    fill(&mut client, FEW + 1, many, ATTEMPTS);
    client.execute("DELETE FROM awty_internal.attempt WHERE id = 8", &[]).unwrap();
    client.execute(CALLS, &[&8, &8, &ORIGINS, &OF_A_DAY, &1]).unwrap();
    analyze(&mut client);
    let size = "SELECT count(*), (SELECT count(*) FROM awty.attempt) FROM awty.future_job WHERE job = 'http.app'";
    let size = client.query_one(size, &[]).unwrap();
    let now = times(&mut place)?;
    let more = format!("; {} checks, {} attempts", size.get::<_, i64>(0), size.get::<_, i64>(1));
    for (((name, _), now), few) in LISTS.iter().zip(now).zip(few) {
        add(outcome, [name, "the same among 1,000 schedules"], [&now, &few], WANTED, fine, &more);
    }
    Ok(())
}
