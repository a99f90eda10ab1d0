use super::*;
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn pair() -> (Paced, TcpStream) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (tcp, peer) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    (Paced::new(tcp.unwrap()), peer.unwrap().0)
}

#[tokio::test]
async fn each_piece_is_followed_by_a_turn_of_other_tasks() {
    let (mut paced, mut peer) = pair().await;
    peer.write_all(&[1; 3 * PIECE]).await.unwrap();
    paced.tcp.readable().await.unwrap();
    let mut bytes = [0; 3 * PIECE];
    let first = paced.read(&mut bytes).await.unwrap();
    assert!((1..=PIECE).contains(&first), "{first}");
    let mut rest = ReadBuf::new(&mut bytes);
    let second = poll_fn(|cx| Poll::Ready(Pin::new(&mut paced).poll_read(cx, &mut rest))).await;
    assert!(second.is_pending() && rest.filled().is_empty());
    // The task is woken although no more bytes come.
    let mut all = vec![0; 3 * PIECE - first];
    paced.read_exact(&mut all).await.unwrap();
    assert_eq!(all, vec![1; all.len()]);
}

#[tokio::test]
async fn only_the_handshake_has_a_maximum_length() {
    for is_over in [false, true] {
        let (mut paced, mut peer) = pair().await;
        if is_over {
            paced.end_handshake();
        }
        let sent = tokio::spawn(async move { peer.write_all(&[1; 2 * HANDSHAKE]).await });
        let mut all = Vec::new();
        let read = paced.read_to_end(&mut all).await;
        assert_eq!((read.is_ok(), all.len() == 2 * HANDSHAKE), (is_over, is_over), "{} bytes", all.len());
        drop(sent.await.unwrap());
    }
}
