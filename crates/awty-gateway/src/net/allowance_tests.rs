use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends `bytes` to a connection below TLS, which reads in pieces of 4 KiB, as TLS does. `data` is how much of each
/// piece is data. Returns how many bytes were read before the end or the first error.
async fn read(bytes: usize, data: usize) -> usize {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (tcp, peer) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    let (allowance, mut peer) = (Allowance::default(), peer.unwrap().0);
    let mut metered = Metered::new(tcp.unwrap(), allowance.clone());
    let sent = tokio::spawn(async move { peer.write_all(&vec![0; bytes]).await });
    let (mut piece, mut read) = (vec![0; 4_096], 0);
    while metered.read_exact(&mut piece).await.is_ok() {
        read += piece.len();
        if allowance.take_data(data).is_err() {
            break;
        }
    }
    drop(metered);
    drop(sent.await.unwrap());
    read
}

const KIB: usize = 1_024;

#[tokio::test]
async fn bytes_without_data_have_a_maximum() {
    assert_eq!(read(32 * KIB, 0).await, 32 * KIB);
    assert_eq!(read(64 * KIB, 0).await, 32 * KIB);
    // Half of each piece is data, so the other half uses up nothing.
    assert_eq!(read(128 * KIB, 2_048).await, 128 * KIB);
    // A thousand of each 4,096 bytes are data, so each piece uses up 2,096 bytes more than data gives back.
    let few = read(128 * KIB, 1_000).await;
    assert!((32 * KIB..128 * KIB).contains(&few), "{few}");
}

#[tokio::test]
async fn a_surplus_of_data_is_not_saved_for_later() {
    let allowance = Allowance::default();
    allowance.take_data(100_000).unwrap();
    assert_eq!(allowance.0.raw.load(Ordering::Relaxed), 32 * KIB as u64);
    assert!(allowance.take_data(100_000).is_err(), "a head of 200,000 bytes");
    allowance.begin_body();
    allowance.take_data(150_000).unwrap();
    assert!(allowance.take_data(150_000).is_err(), "a body of 300,000 bytes");
    allowance.begin_call();
    allowance.take_data(100_000).unwrap();
}
