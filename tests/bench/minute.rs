//! Compares pg_cron and awty in one server. pg_cron's jobs are due half a minute before awty's jobs, so that the jobs
//! do not disturb each other.

use crate::options::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, median};
use awty_testkit::poll;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(90);
const MANY: u32 = 30;

const SET_UP: &str = "
CREATE EXTENSION pg_cron;
CREATE TABLE shop.started (who text, at timestamptz);
CREATE FUNCTION shop.note_start() RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.started VALUES ('awty', clock_timestamp()) $$;
SELECT awty.register('note', 'shop.note_start', run_as => 'postgres')";

struct Starts {
    first: Pairs,
    last: Pairs,
}

const MINUTES: &str = "
SELECT extract(epoch FROM min(at) - moment)::float8 * 1000, extract(epoch FROM max(at) - moment)::float8 * 1000
FROM (SELECT at, date_bin('1 min', at, timestamptz '2000-01-01 00:00:00Z' + $2 * interval '1 s') AS moment
      FROM shop.started WHERE who = $1) AS s
GROUP BY moment HAVING count(*) = $3 ORDER BY moment";

fn measure(shop: &Shop, jobs: u32, minutes: usize) -> Starts {
    let mut client = shop.client("postgres");
    let begin = format!(
        "SET client_min_messages = warning; TRUNCATE shop.started;
         SELECT cron.schedule('note ' || n, '* * * * *', 'INSERT INTO shop.started VALUES (''pg_cron'', clock_timestamp())')
             FROM generate_series(1, {jobs}) AS n;
         SELECT awty.repeat('note', cron => '30 * * * * *', entity_key => n::text) FROM generate_series(1, {jobs}) AS n"
    );
    client.batch_execute(&begin).unwrap();
    let mut of = |who: &str, second: f64| {
        let found = poll(&format!("{minutes} minutes of {who}"), PATIENCE * (minutes as u32 + 1), || {
            let rows = client.query(MINUTES, &[&who, &second, &i64::from(jobs)]).unwrap();
            if rows.len() < minutes { Err(format!("{} so far", rows.len())) } else { Ok(rows) }
        });
        let rows = found.unwrap_or_else(|message| panic!("{message}"));
        let column = |column| rows.iter().take(minutes).map(|row| row.get(column)).collect::<Vec<f64>>();
        (column(0), column(1))
    };
    let ((first, last), (their_first, their_last)) = (of("awty", 30.0), of("pg_cron", 0.0));
    say(&format!("{jobs} a minute, last starts in ms: awty {last:.1?}, pg_cron {their_last:.1?}"));
    let end = "SELECT cron.unschedule(jobid) FROM cron.job; SELECT awty.cancel_many('job', array_agg(entity_key)) FROM awty.repetition";
    client.batch_execute(end).unwrap();
    Starts { first: Pairs { ours: first, theirs: their_first }, last: Pairs { ours: last, theirs: their_last } }
}

pub fn minute(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("minute");
    let mut shop = Shop::with_orders(&[], 1);
    let offered = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_cron'";
    if one(&mut shop.client("postgres"), offered, &[]).get::<_, i64>(0) == 0 {
        outcome.note(
            "pg_cron is not installed, so nothing was measured beside it; on Debian: apt-get install postgresql-N-cron",
        );
        return outcome;
    }
    let socket = shop.cluster.socket_directory().display().to_string();
    shop.cluster.configure(&format!(
        "shared_preload_libraries = 'awty,pg_cron'\ncron.database_name = 'postgres'\ncron.host = '{socket}'\n"
    ));
    shop.cluster.restart();
    shop.cluster.execute("postgres", &[SET_UP]);
    let minutes = options.rounds().min(5);
    for jobs in [1, MANY] {
        let Starts { first, last } = measure(&shop, jobs, minutes);
        let detail = |pairs: &Pairs| {
            let [ours, theirs] = [&pairs.ours, &pairs.theirs].map(|times| readable(median(times)));
            format!("awty {ours} ms, pg_cron {theirs} ms; {minutes} minutes of each")
        };
        let what = format!(
            "lateness of the last of {} a minute",
            if jobs == 1 { "one job".into() } else { format!("{jobs} jobs") }
        );
        outcome.ratio([&what, "pg_cron"], &last, Wanted::Nothing, detail(&last));
        if jobs > 1 {
            let rate = |first: &[f64], last: &[f64]| -> Vec<f64> {
                first.iter().zip(last).map(|(first, last)| f64::from(jobs - 1) / ((last - first) / 1000.0)).collect()
            };
            let rates = Pairs { ours: rate(&first.ours, &last.ours), theirs: rate(&first.theirs, &last.theirs) };
            let [ours, theirs] = [&rates.ours, &rates.theirs].map(|rates| readable(median(rates)));
            let detail = format!("awty {ours}/s, pg_cron {theirs}/s; {minutes} minutes of each");
            outcome.ratio(
                [&format!("starts/s of {jobs} jobs of a minute"), "pg_cron"],
                &rates,
                Wanted::Nothing,
                detail,
            );
        }
    }
    outcome
}
