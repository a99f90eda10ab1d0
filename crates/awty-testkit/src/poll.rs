use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time limit of each wait, long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

const PAUSE: Duration = Duration::from_millis(20);

pub fn poll<T>(what: &str, within: Duration, mut ask: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let start = Instant::now();
    loop {
        match ask() {
            Ok(value) => return Ok(value),
            Err(seen) if start.elapsed() >= within => {
                return Err(format!("waited {:.1} s for {what}; last seen: {seen}", start.elapsed().as_secs_f64()));
            }
            Err(_) => pause(),
        }
    }
}

#[allow(clippy::disallowed_methods)] // the only place that sleeps, between two observations
fn pause() {
    // The pause is random, so that a test does not always poll at the same fraction of a second.
    let part = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos() % 1_000);
    std::thread::sleep(PAUSE * (500 + part) / 1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_first_answer() {
        let mut asked = 0;
        let answer = poll("the third question", PATIENCE, || {
            asked += 1;
            if asked == 3 { Ok(asked) } else { Err(asked.to_string()) }
        });
        assert_eq!(answer, Ok(3));
    }

    #[test]
    fn a_failure_names_what_was_awaited_and_what_was_seen() {
        let message = poll::<()>("the end", Duration::ZERO, || Err("the beginning".into())).unwrap_err();
        assert!(message.contains("for the end; last seen: the beginning"), "{message}");
    }
}
