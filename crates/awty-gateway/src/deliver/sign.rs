//! Signatures of Standard Webhooks: `v1,` and HMAC-SHA256 over `id.timestamp.body`.

use crate::uri::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;

/// Value of `webhook-signature`.
pub fn signature(key: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    let mut mac = hmac(key);
    for part in [id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body] {
        mac.update(part);
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// The key as receivers get it.
pub fn secret(key: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the specification.
    #[test]
    fn the_example_of_standard_webhooks_comes_out() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let found = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(found, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(secret(&key), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    }

    #[test]
    fn each_part_changes_the_signature() {
        let all = [
            signature(b"k", "id", 1, b"body"),
            signature(b"l", "id", 1, b"body"),
            signature(b"k", "ie", 1, b"body"),
            signature(b"k", "id", 2, b"body"),
            signature(b"k", "id", 1, b"bodx"),
        ];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
