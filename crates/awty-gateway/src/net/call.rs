//! Invariant: no call lasts longer than its timeout. The gateway reads at most [`BODY`] bytes of the answer. Calls
//! never follow redirects. If `sent` is false, no byte of the request was sent.

use super::connect::{Place, connect};
use super::counted::Count;
use super::fault::{Endless, Failure, Fault};
use super::guard::{Guard, Shared};
use super::pool::{self, Key, Pool, Ready};
use super::report::{Answer, BODY, Call, HEADERS, KEPT, Phases, Report};
use super::resolve::Resolver;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const HEAD: usize = 64 * 1024;
/// Time that a used connection has to become ready for another request. After this time, the gateway closes the
/// connection.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Progress {
    address: Option<SocketAddr>,
    written: Option<(Count, u64)>,
    phases: Phases,
}

pub struct Caller {
    guard: Shared,
    resolver: Resolver,
    tls: Arc<ClientConfig>,
    pool: Arc<Pool>,
}

impl Caller {
    pub fn new(guard: impl Into<Shared>, resolver: Resolver, tls: ClientConfig) -> Self {
        Caller { guard: guard.into(), resolver, tls: Arc::new(tls), pool: Arc::new(Pool::new(pool::MOST)) }
    }

    pub fn keeping(self, idle: usize) -> Self {
        Caller { pool: Arc::new(Pool::new(idle)), ..self }
    }

    pub fn guard(&self) -> Arc<Guard> {
        self.guard.get()
    }

    pub fn set_guard(&self, guard: Guard) {
        self.guard.set(guard);
    }

    pub fn sweeps(&self) -> impl Future<Output = ()> + use<> {
        self.pool.clone().sweeps()
    }

    pub async fn call(&self, mut call: Call) -> Report {
        let sent = (std::mem::take(&mut call.headers), std::mem::take(&mut call.body));
        let (start, mut progress) = (Instant::now(), Progress::default());
        let outcome = timeout(call.timeout, self.attempt(&call, sent, &mut progress)).await;
        let too_long = |_| Err(Failure::new(Fault::Timeout, format!("no complete answer within {:?}", call.timeout)));
        let outcome = outcome.unwrap_or_else(too_long);
        progress.phases.total = start.elapsed();
        let sent = progress.written.is_some_and(|(count, before)| count.load(Ordering::Relaxed) > before);
        Report { address: progress.address, sent, phases: progress.phases, outcome }
    }

    async fn attempt(&self, call: &Call, sent: Sent, progress: &mut Progress) -> Result<Answer, Failure> {
        let (start, guard) = (Instant::now(), self.guard());
        let addresses = self.resolver.judged(&call.endpoint, &guard).await?;
        progress.phases.name = Some(start.elapsed());
        let mut request = request(call, sent)?;
        if let Some((key, ready)) = self.resting(call, &addresses) {
            progress.address = Some(key.address);
            match self.exchange(key, ready, request, progress).await? {
                Exchanged::Answer(answer) => return Ok(answer),
                Exchanged::NotSent(same) => request = same,
            }
        }
        let (key, ready) = self.fresh(call, &addresses, &guard, progress).await?;
        match self.exchange(key, ready, request, progress).await? {
            Exchanged::Answer(answer) => Ok(answer),
            Exchanged::NotSent(_) => {
                Err(Failure::new(Fault::Closed, "the connection was closed before the request left"))
            }
        }
    }

    fn resting(&self, call: &Call, addresses: &[SocketAddr]) -> Option<(Key, Ready)> {
        addresses.iter().map(|address| key(call, *address)).find_map(|key| Some((key.clone(), self.pool.take(&key)?)))
    }

