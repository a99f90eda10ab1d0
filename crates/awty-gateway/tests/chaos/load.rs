use crate::checker::{Fate, Plan};
use crate::world::{TENANTS, Tenant, World};
use awty_testkit::Cluster;
use awty_testkit::postgres::{Client, NoTls};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const SCHEDULES: usize = 12;
const SECOND: i64 = 1_000_000;

pub fn schedule(world: &World) {
    for (role, path) in TENANTS {
        let mut client = world.cluster.client("postgres", role);
        for number in 0..SCHEDULES {
            let origin = &world.origins[number % world.origins.len()];
            let uri = format!("{origin}{path}/{number}");
            let sql =
                "SELECT awty_http.schedule($1, every => '1 s', jitter => '0', catch_up => '1 day', timeout => '2 s')";
            client.execute(sql, &[&uri]).unwrap();
        }
    }
}

pub fn plans(world: &World, first: &BTreeMap<String, i64>) -> Vec<Plan> {
    let sql = "SELECT entity_key, (EXTRACT(epoch FROM first_check_at) * 1000000)::bigint FROM awty.future_job WHERE job ^@ 'http'";
    let rows = world.cluster.superuser("postgres").query(sql, &[]).unwrap();
    let plan = |row: &awty_testkit::postgres::Row| {
        let path: String = row.get(0);
        Plan { first: first[&path], path, period: SECOND, pending: row.get(1) }
    };
    rows.iter().map(plan).collect()
}

pub fn first_slots(world: &World) -> BTreeMap<String, i64> {
    let sql = "SELECT entity_key, (EXTRACT(epoch FROM first_check_at) * 1000000)::bigint FROM awty.future_job WHERE job ^@ 'http'";
    let rows = world.cluster.superuser("postgres").query(sql, &[]).unwrap();
    assert_eq!(rows.len(), SCHEDULES * TENANTS.len());
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

pub struct Senders {
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<BTreeMap<String, Fate>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Senders {
    pub fn start(world: &World, seed: u64) -> Self {
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<Mutex<BTreeMap<String, Fate>>>::default());
        let start = |(number, tenant): (u64, Tenant)| {
            let (stop, sent, origins) = (stop.clone(), sent.clone(), world.origins.clone());
            let socket = world.cluster.socket_directory().to_path_buf();
            let mut random = StdRng::seed_from_u64(seed ^ (number + 1));
            std::thread::spawn(move || {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let mut config = awty_testkit::postgres::Config::new();
                    config.host_path(&socket).port(Cluster::PORT).dbname("postgres").user(tenant.0);
                    if let Ok(mut client) = config.connect(NoTls) {
                        while !stop.load(Ordering::Relaxed) {
                            count += 1;
                            let origin = &origins[random.random_range(0..origins.len())];
                            let path = format!("{}/send/{count}", tenant.1);
                            let commits = random.random_bool(0.8);
                            let fate = send(&mut client, &format!("{origin}{path}"), commits);
                            sent.lock().unwrap().insert(path, fate);
                            if fate == Fate::InDoubt {
                                break;
                            }
                            std::thread::park_timeout(Duration::from_millis(random.random_range(50..200)));
                        }
                    }
                    std::thread::park_timeout(Duration::from_millis(50));
                }
            })
        };
        let threads = (0..).zip(TENANTS).map(start).collect();
        Senders { stop, sent, threads }
    }

    pub fn stop(self) -> BTreeMap<String, Fate> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

fn send(client: &mut Client, uri: &str, commits: bool) -> Fate {
    let sent = client.transaction().and_then(|mut transaction| {
        transaction.execute("SELECT awty_http.send($1)", &[&uri])?;
        if commits { transaction.commit() } else { transaction.rollback() }
    });
    match sent {
        _ if !commits => Fate::RolledBack,
        Ok(()) => Fate::Committed,
        Err(_) => Fate::InDoubt,
    }
}
