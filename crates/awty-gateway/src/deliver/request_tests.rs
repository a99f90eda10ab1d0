use super::*;
use awty_core::http::RESERVED_HEADERS;
use serde_json::Value;

fn at(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_800_000_000_000 + millis).unwrap()
}

fn delivery() -> Delivery {
    Delivery {
        job: "http.app".into(),
        tenant: 7,
        entity_name: "https://api.example.com".into(),
        entity_key: "/a?b=c#order-7".into(),
        attempt: 2,
        check_count: 4,
        first_check_at: at(0),
        next_check_at: at(10_000),
        key: "AH7G4PIARY62WCUKHQ3NY6X7S6".into(),
    }
}

fn made(args: Value) -> Result<Call, String> {
    let args = serde_json::value::to_raw_value(&args).unwrap();
    let mut definition = Definition::of_args(Some(&args))?;
    let secret = |name: &str| if name == "TOKEN" { Ok("t0p".to_owned()) } else { Err(Unmade::missing(name)) };
    let context =
        RequestContext { master_key: b"master", timeout: Length::seconds(30), now: at(10_250), secret: &secret };
    request(&delivery(), &mut definition, &context).map_err(|unmade| unmade.why)
}

fn filled(headers: Value, secret: &(dyn Fn(&str) -> Option<String> + Sync)) -> (Result<Call, Unmade>, usize) {
    let looked_up = std::sync::atomic::AtomicUsize::new(0);
    let counted = |name: &str| {
        looked_up.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        secret(name).ok_or_else(|| Unmade::missing(name))
    };
    let args = serde_json::value::to_raw_value(&json!({"headers": headers})).unwrap();
    let mut definition = Definition::of_args(Some(&args)).unwrap();
    let context =
        RequestContext { master_key: b"master", timeout: Length::seconds(30), now: at(10_250), secret: &counted };
    let call = request(&delivery(), &mut definition, &context);
    (call, looked_up.load(std::sync::atomic::Ordering::Relaxed))
}

fn header<'a>(call: &'a Call, name: &str) -> &'a str {
    call.headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[test]
fn a_receiver_can_tell_duplicates_and_how_late_it_is() {
    let call = made(json!({"retries": {"max_attempts": 5}})).unwrap();
    assert_eq!(call.endpoint.as_str(), "https://api.example.com/a?b=c");
    let expected = [
        ("webhook-id", "AH7G4PIARY62WCUKHQ3NY6X7S6"),
        ("idempotency-key", "\"AH7G4PIARY62WCUKHQ3NY6X7S6\""),
        ("webhook-timestamp", "1800000010"),
        ("awty-schedule", &uri::id(7, call.endpoint.as_str())),
        ("awty-slot", "2027-01-15T08:00:00Z"),
        ("awty-attempt", "2/5"),
        ("awty-count", "4"),
        ("awty-lateness", "0.250"),
        ("content-type", "application/json"),
    ];
    for (name, value) in expected {
        assert_eq!(header(&call, name), value, "{name}");
    }
    assert!(header(&call, "user-agent").starts_with("awty-gateway/"));
}

#[test]
fn the_signature_is_over_what_is_sent() {
    let call = made(json!({"body": {"a": 1}})).unwrap();
    let key = signing_key(b"master", 7, &uri::id(7, call.endpoint.as_str()));
    let expected = signature(&key, header(&call, "webhook-id"), 1_800_000_010, b"{\"a\":1}");
    assert_eq!(header(&call, "webhook-signature"), expected);
    assert_eq!(header(&made(json!({"sign": false})).unwrap(), "webhook-signature"), "");
}

#[test]
fn without_a_body_a_small_json_is_sent_and_with_get_none() {
    let body: Value = serde_json::from_slice(&made(json!({})).unwrap().body).unwrap();
    assert_eq!((&body["attempt"], &body["slot"]), (&json!(2), &json!("2027-01-15T08:00:00Z")));
    for method in ["GET", "HEAD"] {
        let call = made(json!({"method": method})).unwrap();
        assert!(call.body.is_empty() && header(&call, "content-type").is_empty(), "{method}");
    }
    assert_eq!(made(json!({"body_text": ""})).unwrap().body.len(), 0);
}

#[test]
fn secrets_are_filled_in_and_are_sensitive() {
    let call = made(json!({"headers": {"Authorization": "Bearer {{secret:TOKEN}}!"}})).unwrap();
    assert_eq!(header(&call, "authorization"), "Bearer t0p!");
    assert!(!format!("{:?}", call.headers).contains("t0p"));
    assert!(made(json!({"headers": {"X": "{{secret:OTHER}}"}})).unwrap_err().contains("OTHER"));
    assert!(made(json!({"headers": {"X": "{{secret:TOKEN"}})).unwrap_err().contains("no end"));
}

