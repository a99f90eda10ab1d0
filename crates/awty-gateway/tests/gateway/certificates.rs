use awty_core::uri::Uri;
use awty_gateway::net::call::Caller;
use awty_gateway::net::fault::Fault;
use awty_gateway::net::guard::Guard;
use awty_gateway::net::report::{Call, Report};
use awty_gateway::net::resolve::Resolver;
use awty_gateway::net::tls;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

struct Authority(PathBuf);

impl Authority {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("awty-certificates-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&folder).unwrap();
        let this = Authority(folder);
        this.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -subj /CN=root -days 2");
        this
    }

    fn openssl(&self, arguments: &str) {
        let run = Command::new("openssl").args(arguments.split(' ')).current_dir(&self.0).output();
        let run = run.expect("openssl is needed: apt-get install openssl");
        assert!(run.status.success(), "{arguments}: {}", String::from_utf8_lossy(&run.stderr));
    }

    /// Signs the certificate of another authority.
    fn sign(&self, other: &Authority) {
        let (theirs, own) = (other.0.display(), self.0.display());
        std::fs::write(other.0.join("ca"), "basicConstraints=critical,CA:TRUE\n").unwrap();
        other.openssl("req -new -key ca.key -out ca.csr -subj /CN=middle");
        self.openssl(&format!("x509 -req -in {theirs}/ca.csr -CA {own}/ca.pem -CAkey {own}/ca.key -CAcreateserial -extfile {theirs}/ca -out {theirs}/ca.pem -days 2"));
    }

    async fn server(&self, name: &str, days: u32) -> u16 {
        self.server_with(name, days, Odd::default()).await
    }

    async fn server_with(&self, name: &str, days: u32, odd: Odd) -> u16 {
        std::fs::write(self.0.join("names"), format!("subjectAltName=DNS:{name}\n")).unwrap();
        self.openssl(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf",
        );
        let sign = "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out leaf.pem -days";
        self.openssl(&format!("{sign} {days}"));
        let mut chain = vec![CertificateDer::from_pem_file(self.0.join("leaf.pem")).unwrap()];
        chain.extend(odd.certificates);
        let key = PrivateKeyDer::from_pem_file(self.0.join("leaf.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
        config.send_tls13_tickets = odd.tickets;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                    let mut asked = vec![0; 4_096];
                    if odd.reads_nothing {
                        std::future::pending::<()>().await;
                    }
                    drop(stream.read(&mut asked).await);
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", odd.body);
                    drop(stream.write_all(&[head.into_bytes(), vec![b'a'; odd.body]].concat()).await);
                });
            }
        });
        port
    }

    fn trusting(&self) -> Caller {
        caller(&[self.0.join("ca.pem")])
    }
}

/// A server that may differ from usual servers.
struct Odd {
    reads_nothing: bool,
    tickets: usize,
    body: usize,
    /// Certificates after the server's own
    certificates: Vec<CertificateDer<'static>>,
}

