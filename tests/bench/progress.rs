use std::sync::OnceLock;
use std::time::Instant;

pub fn say(what: &str) {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let seconds = BEGAN.get_or_init(Instant::now).elapsed().as_secs_f64();
    eprintln!("{seconds:>5.0} s  {what}");
}
