//! URIs of endpoints: normal spelling, id, signing key.
//!
//! Invariant: a URI's id never changes, and normalising twice equals normalising once.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use url::Url;

/// Path and query are a key in an index.
const LONGEST_PATH: usize = 1_024;
const LONGEST_TEXT: usize = 4_096;
const ID_LENGTH: usize = 22;

/// The URI of an endpoint in its normal spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
}

impl Endpoint {
    /// Parses and normalises a URI. An error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST_TEXT {
            return Err(format!("is too long; write at most {LONGEST_TEXT} bytes"));
        }
        if text.chars().any(char::is_control) {
            return Err("has a control character; percent-encode it".into());
        }
        let url = Url::parse(text)
            .map_err(|error| format!("is malformed ({error}); write for example https://api.example.com/tick"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("has the scheme {}; write http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user or password; put them into a header with {{secret:NAME}}".into());
        }
        if url.fragment().is_some() {
            return Err("has a fragment, which is never sent; leave out what begins with #".into());
        }
        let endpoint = Endpoint { url };
        if endpoint.entity_key().len() > LONGEST_PATH {
            return Err(format!("has too long a path and query; write at most {LONGEST_PATH} bytes"));
        }
        Ok(endpoint)
    }

    /// The URI of a lease: `entity_name` is the target, `entity_key` path and query. A send's key begins at `#` and is
    /// left out.
    pub fn of_lease(entity_name: &str, entity_key: &str) -> Result<Self, String> {
        let path = entity_key.split_once('#').map_or(entity_key, |(path, _)| path);
        Self::parse(&format!("{entity_name}{path}"))
    }

    /// Returns the normal spelling.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Target: scheme, host and port.
    pub fn entity_name(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Path and query.
    pub fn entity_key(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// Returns the parsed URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Id of a schedule: `s_` and 22 characters.
    pub fn id(&self, tenant: i64) -> String {
        id(tenant, self.as_str())
    }
}

/// Id of a tenant's number and a URI in its normal spelling. awty_http computes it in the same way.
pub fn id(tenant: i64, uri: &str) -> String {
    let digest = Sha256::new().chain_update(tenant.to_string()).chain_update("\n").chain_update(uri).finalize();
    let mut id = URL_SAFE_NO_PAD.encode(digest);
    id.truncate(ID_LENGTH);
    format!("s_{id}")
}

/// HMAC-SHA256(master key, the tenant's number ‖ id): each schedule has its own key, and none is stored. The number is
/// random, so that a role cannot learn the keys of a future tenant.
pub fn signing_key(master: &[u8], tenant: i64, id: &str) -> [u8; 32] {
    let mut mac = hmac(master);
    mac.update(&tenant.to_be_bytes());
    mac.update(id.as_bytes());
    mac.finalize().into_bytes().into()
}

pub(crate) fn hmac(key: &[u8]) -> Hmac<Sha256> {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => unreachable!("HMAC takes keys of any length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spelled(text: &str) -> String {
        Endpoint::parse(text).unwrap().as_str().to_owned()
    }

    #[test]
    fn a_uri_has_one_spelling() {
        assert_eq!(spelled("HTTPS://API.Example.COM:443/a/../b?x=1"), "https://api.example.com/b?x=1");
        assert_eq!(spelled("http://example.com:80"), "http://example.com/");
        assert_eq!(spelled("http://bücher.example/ü"), "http://xn--bcher-kva.example/%C3%BC");
        assert_eq!(spelled("http://0x7f.1/"), "http://127.0.0.1/");
    }

    #[test]
    fn what_is_encoded_is_what_awty_http_refuses() {
        let place = include_str!("../../../http/sql/10_uri.sql");
        for (before, refused) in [("/", "[\"<>`{}]"), ("/?", "[\"<>'']")] {
            assert!(place.contains(refused), "{refused}");
            for letter in (0x21..0x7f_u8).map(char::from).filter(|letter| !"#\\?.".contains(*letter)) {
                let encoded = !spelled(&format!("http://a{before}{letter}")).ends_with(letter);
                assert_eq!(encoded, refused[1..].contains(letter) && letter != ']', "{before}{letter}");
            }
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        let refused = |text: &str| Endpoint::parse(text).unwrap_err();
        assert!(refused("ftp://example.com/").contains("scheme"));
        assert!(refused("https://u:p@example.com/").contains("password"));
        assert!(refused("https://example.com/#x").contains("fragment"));
        assert!(refused("https:///").contains("malformed"));
        assert!(refused("example.com/a").contains("malformed"));
        assert!(refused("http://exa mple.com/").contains("malformed"));
        assert!(refused("http://example.com/\n").contains("control"));
        assert!(refused(&format!("http://example.com/{}", "a".repeat(1_024))).contains("1024"));
        assert!(refused(&"a".repeat(1_000_000)).contains("too long"));
    }

    #[test]
    fn target_and_path_make_the_entity_and_a_send_key_is_cut_off() {
        let endpoint = Endpoint::parse("https://api.example.com:8443/a?b=c").unwrap();
        assert_eq!(
            (endpoint.entity_name().as_str(), endpoint.entity_key()),
            ("https://api.example.com:8443", "/a?b=c")
        );
        let leased = Endpoint::of_lease("https://api.example.com:8443", "/a?b=c#order-7").unwrap();
        assert_eq!(leased, endpoint);
    }

    #[test]
    fn an_id_depends_on_tenant_and_uri_alone() {
        let id = |tenant, uri| Endpoint::parse(uri).unwrap().id(tenant);
        assert_eq!(id(1, "https://example.com/"), id(1, "https://EXAMPLE.com:443"));
        assert_ne!(id(1, "https://example.com/"), id(2, "https://example.com/"));
        assert_eq!(id(1, "https://example.com/").len(), 2 + ID_LENGTH);
        assert_ne!(signing_key(b"m", 1, "s_1"), signing_key(b"m", 2, "s_1"));
        assert_ne!(signing_key(b"m", 1, "s_1"), signing_key(b"m", 1, "s_2"));
    }

    proptest! {
        #[test]
        fn no_text_upsets_it(text in "(https?:)?[/\\\\]{0,3}[a-z0-9@:.\\[\\]%#?é ]{0,30}") {
            if let Ok(endpoint) = Endpoint::parse(&text) {
                prop_assert_eq!(&Endpoint::parse(endpoint.as_str()).unwrap(), &endpoint);
                prop_assert_eq!(Endpoint::of_lease(&endpoint.entity_name(), endpoint.entity_key()).unwrap(), endpoint);
            }
        }
    }
}
