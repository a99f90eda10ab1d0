use super::*;

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
