//! Signs requests as Standard Webhooks defines: `v1,` and the HMAC-SHA256 of `id.timestamp.body`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => unreachable!("HMAC takes keys of any length"),
    }
}

/// Derives a schedule's signing key from the gateway's master key, so that the database stores no signing key.
///
/// The key also depends on `tenant`, the tenant's random number, because roles could otherwise compute the keys of a
/// future tenant.
pub fn signing_key(master: &[u8], tenant: i64, id: &str) -> [u8; 32] {
    let mut mac = hmac(master);
    mac.update(&tenant.to_be_bytes());
    mac.update(id.as_bytes());
    mac.finalize().into_bytes().into()
}

pub fn signature(key: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    let mut mac = hmac(key);
    for part in [id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body] {
        mac.update(part);
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

pub fn secret(key: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_standard_webhooks_comes_out() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let found = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(found, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(secret(&key), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    }

    #[test]
    fn each_tenant_and_each_schedule_has_its_own_key() {
        assert_ne!(signing_key(b"m", 1, "s_1"), signing_key(b"m", 2, "s_1"));
        assert_ne!(signing_key(b"m", 1, "s_1"), signing_key(b"m", 1, "s_2"));
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
