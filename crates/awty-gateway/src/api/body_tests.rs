use super::*;
use hyper::body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// A body that arrives in frames of one byte. Counts the frames that are still in memory.
struct Drip {
    left: usize,
    kept: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct Kept(Arc<AtomicUsize>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        b"a"
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl hyper::body::Body for Drip {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        let kept = self.kept.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(kept, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(Kept(self.kept.clone()))))))
    }
}

#[tokio::test]
async fn no_frame_of_a_body_is_kept() {
    let most = Arc::new(AtomicUsize::new(0));
    let drip = |left| axum::body::Body::new(Drip { left, kept: Arc::default(), most: most.clone() });
    assert_eq!(whole(drip(1_000)).await.unwrap(), vec![b'a'; 1_000]);
    assert_eq!(most.load(Ordering::Relaxed), 1);
    let limited = axum::body::Body::new(http_body_util::Limited::new(drip(1_000), 999));
    assert_eq!(whole(limited).await.unwrap_err(), StatusCode::PAYLOAD_TOO_LARGE);
}

fn read(json: &str) -> Result<Object, Problem> {
    object(&HeaderMap::new(), Ok(Bytes::copy_from_slice(json.as_bytes())))
}

#[test]
fn each_value_stays_as_it_was_written() {
    let found = read("{\"a\": [1e5,\t{\"$serde_json::private::Number\": \"1\"}], \"b\": null}").unwrap();
    assert_eq!(found["a"].get(), "[1e5,\t{\"$serde_json::private::Number\": \"1\"}]");
    assert_eq!(found["b"].get(), "null");
}

#[test]
fn a_body_that_is_no_object_is_refused() {
    for json in ["{", "\"", "{\"a", "{\"a\\", "{\"a\":1}x", "{\"a\": [1,]}", "[\"a\"]", "7", "", "{\"a\": \"\u{1}\"}"] {
        assert!(read(json).unwrap_err().is("malformed-json"), "{json}");
    }
}
