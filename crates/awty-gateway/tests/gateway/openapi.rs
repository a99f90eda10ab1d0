use crate::client::{self, Client, encoded};
use crate::people::{self, open, until_answer};
use crate::receiver::Receiver;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

#[test]
fn the_document_has_the_paths_and_methods_of_the_router() {
    let (shop, gateway, _client) = open();
    let admin = people::client(&shop, &gateway, "app", "admin");
    let document = Client { address: gateway.address(), token: String::new() }.get("/v1/openapi.json");
    assert_eq!(document.status, 200);
    let paths = document.json()["paths"].as_object().unwrap().clone();
    assert!(paths.len() >= 20, "{}", document.text);
    for (path, operations) in &paths {
        let known: BTreeSet<&str> = METHODS.into_iter().filter(|method| operations.get(method).is_some()).collect();
        let real: String =
            path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect::<Vec<_>>().join("/");
        for method in METHODS {
            let answer = admin.ask(&method.to_uppercase(), &real, "");
            if known.contains(method) {
                assert!(
                    answer.status != 405 && !answer.text.contains("no such resource"),
                    "{method} {path}: {}",
                    answer.text
                );
            } else {
                assert_eq!((answer.status, answer.problem().as_str()), (405, "method-not-allowed"), "{method} {path}");
                let allowed: BTreeSet<String> =
                    answer.header("allow").split(',').map(|name| name.trim().to_lowercase()).collect();
                let without_head: BTreeSet<&str> =
                    allowed.iter().map(String::as_str).filter(|name| *name != "head").collect();
                assert_eq!(without_head, known, "{method} {path}");
            }
        }
    }
}

fn misfits(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return misfits(document, document.pointer(name.trim_start_matches('#')).unwrap(), value, place);
    }
    if let Some(choices) = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array) {
        let all: Vec<_> = choices.iter().map(|choice| misfits(document, choice, value, place)).collect();
        return if all.iter().any(Vec::is_empty) { Vec::new() } else { all.into_iter().next_back().unwrap() };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = types.contains(&found) || found == "integer" && types.contains(&"number");
    if !types.is_empty() && !fits {
        return vec![format!("{place} is {found}, not {types:?}")];
    }
    let mut misfit = Vec::new();
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        misfit.extend(misfits(document, &schema["items"], item, &format!("{place}/{number}")));
    }
    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    gather(document, schema, &mut properties, &mut required);
    if let (false, Some(fields)) = (properties.is_empty(), value.as_object()) {
        misfit.extend(
            required.iter().filter(|name| !fields.contains_key(*name)).map(|name| format!("{place} has no {name}")),
        );
        for (name, field) in fields {
            match properties.get(name) {
                Some(schema) => misfit.extend(misfits(document, schema, field, &format!("{place}/{name}"))),
                None => misfit.push(format!("{place} has {name}, which the document has not")),
            }
        }
    }
    misfit
}

fn gather(
    document: &Value,
    schema: &Value,
    properties: &mut serde_json::Map<String, Value>,
    required: &mut Vec<String>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        return gather(document, document.pointer(name.trim_start_matches('#')).unwrap(), properties, required);
    }
    schema["allOf"].as_array().into_iter().flatten().for_each(|part| gather(document, part, properties, required));
    properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
    required.extend(
        schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)),
    );
}

#[test]
fn answers_are_as_the_document_says() {
    let (shop, gateway, _client) = open();
    let receiver = Receiver::start();
    let admin = people::client(&shop, &gateway, "tenant", "admin");
    let document = admin.get("/v1/openapi.json").json();
    let body = json!({"uri": receiver.uri("/status/500"), "every": "1 s", "headers": {"X-A": "b"}, "labels": ["x"], "body": {"a": [1]},
        "retries": {"max_attempts": 1}, "timeout": "10 s"});
    let made = admin.ask("POST", "/v1/schedules", &body.to_string());
    let place = made.header("location");
    let sent = admin.ask("POST", "/v1/sends", &json!({"uri": receiver.uri("/ok")}).to_string());
    until_answer(&admin, &place, |schedule| schedule["counts"]["failed"].as_i64().unwrap() >= 2);
    until_answer(&admin, &sent.header("location"), |send| send["state"] == json!("done"));
    let target = format!("/v1/targets/{}", encoded(&receiver.origin()));
    let history = format!("/v1/history?uri={}", encoded(&receiver.uri("/status/500")));
    let token = admin.ask("POST", "/v1/tokens", "{\"scope\": \"read\"}");
    let check = |template: &str, answer: &client::Answer| {
        let operation = &document["paths"][template][if [201, 422].contains(&answer.status) { "post" } else { "get" }];
        let responses = &operation["responses"];
        let response = responses.get(answer.status.to_string()).unwrap_or(&responses["default"]);
        let schema = &response["content"]["application/json"]["schema"];
        let schema = if schema.is_null() { &response["content"]["application/problem+json"]["schema"] } else { schema };
        assert!(!schema.is_null(), "{template} {}", answer.status);
        let misfits = misfits(&document, schema, &answer.json(), "");
        assert!(misfits.is_empty(), "{template}: {misfits:#?}\n{}", answer.text);
    };
    check("/v1/schedules", &made);
    check("/v1/sends", &sent);
    check("/v1/tokens", &token);
    check("/v1/schedules", &admin.ask("POST", "/v1/schedules", "{\"uri\": 1}"));
    for (template, path) in [
        ("/v1/schedules", "/v1/schedules".to_owned()),
        ("/v1/schedules/{id}", place.clone()),
        ("/v1/schedules/{id}/attempts", format!("{place}/attempts")),
        ("/v1/schedules/{id}/next", format!("{place}/next")),
        ("/v1/schedules/{id}/stats", format!("{place}/stats?bucket=1h")),
        ("/v1/schedules/{id}/secret", format!("{place}/secret")),
        ("/v1/sends/{key}", sent.header("location")),
        ("/v1/history", history),
        ("/v1/slots", "/v1/slots".into()),
        ("/v1/status", "/v1/status".into()),
        ("/v1/targets", "/v1/targets".into()),
        ("/v1/targets/{origin}", target),
        ("/v1/tokens", "/v1/tokens".into()),
        ("/v1/tokens/{id}", token.header("location")),
    ] {
        let answer = admin.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert!(
            answer.json().get("items").is_none_or(|items| !items.as_array().unwrap().is_empty()),
            "{path} is empty"
        );
        check(template, &answer);
        assert_eq!(answer.header("etag").is_empty(), path.ends_with("/secret"), "{path}");
    }
    let other = misfits(&document, &document["components"]["schemas"]["Schedule"], &json!({"id": 1, "colour": 2}), "");
    assert!(
        other.iter().any(|misfit| misfit.contains("colour")) && other.iter().any(|misfit| misfit.contains("has no")),
        "{other:?}"
    );
}

#[test]
fn each_problem_has_its_page() {
    let (_shop, gateway, client) = open();
    let refused = client.get("/v1/nothing");
    let page =
        Client { address: gateway.address(), token: String::new() }.get(refused.json()["type"].as_str().unwrap());
    assert_eq!((page.status, page.header("content-type").as_str()), (200, "text/html; charset=utf-8"));
    assert!(page.text.contains("<h1>Nothing was found</h1>") && page.text.contains("404"), "{}", page.text);
    assert_eq!(client.get("/problems/%3Cscript%3E").status, 404);
}
