//! PostgreSQL keeps the locks of a failed statement until the client has read the error. A client that does not read
//! could so keep the locks for as long as it likes.

use crate::field::{DB, Field, answer};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

struct Session {
    stream: UnixStream,
    pid: i32,
}

impl Session {
    fn open(field: &Field, role: &str) -> Self {
        let socket = field.cluster.socket_directory().join(".s.PGSQL.5432");
        let mut stream = UnixStream::connect(socket).unwrap();
        let said = format!("user\0{role}\0database\0{DB}\0\0");
        let length = u32::try_from(said.len() + 8).unwrap();
        stream.write_all(&[&length.to_be_bytes(), &196_608_u32.to_be_bytes(), said.as_bytes()].concat()).unwrap();
        let mut pid = 0;
        loop {
            let mut head = [0; 5];
            stream.read_exact(&mut head).unwrap();
            let mut rest = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
            stream.read_exact(&mut rest).unwrap();
            match head[0] {
                b'K' => pid = i32::from_be_bytes(rest[..4].try_into().unwrap()),
                b'Z' => return Session { stream, pid },
                b'E' => panic!("{}", String::from_utf8_lossy(&rest)),
                _ => {}
            }
        }
    }

    /// Sends a call, and reads no answer. The call's error does not fit into the socket's buffer after `bytes`.
    fn call(field: &Field, role: &str, bytes: usize, call: &str) -> Self {
        let mut session = Session::open(field, role);
        let sql = format!("SELECT repeat('x', {bytes}); {call}\0");
        let length = u32::try_from(sql.len() + 4).unwrap();
        session.stream.write_all(&[b"Q", &length.to_be_bytes()[..], sql.as_bytes()].concat()).unwrap();
        session
    }

    fn await_state(&self, field: &Field, state: &str) {
        let sql = format!("SELECT {state} FROM pg_stat_activity WHERE pid = {}", self.pid);
        field.cluster.await_sql(DB, state, &sql);
    }

    fn waits_for_its_client(&self, field: &Field) -> bool {
        self.await_state(field, "state = 'idle' OR wait_event = 'ClientWrite'");
        field.one("postgres", &format!("SELECT state <> 'idle' FROM pg_stat_activity WHERE pid = {}", self.pid))
    }
}

/// Returns how many bytes an answer must have so that an error after it does not fit into the socket's buffer. PostgreSQL
/// writes answers in pieces of 8 KiB, so that a step of less than a piece does not miss this number.
fn room(field: &Field) -> usize {
    let sizes = (8_000..4_000_000).step_by(8_000);
    let fills = |bytes: &usize| Session::call(field, "mallory", *bytes, "SELECT 1/0").waits_for_its_client(field);
    sizes.into_iter().find(fills).expect("the buffer of a socket has less than 4 MB")
}

#[test]
fn a_refused_call_whose_error_is_not_read_keeps_no_lock_on_a_job_of_another_role() {
    let field = Field::new();
    field
        .sql("postgres", "GRANT USAGE, CREATE ON SCHEMA mallory TO alice; CREATE ROLE friend; GRANT friend TO mallory");
    let bytes = room(&field);
    for (rule, call, wait, hers) in [
        ("paused", "awty.pause('paused')", "transactionid", "awty.pause('paused')"),
        (
            "altered",
            "awty.alter('altered', run_as => 'friend')",
            "object",
            "awty.schedule('t', '1', 'altered', after => '1 d')",
        ),
        ("scheduled", "awty.schedule('t', '1', 'scheduled', after => '1 d')", "object", "awty.unwatch('scheduled')"),
    ] {
        let watch = format!(
            "SELECT awty.watch('mallory.{rule}', since => 'at', until => 'met', within => '1 h', replace => true)"
        );
        field.sql(
            "mallory",
            &format!("CREATE TABLE mallory.{rule} (id int PRIMARY KEY, at timestamptz, met boolean); {watch}"),
        );
        field.sql("postgres", &format!("ALTER TABLE mallory.{rule} OWNER TO alice"));
        let mut alice = field.client("alice");
        alice.batch_execute(&format!("BEGIN; {watch}")).unwrap();
        let unread = Session::call(&field, "mallory", bytes, &format!("SELECT {call}"));
        unread.await_state(&field, &format!("wait_event = '{wait}'"));
        alice.batch_execute("COMMIT").unwrap();
        assert!(unread.waits_for_its_client(&field), "{call}: its error was read");
        let answer = answer(&mut alice, &format!("SET lock_timeout = '2s'; SELECT {hers}"));
        assert_eq!(answer, "", "{hers} beside {call}");
    }
}
