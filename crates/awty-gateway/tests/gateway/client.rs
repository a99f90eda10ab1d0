use crate::shop::until;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> String {
        let found = self
            .head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    }

    pub fn problem(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().trim_start_matches("/problems/").to_owned()
    }
}

pub struct Client {
    pub address: String,
    pub token: String,
}

impl Client {
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(method, path, body, "")
    }

    pub fn ask_with(&self, method: &str, path: &str, body: &str, headers: &str) -> Answer {
        until("an answer in time", || {
            let answer = self.ask_once(method, path, body, headers);
            let late = answer.status == 504 && (method == "GET" || answer.text.contains("lock timeout"));
            if late { Err(answer.text) } else { Ok(answer) }
        })
    }

    pub fn ask_once(&self, method: &str, path: &str, body: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let authorization =
            if self.token.is_empty() { String::new() } else { format!("Authorization: Bearer {}\r\n", self.token) };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{authorization}{headers}Content-Length: {length}"
        );
        // Writing may fail, because the gateway may refuse the request before reading the body.
        drop(write!(stream, "{head}\r\n\r\n{body}"));
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        let all = String::from_utf8_lossy(&bytes).into_owned();
        let (head, text) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), text: text.to_owned() }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }
}

pub fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
