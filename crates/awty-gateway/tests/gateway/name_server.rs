//! A name server on loopback that answers as a test says.

use awty_gateway::net::call::Caller;
use awty_gateway::net::guard::{Allowed, Guard};
use awty_gateway::net::resolve::Resolver;
use awty_gateway::net::tls;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, CNAME};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub enum Says {
    Addresses(Vec<Ipv4Addr>),
    /// The query for the other family gets no answer.
    OneFamily(Ipv4Addr),
    /// The query for the other family gets the address `::1`, and this one fails.
    OtherFamily,
    Alias(String),
    Bytes(Vec<u8>),
    Strange(Ipv4Addr),
    Nothing,
}

pub struct NameServer {
    address: SocketAddr,
    pub asked: Arc<AtomicUsize>,
}

impl NameServer {
    pub fn start(says: impl Fn(&str, usize) -> Says + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (socket.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let count = asked.clone();
        std::thread::spawn(move || {
            let mut packet = [0; 4_096];
            while let Ok((length, client)) = socket.recv_from(&mut packet) {
                let Ok(question) = Message::from_vec(&packet[..length]) else { continue };
                let query = question.queries[0].clone();
                let is_counted = query.query_type() == RecordType::A;
                let number = if is_counted { count.fetch_add(1, Ordering::Relaxed) } else { 0 };
                let says = says(&query.name().to_utf8(), number);
                if let Some(answer) = answer(&question, &query, says) {
                    socket.send_to(&answer, client).unwrap();
                }
            }
        });
        NameServer { address, asked }
    }

    pub fn caller(&self) -> Caller {
        let mut connection = ConnectionConfig::udp();
        connection.port = self.address.port();
        let server = NameServerConfig::new(self.address.ip(), true, vec![connection]);
        let resolver = Resolver::with(ResolverConfig::from_name_servers(vec![server])).unwrap();
        let allowed = vec![Allowed { origin: None, network: "127.0.0.2/32".parse().unwrap() }];
        Caller::new(Guard { allowed, ..Guard::default() }, resolver, tls::config(tls::roots(&[]).unwrap()).unwrap())
    }
}

fn answer(question: &Message, query: &Query, says: Says) -> Option<Vec<u8>> {
    let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
    answer.metadata.recursion_available = true;
    answer.add_query(query.clone());
    let name = query.name().clone();
    match says {
        Says::Addresses(all) if query.query_type() == RecordType::A => {
            let records = all.into_iter().map(|address| Record::from_rdata(name.clone(), 0, RData::A(A(address))));
            answer.add_answers(records.collect::<Vec<_>>());
        }
        Says::Addresses(_) => {}
        Says::OneFamily(address) if query.query_type() == RecordType::A => {
            answer.add_answer(Record::from_rdata(name, 0, RData::A(A(address))));
        }
        Says::OneFamily(_) => return None,
        Says::OtherFamily if query.query_type() == RecordType::A => {
            answer.metadata.response_code = ResponseCode::ServFail;
        }
        Says::OtherFamily => {
            answer.add_answer(Record::from_rdata(name, 60, RData::AAAA(Ipv6Addr::LOCALHOST.into())));
        }
        Says::Alias(other) => {
            let other = CNAME(Name::from_utf8(other).unwrap());
            answer.add_answer(Record::from_rdata(name, 0, RData::CNAME(other)));
        }
        Says::Bytes(bytes) => return Some(bytes),
        Says::Strange(address) => {
            let other = Name::from_utf8("bank.example.").unwrap();
            answer.add_answer(Record::from_rdata(other, 0, RData::A(A(address))));
        }
        Says::Nothing => return None,
    }
    Some(answer.to_vec().unwrap())
}