impl Default for Odd {
    fn default() -> Self {
        Odd { reads_nothing: false, tickets: 2, body: 0, certificates: Vec::new() }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn caller(extra: &[PathBuf]) -> Caller {
    let guard = Guard { allow_localhost: true, ..Guard::default() };
    Caller::new(guard, Resolver::of_system().unwrap(), tls::config(tls::roots(extra).unwrap()).unwrap())
}

async fn call(caller: &Caller, port: u16) -> Report {
    call_with(caller, port, bytes::Bytes::new(), Duration::from_secs(20)).await
}

async fn call_with(caller: &Caller, port: u16, body: bytes::Bytes, timeout: Duration) -> Report {
    let call = Call {
        tenant: 1,
        endpoint: Uri::parse(&format!("https://localhost:{port}/")).unwrap(),
        method: hyper::Method::POST,
        headers: hyper::HeaderMap::new(),
        body,
        timeout,
        connect_timeout: Duration::from_secs(5),
    };
    caller.call(call).await
}

fn status(report: Report) -> Result<u16, Fault> {
    report.outcome.map(|answer| answer.status).map_err(|failure| failure.fault)
}

#[track_caller]
fn assert_refused(report: &Report, fault: Fault) {
    assert_eq!(report.outcome.as_ref().map_err(|failure| failure.fault).unwrap_err(), fault, "{:?}", report.outcome);
    assert!(!report.sent, "something was sent");
}

#[tokio::test]
async fn a_certificate_that_is_good_is_taken() {
    let authority = Authority::new();
    let report = call(&authority.trusting(), authority.server("localhost", 2).await).await;
    assert_eq!((report.outcome.unwrap().status, report.phases.tls.is_some()), (200, true));
}

#[tokio::test]
async fn another_name_or_nobody_known_is_refused_before_a_byte_is_sent() {
    let authority = Authority::new();
    let port = authority.server("other.example", 2).await;
    assert_refused(&call(&authority.trusting(), port).await, Fault::CertificateName);
    let port = authority.server("localhost", 2).await;
    assert_refused(&call(&caller(&[]), port).await, Fault::CertificateUnknown);
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused() {
    let authority = Authority::new();
    // A certificate with a validity of 0 days expires within one second after its creation.
    let (port, trusting) = (authority.server("localhost", 0).await, authority.trusting());
    let mut report = call(&trusting, port).await;
    for _ in 0..100 {
        if report.outcome.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        report = call(&authority.trusting(), port).await;
    }
    assert_refused(&report, Fault::CertificateExpired);
}

#[tokio::test]
async fn a_server_that_does_not_read_keeps_no_connection() {
    let authority = Authority::new();
    let port = authority.server_with("localhost", 2, Odd { reads_nothing: true, ..Odd::default() }).await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // The body is larger than the socket buffers of both ends, so the gateway cannot send the whole request.
    let body = bytes::Bytes::from(vec![b'a'; 64 * 1024 * 1024]);
    let report = call_with(&authority.trusting(), port, body, Duration::from_secs(6)).await;
    assert_eq!((report.outcome.unwrap_err().fault, report.sent), (Fault::Timeout, true));
    for _ in 0..3_000 {
        if alive() == 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} tasks are left", alive());
}

#[tokio::test]
async fn a_long_answer_over_tls_is_read_to_the_maximum() {
    let authority = Authority::new();
    for body in [60_000, 10_000_000] {
        let port = authority.server_with("localhost", 2, Odd { body, ..Odd::default() }).await;
        let report = call(&authority.trusting(), port).await;
        assert_eq!(report.outcome.map(|answer| (answer.status, answer.body.len())), Ok((200, 1_024)), "{body}");
    }
}

#[tokio::test]
async fn session_tickets_without_end_end_the_connection() {
    let authority = Authority::new();
    for (tickets, expected) in [(16, Ok(200)), (17, Err(Fault::Protocol)), (2_000, Err(Fault::Protocol))] {
        let port = authority.server_with("localhost", 2, Odd { tickets, ..Odd::default() }).await;
        assert_eq!(status(call(&authority.trusting(), port).await), expected, "{tickets}");
    }
}

#[tokio::test]
async fn more_certificates_than_a_server_needs_are_refused() {
    let authority = Authority::new();
    let junk = |count: usize, length: usize| vec![CertificateDer::from(vec![0; length]); count];
    for (certificates, is_taken) in
        [(junk(10, 1), true), (junk(10, 2_000), true), (junk(11, 1), false), (junk(10, 4_000), false)]
    {
        let name = format!("{} of {}", certificates.len(), certificates[0].len());
        let port = authority.server_with("localhost", 2, Odd { certificates, ..Odd::default() }).await;
        let report = call(&authority.trusting(), port).await;
        match is_taken {
            true => assert_eq!(report.outcome.map(|answer| answer.status), Ok(200), "{name}"),
            false => assert_refused(&report, Fault::Tls),
        }
    }
}

/// Without a limit, all paths between the sent certificates would be tried.
#[tokio::test]
async fn only_the_first_certificates_of_a_server_are_used() {
    let [root, middle, other] = std::array::from_fn(|_| Authority::new());
    root.sign(&middle);
    let [certificate, needless] =
        [&middle, &other].map(|authority| CertificateDer::from_pem_file(authority.0.join("ca.pem")).unwrap());
    for (before, expected) in [(0, Ok(200)), (3, Ok(200)), (4, Err(Fault::CertificateUnknown))] {
        let certificates = [vec![needless.clone(); before], vec![certificate.clone()]].concat();
        let port = middle.server_with("localhost", 2, Odd { certificates, ..Odd::default() }).await;
        assert_eq!(status(call(&root.trusting(), port).await), expected, "{before}");
    }
}
