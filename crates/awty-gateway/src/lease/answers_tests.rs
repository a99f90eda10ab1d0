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

#[test]
fn answers_that_ask_for_a_change_delay_no_others() {
    let failed = batch(&[1, 2, 3, 4, 5], &[1, 4]);
    let Ok([others, asking]) = failed.halves() else { panic!("a batch of five has halves") };
    assert_eq!([leases(&others), leases(&asking)], [vec![2, 3, 5], vec![1, 4]]);
    let mut queue = vec![asking, others];
    let now = Instant::now();
    assert_eq!(next(&mut queue, now).map(|batch| leases(&batch)), Some(vec![2, 3, 5]));
    // A later batch without such answers also comes first.
    queue.push(batch(&[6], &[]));
    let now = Instant::now();
    assert_eq!(next(&mut queue, now).map(|batch| leases(&batch)), Some(vec![6]));
    let asking = next(&mut queue, now).unwrap();
    assert_eq!(asking.halves().map(|halves| halves.map(|half| leases(&half))).ok(), Some([vec![1], vec![4]]));
}

#[test]
fn a_failed_batch_is_split_by_jobs() {
    let failed = batch(&[101, 1, 201, 2, 102, 202, 301], &[]);
    let Ok([first, second]) = failed.halves() else { panic!("a batch of four jobs has halves") };
    assert_eq!([leases(&first), leases(&second)], [vec![101, 102, 201, 202], vec![301, 1, 2]]);
    let Ok([one, other]) = first.halves() else { panic!("a batch of two jobs has halves") };
    assert_eq!([leases(&one), leases(&other)], [vec![101, 102], vec![201, 202]]);
    assert_eq!(one.halves().map(|halves| halves.map(|half| leases(&half))).ok(), Some([vec![101], vec![102]]));
}
