use crate::options::Options;
use crate::results::{Outcome, Wanted, readable};
use crate::shop::{Shop, one};
use crate::stats::{Pairs, median};
use std::cell::RefCell;
use std::time::Instant;

const CLAIMS: i32 = 30;
const FILL: &str = "SELECT count(*) FROM (SELECT awty.schedule_many($2, array_agg(n::text), 'mail', after => '0') FROM generate_series(1, $1) AS n) AS s";

pub fn targets(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("targets");
    let n = options.size(100_000, 1_000_000) as i32;
    let shop = Shop::open(&[]);
    let mut client = shop.cluster.superuser("postgres");
    client.batch_execute("SELECT awty.register('mail'); SET synchronous_commit = off").unwrap();
    client.batch_execute("SELECT awty.alter_target('mail', 'blocked', blocked_until => 'infinity')").unwrap();
    let client = RefCell::new(client);
    for batch in [20, 500] {
        let claims = |blocked: i32| {
            let client = &mut *client.borrow_mut();
            client.batch_execute("TRUNCATE awty.future_job, awty_internal.lease").unwrap();
            for (target, checks) in
                [("blocked", blocked), ("free", batch * CLAIMS)].into_iter().filter(|(_, checks)| *checks > 0)
            {
                one(client, FILL, &[&checks, &target]);
            }
            client.batch_execute("VACUUM ANALYZE awty.future_job").unwrap();
            client.batch_execute("SELECT pg_sleep(2)").unwrap();
            let mut seconds = 0.0;
            for _ in 0..CLAIMS {
                let began = Instant::now();
                let claimed = client.query("SELECT lease FROM awty.claim('{mail}', 'bench', $1)", &[&batch]).unwrap();
                seconds += began.elapsed().as_secs_f64();
                let leases: Vec<i64> = claimed.iter().map(|row| row.get(0)).collect();
                assert_eq!(leases.len(), batch as usize);
                client.execute("SELECT awty.complete_many($1)", &[&leases]).unwrap();
            }
            seconds / f64::from(CLAIMS)
        };
        let label = format!("claims of {batch} beside a blocked target");
        let times = Pairs::measure(&label, options.rounds(), || claims(n), || claims(0));
        let each = |seconds: &[f64]| readable(median(seconds) * 1e3);
        let detail = format!(
            "{} ms against {} ms a claim; {} due",
            each(&times.ours),
            each(&times.theirs),
            readable(f64::from(n))
        );
        let what = format!("external workers: a claim of {batch} beside a blocked target with everything else due");
        outcome.ratio(
            [what.as_str(), "the same without what is due of that target"],
            &times,
            Wanted::AtMost(1.2),
            detail,
        );
    }
    outcome
}
