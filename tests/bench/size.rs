use crate::options::Options;
use crate::progress::say;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one, sleep_until};
use awty_testkit::poll;
use std::fs;
use std::time::{Duration, Instant};

pub fn memory(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("memory");
    let (few, many) = (options.size(10_000, 10_000), options.size(50_000, 1_000_000));
    let settings = [("awty.max_workers_per_role", "1"), ("awty.worker_idle", "2s")];
    let shop = Shop::with_orders(&settings, few + many);
    let mut client = shop.client("postgres");
    let sql = "SELECT max(id) FILTER (WHERE n = $1), max(id), begin FROM (
                   SELECT n, begin, awty.schedule('orders', n::text, 'one', at => begin + (n > $1)::int * interval '1 s') AS id
                   FROM (SELECT awty.next_slot(clock_timestamp() + ($2::int / 8000 + 1) * interval '1 s') AS begin) AS b,
                        generate_series(1, $2) AS n) AS s
               GROUP BY begin";
    let row = one(&mut client, sql, &[&(few as i32), &((few + many) as i32)]);
    let (first, last): (i64, i64) = (row.get(0), row.get(1));
    sleep_until(&mut client, row.get(2));
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'awty worker'";
    let (mut pid, mut after_few, mut now) = (0, None, 0.0);
    let done = poll("the worker to have done it all", Duration::from_secs(1800), || {
        if let Some(worker) = client.query_opt(sql, &[]).unwrap().map(|row| row.get::<_, i32>(0)) {
            assert!(pid == 0 || pid == worker, "another worker has taken over");
            pid = worker;
            now = own_memory(worker).unwrap_or(now);
        }
        let pending = "SELECT id FROM awty.future_job WHERE id = ANY ($1)";
        let left: Vec<i64> =
            client.query(pending, &[&vec![first, last]]).unwrap().iter().map(|row| row.get(0)).collect();
        if !left.contains(&first) && after_few.is_none() {
            after_few = Some(now);
        }
        if left.contains(&last) { Err(format!("it has {now} kB")) } else { Ok(()) }
    });
    done.unwrap_or_else(|message| panic!("{message}"));
    let after_few = after_few.filter(|_| pid > 0).expect("a worker that could be looked at");
    let what = format!("memory of a worker after {} checks", readable(f64::from(few + many)));
    let against = format!("after {}", readable(f64::from(few)));
    let detail = format!("{} kB, {} kB before; RssAnon", readable(now), readable(after_few));
    outcome.value([&what, &against], (now - after_few) / 1024.0, "MB more", Wanted::AtMost(2.0), detail);
    outcome
}

fn own_memory(pid: i32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}

pub fn churn(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("churn");
    let (steady, total) = (options.size(100_000, 100_000), options.size(200_000, 5_000_000));
    let orders = 10 * steady;
    let shop = Shop::with_orders(&[], orders);
    shop.add("fresh", 1);
    let size = "SELECT pg_total_relation_size('awty.future_job')::float8";
    shop.cluster.execute("fresh", &[&format!(
        "SELECT count(awty.schedule('orders', n::text, 'one', after => '1 day')) FROM generate_series(1, {steady}) AS n"
    )]);
    let fresh: f64 = shop.cluster.value("fresh", size);

    let mut client = shop.client("postgres");
    let (mut scheduled, mut most, mut said, began) = (0, fresh, 0, Instant::now());
    while scheduled < total {
        let pending: i64 = one(&mut client, "SELECT count(*) FROM awty.future_job", &[]).get(0);
        let missing = steady.saturating_sub(pending as u32).min(steady / 5);
        if missing < steady / 50 {
            client.batch_execute("SELECT pg_sleep(0.05)").unwrap();
            continue;
        }
        let sql = "SELECT count(awty.schedule('orders', (n % $3)::text, 'one', at => clock_timestamp() + n % 10 * interval '1 s'))
                   FROM generate_series($1::int, $2::int) AS n";
        one(&mut client, sql, &[&(scheduled as i32 + 1), &((scheduled + missing) as i32), &(orders as i32)]);
        scheduled += missing;
        most = most.max(one(&mut client, size, &[]).get(0));
        if scheduled * 10 / total > said {
            said = scheduled * 10 / total;
            say(&format!(
                "{} of {} came, largest {} times",
                readable(scheduled.into()),
                readable(total.into()),
                most / fresh
            ));
        }
    }
    let end: f64 = one(&mut client, size, &[]).get(0);
    let megabytes = |bytes: f64| readable(bytes / 1024.0 / 1024.0);
    let [count, pending] = [total, steady].map(|n| readable(n.into()));
    let what = format!("size of future_job and its indexes after {count} checks came and went at {pending} pending");
    let rate = readable(f64::from(scheduled) / began.elapsed().as_secs_f64());
    let detail = format!(
        "{} MB, largest {} MB, fresh {} MB; {rate} checks/s came and went",
        megabytes(end),
        megabytes(most),
        megabytes(fresh)
    );
    let against = format!("{pending} freshly scheduled");
    outcome.value([&what, &against], end / fresh, "×", Wanted::AtMost(3.0), detail);
    outcome
}
