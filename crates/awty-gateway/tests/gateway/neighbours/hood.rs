use super::by_clients as clients;
use super::by_endpoints as endpoints;
use super::by_locks as locks;
use super::by_rows as rows;
use super::trap::{Manner, Trap};
use crate::shop::{Gateway, Shop};
use awty_testkit::postgres::Client;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

type Attack = fn(&Neighbour, &mut Client);

pub const ATTACKS: [(&str, Attack); 20] = [
    ("due checks that are locked", locks::locks_due_checks),
    ("schedules that are locked", locks::locks_schedules),
    ("an open transaction that unregistered a job with limits", locks::unregisters),
    ("an open transaction that registers the victim's names", locks::takes_names),
    ("changes of the victim's checks and schedules", locks::meddles),
    ("calls that hang", endpoints::hangs),
    ("calls of many jobs that hang", endpoints::hangs_in_many_jobs),
    ("large requests to a peer that does not read", endpoints::large_requests),
    ("answers of the class 1xx without end", endpoints::early_answers),
    ("heads and bodies without end", endpoints::endless_answers),
    ("answers that drip", endpoints::drips),
    ("endpoints that ask for calls again", endpoints::asks_again),
    ("many references to secrets", rows::references_to_secrets),
    ("secrets of the victim", rows::secrets_of_the_victim),
    ("thousands of job names", rows::job_names),
    ("other spellings of the victim's URI", rows::other_spellings),
    ("results with implausible values", rows::implausible_results),
    ("runs that take all their time", rows::slow_runs),
    ("idle connections to the API", clients::idle_connections),
    ("bad tokens", clients::bad_tokens),
];

#[derive(Clone)]
pub struct Target {
    pub origin: String,
    pub path: String,
    pub id: String,
}

pub struct Traps {
    pub hang: Trap,
    pub deaf: Trap,
    pub early: Trap,
    pub head: Trap,
    pub body: Trap,
    pub drip: Trap,
    pub again: Trap,
    pub quick: Trap,
}

impl Traps {
    fn set() -> Self {
        let more = "X-More: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
        Traps {
            hang: Trap::set(Manner::Hang),
            deaf: Trap::set(Manner::Deaf),
            early: Trap::set(Manner::Endless("", "HTTP/1.1 100 Continue\r\n\r\n")),
            head: Trap::set(Manner::Endless("HTTP/1.1 200 OK\r\n", more)),
            body: Trap::set(Manner::Endless("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", "aaaaaaaa")),
            drip: Trap::set(Manner::Slow("HTTP/1.1 200 OK\r\nX-Drip: ", "a")),
            again: Trap::set(Manner::Answer("200", "Awty-Again: 1 s\r\n")),
            quick: Trap::set(Manner::Answer("200", "")),
        }
    }

    pub fn all(&self) -> [&Trap; 8] {
        [&self.hang, &self.deaf, &self.early, &self.head, &self.body, &self.drip, &self.again, &self.quick]
    }
}

pub struct Neighbour {
    pub role: String,
    pub round: usize,
    pub target: Target,
    pub traps: Arc<Traps>,
    pub api: String,
    leaving: Arc<Leaving>,
}

#[derive(Default)]
struct Leaving(Mutex<bool>, Condvar);

impl Neighbour {
    pub fn wait(&self, length: Duration) -> bool {
        let lock = self.leaving.0.lock().unwrap();
        let (left, _) = self.leaving.1.wait_timeout_while(lock, length, |left| !*left).unwrap();
        !*left
    }

    pub fn hold(&self) {
        self.wait(Duration::from_secs(5));
    }

    pub fn job(&self) -> String {
        format!("http.{}", self.role)
    }
}

pub struct Hood {
    pub traps: Arc<Traps>,
    leaving: Arc<Leaving>,
    rounds: Vec<Arc<AtomicUsize>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

pub fn role(number: usize) -> String {
    format!("n{number:02}")
}

pub fn add_roles(shop: &Shop) {
    for number in 0..ATTACKS.len() {
        let role = role(number);
        shop.add_tenant(&role);
        shop.cluster.execute("postgres", &[&format!("CREATE SCHEMA {role} AUTHORIZATION {role}")]);
    }
}

impl Hood {
    pub fn attack(shop: &Shop, gateway: &Gateway, target: &Target) -> Self {
        let (traps, leaving) = (Arc::new(Traps::set()), Arc::<Leaving>::default());
        let rounds: Vec<Arc<AtomicUsize>> = ATTACKS.iter().map(|_| Arc::default()).collect();
        let threads = ATTACKS.iter().enumerate().map(|(number, (name, attack))| {
            let mut neighbour = Neighbour {
                role: role(number),
                round: 0,
                target: target.clone(),
                traps: traps.clone(),
                api: gateway.address(),
                leaving: leaving.clone(),
            };
            let (config, rounds) = (shop.cluster.config("postgres", &neighbour.role), rounds[number].clone());
            let run = move || {
                while neighbour.wait(Duration::from_millis(200)) {
                    attack(&neighbour, &mut config.connect(awty_testkit::postgres::NoTls).unwrap());
                    neighbour.round = rounds.fetch_add(1, Ordering::Relaxed) + 1;
                }
            };
            std::thread::Builder::new().name((*name).to_owned()).spawn(run).unwrap()
        });
        Hood { threads: threads.collect(), traps, leaving, rounds }
    }

    pub fn missing(&self) -> Option<&'static str> {
        let number = self.rounds.iter().position(|rounds| rounds.load(Ordering::Relaxed) == 0);
        let failed = self.threads.iter().position(|thread| thread.is_finished());
        failed.or(number).map(|number| ATTACKS[number].0)
    }

    pub fn rounds(&self) -> Vec<(&'static str, usize)> {
        let of =
            |(rounds, (name, _)): (&Arc<AtomicUsize>, &(&'static str, Attack))| (*name, rounds.load(Ordering::Relaxed));
        self.rounds.iter().zip(&ATTACKS).map(of).collect()
    }

    pub fn leave(self) {
        *self.leaving.0.lock().unwrap() = true;
        self.leaving.1.notify_all();
        let join = |thread: std::thread::JoinHandle<()>| {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            thread.join().is_err().then_some(name)
        };
        let failed: Vec<String> = self.threads.into_iter().filter_map(join).collect();
        assert!(failed.is_empty(), "these attacks failed: {failed:?}");
    }
}
