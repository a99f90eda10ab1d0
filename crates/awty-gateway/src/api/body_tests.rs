use super::*;

fn read(json: &str) -> Result<Map<String, Value>, Problem> {
    object(&HeaderMap::new(), Ok(Bytes::copy_from_slice(json.as_bytes())))
}

#[test]
fn keys_of_serde_json_are_refused_and_no_other_ones() {
    for key in ["$serde_json::private::Number", "$serde_json::private::RawValue", "\\u0024serde_json::private::Number"]
    {
        for json in [
            format!("{{\"{key}\": \"1\"}}"),
            format!("{{\"body\": {{\"{key}\" \n: \"1e9\"}}}}"),
            format!("{{\"a\\\\\": \"\\\"\", \"body\": [{{\"b\": 1, \"{key}\": 2}}]}}"),
        ] {
            let refused = read(&json).unwrap_err();
            assert!(refused.is("invalid-field"), "{json}: {refused:?}");
        }
        let text = format!("{{\"body\": \"{key}\", \"body_text\": \"{{\\\"{key}\\\": 1}}\", \"n\": 1e5}}");
        assert_eq!(read(&text).unwrap().len(), 3, "{text}");
    }
    for json in ["{", "\"", "{\"a", "{\"a\\", "[\"$serde_json::private::Number\"]", ""] {
        assert!(read(json).unwrap_err().is("malformed-json"), "{json}");
    }
}
