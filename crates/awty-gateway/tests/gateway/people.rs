//! The role `other` is a client of the API, but no tenant.

use crate::client::{Answer, Client};
use crate::shop::{Gateway, Shop, until};
use serde_json::Value;

pub fn open() -> (Shop, Gateway, Client) {
    let shop = Shop::open();
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE other LOGIN",
            "CREATE ROLE tenant LOGIN",
            "GRANT USAGE ON SCHEMA awty, awty_http TO other, tenant",
            "SELECT awty_http.add_tenant('tenant')",
            "GRANT other, tenant TO gateway",
        ],
    );
    let gateway = shop.gateway("one");
    let client = client(&shop, &gateway, "app", "write");
    (shop, gateway, client)
}

pub fn client(shop: &Shop, gateway: &Gateway, role: &str, scope: &str) -> Client {
    Client { address: gateway.address(), token: shop.token(role, scope) }
}

#[track_caller]
pub fn until_answer(client: &Client, path: &str, good: impl Fn(&Value) -> bool) -> Answer {
    until(path, || {
        let answer = client.get(path);
        if good(&answer.json()) { Ok(answer) } else { Err(answer.text) }
    })
}

pub fn problem(answer: &Answer) -> (u16, String) {
    (answer.status, answer.problem())
}

pub fn is(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

#[track_caller]
pub fn pages(client: &Client, path: &str) -> Vec<Value> {
    let (mut path, mut found) = (path.to_owned(), Vec::new());
    while !path.is_empty() {
        let page = client.get(&path);
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        found.extend(page.json()["items"].as_array().unwrap().clone());
        path = page.header("link").split('>').next().unwrap_or_default().trim_start_matches('<').to_owned();
    }
    found
}
