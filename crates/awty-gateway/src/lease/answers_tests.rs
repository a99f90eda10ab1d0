use super::*;
use crate::db::{Answer, Changes};
use tokio::sync::Semaphore;

fn batch(leases: &[i64], asking: &[i64]) -> Batch {
    let all = Arc::new(Semaphore::new(leases.len()));
    let booking = |lease: &i64| Booking {
        lease: *lease,
        job: if *lease < 100 { "http.app".into() } else { format!("http.{}", lease / 100) },
        answer: Answer::Complete { again: None },
        result: serde_json::Value::Null,
        changes: asking.contains(lease).then(|| Changes { asked: Some(("stop", String::new())), ..Changes::default() }),
        wait: None,
        send: None,
    };
    let places = leases.iter().map(|_| all.clone().try_acquire_owned().unwrap()).collect();
    Batch::new(leases.iter().map(booking).collect(), places)
}

fn leases(batch: &Batch) -> Vec<i64> {
    batch.bookings.iter().map(|booking| booking.lease).collect()
}

fn parts(batch: Batch) -> Vec<Batch> {
    let length = batch.bookings.len();
    let Ok(parts) = batch.parts() else { panic!("a batch of {length} has no parts") };
    assert!(parts.iter().all(|part| part.bookings.len() == part.places.len()));
    parts
}

#[test]
fn answers_that_ask_for_a_change_delay_no_others() {
    let failed = batch(&[1, 2, 3, 4, 5], &[1, 4]);
    let mut queue = parts(failed);
    assert_eq!(queue.iter().map(leases).collect::<Vec<_>>(), [vec![2, 3, 5], vec![1, 4]]);
    queue.reverse();
    let now = Instant::now();
    assert_eq!(next(&mut queue, now).map(|batch| leases(&batch)), Some(vec![2, 3, 5]));
    // A later batch without such answers also comes first.
    queue.push(batch(&[6], &[]));
    let now = Instant::now();
    assert_eq!(next(&mut queue, now).map(|batch| leases(&batch)), Some(vec![6]));
    let asking = next(&mut queue, now).unwrap();
    assert_eq!(parts(asking).iter().map(leases).collect::<Vec<_>>(), [vec![1], vec![4]]);
}

#[test]
fn a_failed_batch_is_split_by_jobs() {
    let failed = parts(batch(&[101, 1, 201, 2, 102, 202, 301], &[202]));
    let all: Vec<Vec<i64>> = failed.iter().map(leases).collect();
    assert_eq!(all, [vec![101, 102], vec![201, 202], vec![301], vec![1, 2]]);
    let of_each = failed.into_iter().map(|batch| batch.parts().map_or(1, |parts| parts.len()));
    assert_eq!(of_each.collect::<Vec<_>>(), [2, 2, 1, 2]);
}
