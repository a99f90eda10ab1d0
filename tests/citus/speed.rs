//! Measures clusters of one, two and four nodes, which share the cores of this machine.

use crate::place::Place;

/// Checks per node. `tell` has fewer, because its writes on other nodes need slow two-phase commits.
const PER_NODE: [(&str, i64); 3] = [("one", 10_000), ("set", 10_000), ("tell", 1_000)];

const JOBS: &[&str] = &[
    "CREATE FUNCTION shop.one(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$",
    "CREATE FUNCTION shop.set(j awty.future_job[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$",
];

pub fn speed(_: &mut Place) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut lines = vec![format!("checks a second of the whole cluster, on {cores} cores for all servers:")];
    for nodes in [1, 2, 4] {
        let place = Place::open(nodes);
        for statement in JOBS {
            place.shop().batch_execute(statement).unwrap();
        }
        let mut line = format!("   {nodes} nodes:");
        for (job, checks) in PER_NODE {
            place.on_all_as_shop(&format!("SELECT awty.register('{job}', 'shop.{job}', replace => true)"));
            let at: String = place.value("SELECT (date_trunc('second', now()) + interval '8 s')::text");
            let schedule = format!(
                "SELECT awty.schedule_many('{job}', ARRAY(SELECT n::text FROM generate_series(1, {checks}) AS n), '{job}',
                     at => array_fill('{at}'::timestamptz, ARRAY[{checks}]))"
            );
            for node in &place.nodes {
                node.run_as("shop", &schedule);
            }
            place.await_all_ended();
            let span = format!(
                "SELECT extract(epoch FROM max(finished_at) - '{at}'::timestamptz)::text FROM awty.future_job_history WHERE job = '{job}'"
            );
            let seconds =
                |node| -> f64 { awty_testkit::Cluster::value::<String>(node, "postgres", &span).parse().unwrap() };
            let seconds = place.nodes.iter().map(seconds).fold(0.0, f64::max);
            line += &format!(" {:.0} ({job})", (checks * nodes as i64) as f64 / seconds);
        }
        let (told, runs): (i64, i64) = (place.value("SELECT count(*) FROM shop.outbox"), 1_000 * nodes as i64);
        assert_eq!(told, runs, "runs were lost or done twice");
        lines.push(line);
    }
    lines.join("\n")
}