    async fn fresh(
        &self,
        call: &Call,
        to: &[SocketAddr],
        guard: &Guard,
        seen: &mut Progress,
    ) -> Result<(Key, Ready), Failure> {
        let host = call.endpoint.url().host_str().unwrap_or_default();
        let tls = (call.endpoint.url().scheme() == "https").then_some((&self.tls, host));
        let deadline = Instant::now() + call.connect_timeout;
        let connected = connect(&Place { tls, addresses: to }, guard, deadline, &mut seen.address).await?;
        (seen.phases.connect, seen.phases.tls) = (Some(connected.connect), connected.tls);
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD).max_header_size(HEAD);
        let (count, allowance) = (connected.stream.count.clone(), connected.stream.allowance.clone());
        let shaken = builder.handshake(TokioIo::new(connected.stream)).await;
        let (sender, connection) = shaken.map_err(|error| Failure::new(Fault::Protocol, error))?;
        let task = tokio::spawn(connection).abort_handle(); // the task ends with the peer, or when `Ready` is dropped
        let ready = Ready { sender, count, allowance, born: Instant::now(), task };
        Ok((key(call, connected.address), ready))
    }

    async fn exchange(
        &self,
        key: Key,
        mut ready: Ready,
        request: Request<Full<Bytes>>,
        progress: &mut Progress,
    ) -> Result<Exchanged, Failure> {
        let start = Instant::now();
        progress.written = Some((ready.count.clone(), ready.count.load(Ordering::Relaxed)));
        ready.allowance.begin_call();
        let response = match ready.sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => match error.take_message() {
                Some(request) => return Ok(Exchanged::NotSent(request)),
                None => return Err(failure(error.error())),
            },
        };
        ready.allowance.begin_body();
        progress.phases.first_byte = Some(start.elapsed());
        let (answer, whole) = read(response).await?;
        if whole {
            self.keep(key, ready);
        }
        Ok(Exchanged::Answer(answer))
    }

    fn keep(&self, key: Key, mut ready: Ready) {
        let pool = self.pool.clone();
        tokio::spawn(async move {
            if matches!(timeout(SETTLE, ready.sender.ready()).await, Ok(Ok(()))) {
                pool.put(key, ready);
            }
        });
    }
}

type Sent = (HeaderMap, Bytes);

enum Exchanged {
    Answer(Answer),
    NotSent(Request<Full<Bytes>>),
}

fn key(call: &Call, address: SocketAddr) -> Key {
    let url = call.endpoint.url();
    let host = url.host_str().unwrap_or_default().to_owned();
    Key { tenant: call.tenant, tls: url.scheme() == "https", host, address }
}

fn request(call: &Call, (headers, body): Sent) -> Result<Request<Full<Bytes>>, Failure> {
    let url = call.endpoint.url();
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let unfit = |error: &dyn std::fmt::Display| Failure::new(Fault::Request, error);
    let host = HeaderValue::from_str(host).map_err(|error| unfit(&error))?;
    let built = Request::builder().method(call.method.clone()).uri(call.endpoint.entity_key()).body(Full::new(body));
    let mut request = built.map_err(|error| unfit(&error))?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

async fn read(response: Response<Incoming>) -> Result<(Answer, bool), Failure> {
    let (head, mut incoming) = response.into_parts();
    let (status, headers) = (head.status.as_u16(), kept(&head.headers));
    drop(head); // its headers share a buffer of up to 64 KiB, and the body may take as long as the call
    let (mut body, mut rest, mut whole) = (BytesMut::new(), BODY, true);
    while let Some(frame) = incoming.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) if is_endless(&error) => {
                whole = false;
                break;
            }
            Err(error) => return Err(failure(&error)),
        };
        if let Some(data) = frame.data_ref() {
            body.extend_from_slice(&data[..data.len().min(KEPT - body.len())]);
            if data.len() >= rest {
                whole = false;
                break;
            }
            rest -= data.len();
        }
    }
    Ok((Answer { status, headers, body: body.freeze() }, whole))
}

fn kept(head: &HeaderMap) -> HeaderMap {
    let copy = |name| {
        let value = head.get(name)?.as_bytes();
        Some((HeaderName::from_static(name), HeaderValue::from_bytes(&value[..value.len().min(KEPT)]).ok()?))
    };
    HEADERS.into_iter().filter_map(copy).collect()
}

fn is_endless(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.and_then(std::io::Error::get_ref).is_some_and(|inner| inner.is::<Endless>())
}

fn failure(error: &hyper::Error) -> Failure {
    let fault = if error.is_parse() || is_endless(error) { Fault::Protocol } else { Fault::Closed };
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::new(fault, format!("{error}{cause}"))
}