#[test]
fn what_is_the_gateways_own_is_refused() {
    for name in RESERVED_HEADERS {
        let name = name.strip_suffix('-').map_or((*name).to_owned(), |start| format!("{start}-Anything"));
        assert!(user_header(&name).is_err(), "{name}");
        assert!(user_header(&name.to_uppercase()).is_err(), "{name}");
    }
    for name in ["a b", "", "a\r\nb", "ä"] {
        assert!(user_header(name).is_err(), "{name:?}");
    }
    assert!(user_header("X-Webhook").is_ok());
    assert!(made(json!({"headers": {"X": "a\r\nEvil: b"}})).unwrap_err().contains("does not take"));
}

#[test]
fn timeouts_have_their_defaults_and_caps() {
    let call = made(json!({})).unwrap();
    assert_eq!((call.timeout.as_secs(), call.connect_timeout.as_secs()), (30, 5));
    let call = made(json!({"timeout": "2 min", "connect_timeout": "1 min"})).unwrap();
    assert_eq!((call.timeout.as_secs(), call.connect_timeout.as_secs()), (120, 5));
}

#[test]
fn a_call_has_no_more_headers_than_fit() {
    let with = |count: usize| {
        let headers: serde_json::Map<_, _> = (0..count).map(|n| (format!("x-{n}"), json!("1"))).collect();
        made(json!({"headers": headers}))
    };
    assert!(with(1_000).unwrap().headers.len() > 1_000);
    assert!(with(1_001).unwrap_err().contains("more than 1000 headers") && with(30_000).is_err());
}

#[test]
fn a_call_has_sixteen_references_at_most_and_reads_each_secret_once() {
    let value = |name: &str| (name != "NONE").then(|| "v".to_owned());
    let (call, reads) =
        filled(json!({"A": "{{secret:T}}".repeat(10), "B": "{{secret:U}}{{secret:T}}".repeat(3)}), &value);
    assert_eq!((header(&call.unwrap(), "a"), reads), ("vvvvvvvvvv", 2));
    let (call, reads) = filled(json!({"A": "{{secret:T}}".repeat(16), "B": "{{secret:T}}"}), &value);
    assert_eq!(
        (call.unwrap_err(), reads),
        (Unmade::from("there are more than 16 references to secrets".to_owned()), 0)
    );
    let (call, _) = filled(json!({"A": "{{secret:NONE}}"}), &value);
    assert!(call.unwrap_err().may_come, "a secret may come");
}

#[test]
fn headers_have_64_kib_once_secrets_are_filled_in() {
    let large = |_: &str| Some("s".repeat(8_192));
    let (call, _) = filled(json!({"A": "{{secret:T}}".repeat(7)}), &large);
    assert_eq!(header(&call.unwrap(), "a").len(), 7 * 8_192);
    for headers in [
        json!({"A": "{{secret:T}}".repeat(8)}),
        json!({"A": "a".repeat(65_536)}),
        json!({"A": "{{secret:T}}".repeat(4), "B": "{{secret:T}}".repeat(4)}),
    ] {
        let unmade = filled(headers, &large).0.unwrap_err();
        assert!(unmade.why.contains("more than 65536 bytes") && !unmade.may_come, "{unmade:?}");
    }
}

/// A name can be longer than what is left of the 64 KiB although its empty value fits.
#[test]
fn long_names_of_empty_headers_count() {
    let with = |count: usize| {
        let headers = (0..count).map(|n| (format!("x-{n:01018}"), json!("")));
        made(json!({"headers": headers.collect::<serde_json::Map<_, _>>()}))
    };
    assert!(with(64).is_ok(), "64 names of 1,020 bytes leave 256 bytes");
    assert!(with(65).unwrap_err().contains("more than 65536 bytes"));
}

#[test]
fn a_uri_that_is_split_at_another_place_is_no_call() {
    let split = [
        ("https://api.example.co", "m/a#1"),
        ("https://api.example.com/x", "/../a"),
        ("https://api.example.com:443", "/a"),
        ("HTTPS://api.example.com", "/a"),
        ("https://api.example.com:", "8443/a"),
        ("https://api.example.com", "@b.example/a"),
    ];
    for (name, key) in split {
        let delivery = Delivery { entity_name: name.into(), entity_key: key.into(), ..delivery() };
        let context = RequestContext {
            master_key: b"master",
            timeout: Length::seconds(30),
            now: at(0),
            secret: &|name| Err(Unmade::missing(name)),
        };
        let unmade = request(&delivery, &mut Definition::default(), &context).unwrap_err();
        assert!(!unmade.may_come, "{name} {key}: {unmade:?}");
    }
}
