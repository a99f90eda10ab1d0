use super::*;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{DuplexStream, duplex};

async fn ready() -> (Ready, DuplexStream) {
    let (stream, peer) = duplex(1_024);
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let task = tokio::spawn(connection).abort_handle();
    let mut ready =
        Ready { sender, count: Count::default(), allowance: Allowance::default(), born: Instant::now(), task };
    ready.sender.ready().await.unwrap();
    (ready, peer)
}

fn key(number: usize) -> Key {
    Key { tenant: 1, tls: false, host: format!("h{number}"), address: SocketAddr::from(([127, 0, 0, 1], 80)) }
}

#[tokio::test]
async fn what_rests_is_bounded_and_the_oldest_goes_first() {
    let (pool, mut peers) = (Pool::new(MOST), Vec::new());
    for number in 0..=MOST {
        let (ready, peer) = ready().await;
        pool.put(key(number / 2), ready);
        peers.push(peer);
    }
    assert_eq!(pool.lock().count, MOST);
    assert!(pool.take(&key(0)).is_some() && pool.take(&key(0)).is_none());
    assert!(pool.take(&key(1)).is_some() && pool.take(&key(1)).is_some() && pool.take(&key(MOST)).is_none());
    assert_eq!(pool.lock().count, MOST - 3);
}

#[tokio::test]
async fn none_rests_for_too_long() {
    let (pool, mut peers) = (Pool::new(MOST), Vec::new());
    for _ in 0..20 {
        let (ready, peer) = ready().await;
        pool.put(key(0), ready);
        peers.push(peer);
    }
    assert_eq!(pool.lock().count, 20);
    let long_ago = Instant::now().checked_sub(REST).unwrap();
    pool.lock().rows.values_mut().flatten().skip(1).for_each(|(since, _)| *since = long_ago);
    pool.sweep();
    assert_eq!(pool.lock().count, 1);
    pool.lock().rows.values_mut().flatten().for_each(|(since, _)| *since = long_ago);
    assert!(pool.take(&key(0)).is_none());
    let idle = pool.lock();
    assert_eq!((idle.count, idle.rows.len()), (0, 0));
}
