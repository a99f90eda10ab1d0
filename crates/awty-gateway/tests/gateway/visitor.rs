//! A client without JavaScript that tests the page over HTTP.

use crate::client::{Answer, Client, encoded};
use crate::people::client;
use crate::shop::{Gateway, Shop, until};

pub const VIEWS: [&str; 10] =
    ["/", "/alerts", "/rules", "/jobs", "/schedules", "/schedules/new", "/slots", "/history", "/targets", "/why"];

pub struct Browser {
    pub client: Client,
    pub cookie: String,
}

impl Browser {
    pub fn of_nobody(gateway: &Gateway) -> Self {
        Browser { client: Client { address: gateway.address(), token: String::new() }, cookie: String::new() }
    }

    pub fn of(shop: &Shop, gateway: &Gateway, role: &str, scope: &str) -> Self {
        let Client { address, token } = client(shop, gateway, role, scope);
        Browser { client: Client { address, token: String::new() }, cookie: format!("Cookie: awty={token}\r\n") }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.client.ask_with("GET", path, "", &self.cookie)
    }

    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(path, fields, "Sec-Fetch-Site: same-origin\r\n")
    }

    pub fn post_from(&self, path: &str, fields: &[(&str, &str)], headers: &str) -> Answer {
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let headers = format!("{}{headers}Content-Type: application/x-www-form-urlencoded\r\n", self.cookie);
        self.client.ask_with("POST", path, &body.join("&"), &headers)
    }

    #[track_caller]
    pub fn shows(&self, path: &str, texts: &[&str]) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        for text in texts {
            assert!(answer.text.contains(text), "{path} has no {text}: {}", answer.text);
        }
        answer.text
    }

    /// Reloads the page until the page contains all `texts`, because a busy server may show a text only on a later
    /// load.
    #[track_caller]
    pub fn comes_to_show(&self, path: &str, texts: &[&str]) -> String {
        until(path, || {
            let answer = self.get(path);
            let is_shown = answer.status == 200 && texts.iter().all(|text| answer.text.contains(text));
            if is_shown { Ok(answer.text) } else { Err(answer.text) }
        })
    }
}

pub fn watch(shop: &Shop) {
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app(
        "CREATE TABLE orders (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'NEW', due timestamptz NOT NULL)",
    );
    shop.app("SELECT awty.watch('orders', until => $$status <> 'NEW'$$, due => 'due', existing => 'all')");
    shop.app("INSERT INTO orders VALUES (1, 'NEW', now() + interval '1 s'), (2, 'NEW', now() + interval '20 min')");
    shop.await_text("SELECT count(*) FROM awty.late", "1");
}
