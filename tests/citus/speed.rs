//! Measures clusters of one, two and four nodes. All servers share the cores of this machine.

use crate::place::Place;

const PER_NODE: i64 = 10_000;

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
        for job in ["one", "set"] {
            place.on_all_as_shop(&format!("SELECT awty.register('{job}', 'shop.{job}')"));
            let at: String = place.value("SELECT (date_trunc('second', now()) + interval '8 s')::text");
            let schedule = format!(
                "SELECT awty.schedule_many('{job}', ARRAY(SELECT n::text FROM generate_series(1, {PER_NODE}) AS n), '{job}',
                     at => array_fill('{at}'::timestamptz, ARRAY[{PER_NODE}]))"
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
            line += &format!(" {:.0} ({job})", (PER_NODE * nodes as i64) as f64 / seconds);
        }
        lines.push(line);
    }
    lines.join("\n")
}
