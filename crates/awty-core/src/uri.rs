//! Normalises the URIs of HTTP endpoints, and computes the ids of their schedules.
//!
//! Invariant: the id of a URI never changes, and a second normalisation changes nothing.

use crate::argument_limits::{MAX_ENTITY_KEY, MAX_ENTITY_NAME};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use url::{Host, Position, Url};

const MAX_TEXT: usize = 4_096;
const ID_LENGTH: usize = 22;

/// Reason why awty refuses a URI. The error message puts the argument's name before the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UriError {
    TooLong {
        part: &'static str,
        max: usize,
    },
    Control,
    Malformed(url::ParseError),
    Scheme(String),
    User,
    Fragment,
    /// The URI is not in its normal spelling. This variant contains the URI in its normal spelling.
    OtherSpelling(Uri),
    /// The host is an IPv6 address that contains an IPv4 address.
    MappedAddress,
    NoHost,
    Port(u16),
}

pub const fn is_port_allowed(port: u16) -> bool {
    matches!(port, 80 | 443 | 1024..)
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UriError::TooLong { part, max } => write!(f, "has too long a {part}; write at most {max} bytes"),
            UriError::Control => f.write_str("has a control character; percent-encode it"),
            UriError::Malformed(error) => {
                write!(f, "is malformed ({error}); write for example https://api.example.com/tick")
            }
            UriError::Scheme(scheme) => write!(f, "has the scheme {scheme}; write http or https"),
            UriError::User => f.write_str("has a user or password; put them into a header with {{secret:NAME}}"),
            UriError::Fragment => f.write_str("has a fragment, which is never sent; leave out what begins with #"),
            UriError::OtherSpelling(uri) => write!(f, "is not in its normal spelling; write {uri}"),
            UriError::NoHost => f.write_str("is malformed (no host); write for example https://api.example.com/tick"),
            UriError::Port(port) => {
                write!(f, "has port {port}, which is never called; write 80, 443, or 1024 and above")
            }
            UriError::MappedAddress => f.write_str("has an IPv6 address that contains an IPv4 address; write that"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    url: Url,
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Uri {
    pub fn parse(text: &str) -> Result<Self, UriError> {
        if text.len() > MAX_TEXT {
            return Err(UriError::TooLong { part: "text", max: MAX_TEXT });
        }
        if text.chars().any(char::is_control) {
            return Err(UriError::Control);
        }
        let url = Url::parse(text).map_err(UriError::Malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UriError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UriError::User);
        }
        if url.fragment().is_some() {
            return Err(UriError::Fragment);
        }
        // Refuses `http:///x` and `http:x`, because the URL standard takes both for `http://x/`.
        let after = text.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
        if after.is_none_or(|rest| rest.starts_with(['/', '\\'])) {
            return Err(UriError::NoHost);
        }
        let uri = Uri { url };
        if uri.entity_key().len() > MAX_ENTITY_KEY {
            return Err(UriError::TooLong { part: "path and query", max: MAX_ENTITY_KEY });
        }
        if uri.entity_name().len() > MAX_ENTITY_NAME {
            return Err(UriError::TooLong { part: "scheme, host and port", max: MAX_ENTITY_NAME });
        }
        Ok(uri)
    }

    /// Accepts a URI that differs from its normal spelling only by upper case in scheme or host, a default port, or a
    /// missing path.
    pub fn parse_normal(text: &str) -> Result<Self, UriError> {
        let uri = Self::parse(text)?;
        if matches!(uri.url.host(), Some(Host::Ipv6(address)) if address.to_ipv4_mapped().is_some()) {
            return Err(UriError::MappedAddress);
        }
        let (name, key) = (uri.entity_name(), uri.entity_key());
        let (origin, rest) = text.split_at_checked(name.len()).unwrap_or_default();
        let default_port = if uri.url.scheme() == "https" { ":443" } else { ":80" };
        let rest = rest.strip_prefix(default_port).or_else(|| rest.strip_prefix(':')).unwrap_or(rest);
        let is_key = rest == key || key.strip_prefix('/') == Some(rest);
        if !(origin.eq_ignore_ascii_case(&name) && is_key) {
            return Err(UriError::OtherSpelling(uri));
        }
        match uri.url.port_or_known_default() {
            Some(port) if !is_port_allowed(port) => Err(UriError::Port(port)),
            _ => Ok(uri),
        }
    }

    /// The URI of a lease is `entity_name`, followed by `entity_key` up to its `#`. The part after the `#` only
    /// distinguishes calls of the same URI.
    pub fn of_lease(entity_name: &str, entity_key: &str) -> Result<Self, UriError> {
        let path = entity_key.split_once('#').map_or(entity_key, |(path, _)| path);
        Self::parse(&format!("{entity_name}{path}"))
    }

    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns scheme, host and port, which are the target of a call.
    pub fn entity_name(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub fn entity_key(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }

    pub fn url(&self) -> &Url {
        &self.url
    }
}

pub fn id(tenant: i64, uri: impl AsRef<[u8]>) -> String {
    let digest = Sha256::new().chain_update(tenant.to_string()).chain_update("\n").chain_update(uri).finalize();
    let mut id = URL_SAFE_NO_PAD.encode(digest);
    id.truncate(ID_LENGTH);
    format!("s_{id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(text: &str) -> String {
        Uri::parse(text).unwrap().to_string()
    }

    #[test]
    fn a_uri_has_one_spelling() {
        assert_eq!(normal("HTTPS://API.Example.COM:443/a/../b?x=1"), "https://api.example.com/b?x=1");
        assert_eq!(normal("http://example.com:80"), "http://example.com/");
        assert_eq!(normal("http://bücher.example/ü"), "http://xn--bcher-kva.example/%C3%BC");
        assert_eq!(normal("http://0x7f.1/"), "http://127.0.0.1/");
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        let refused = |text: &str| Uri::parse(text).unwrap_err().to_string();
        assert!(refused("ftp://example.com/").contains("scheme"));
        assert!(refused("https://u:p@example.com/").contains("password"));
        assert!(refused("https://example.com/#x").contains("fragment"));
        assert!(refused("https:///").contains("malformed"));
        for text in ["http:///x", "http:x", "http:/x", "http:\\\\x", "http://\\x/", "https:////x"] {
            assert_eq!(Uri::parse(text), Err(UriError::NoHost), "{text}");
        }
        assert!(refused("example.com/a").contains("malformed"));
        assert!(refused("http://exa mple.com/").contains("malformed"));
        assert!(refused("http://example.com/\n").contains("control"));
        assert!(refused(&format!("http://example.com/{}", "a".repeat(1_024))).contains("1024"));
        assert!(refused(&format!("http://{}.example.com/", ["a"; 140].join("."))).contains("255"));
        assert!(refused(&"a".repeat(1_000_000)).contains("too long"));
    }

    #[test]
    fn only_the_normal_spelling_is_normal() {
        for text in
            ["http://x/", "http://x", "HTTP://X:80/", "https://x:/a", "https://x:443?b=1", "http://[2001:DB8::1]:8080"]
        {
            assert_eq!(Uri::parse_normal(text), Uri::parse(text), "{text}");
        }
        for text in [
            "http:x/",
            "http://x/a b",
            " http://x/",
            "http://x/a/../b",
            "http://x:080/",
            "https://x:80:/",
            "http://x:0/",
        ] {
            assert!(Uri::parse_normal(text).is_err(), "{text}");
        }
        for (port, allowed) in [(1, false), (22, false), (80, true), (444, false), (1023, false), (1024, true)] {
            assert_eq!(Uri::parse_normal(&format!("https://a.example:{port}/")).is_ok(), allowed, "{port}");
            assert!(Uri::parse(&format!("https://a.example:{port}/")).is_ok(), "the gateway's guard judges {port}");
        }
        let port = Uri::parse_normal("http://127.0.0.1:22/").unwrap_err().to_string();
        assert_eq!(port, "has port 22, which is never called; write 80, 443, or 1024 and above");
        let address = Uri::parse_normal("http://[::ffff:7f00:1]/").unwrap_err();
        assert_eq!(address, UriError::MappedAddress);
        let other = Uri::parse_normal("http://127.1/ä").unwrap_err();
        assert_eq!(other.to_string(), "is not in its normal spelling; write http://127.0.0.1/%C3%A4");
    }

    #[test]
    fn target_and_path_make_the_entity_and_a_send_key_is_cut_off() {
        let uri = Uri::parse("https://api.example.com:8443/a?b=c").unwrap();
        assert_eq!((uri.entity_name().as_str(), uri.entity_key()), ("https://api.example.com:8443", "/a?b=c"));
        assert_eq!(Uri::of_lease("https://api.example.com:8443", "/a?b=c#order-7").unwrap(), uri);
    }

    #[test]
    fn an_id_depends_on_tenant_and_uri_alone() {
        let id = |tenant, uri| id(tenant, normal(uri));
        assert_eq!(id(1, "https://example.com/"), id(1, "https://EXAMPLE.com:443"));
        assert_ne!(id(1, "https://example.com/"), id(2, "https://example.com/"));
        assert_eq!(id(1, "https://example.com/").len(), 2 + ID_LENGTH);
    }

    proptest! {
        #[test]
        fn no_text_upsets_it(text in "(https?:)?[/\\\\]{0,3}[a-zA-Z0-9@:.\\[\\]%#?é ]{0,30}") {
            if let Ok(uri) = Uri::parse(&text) {
                prop_assert_eq!(&Uri::parse(uri.as_str()).unwrap(), &uri);
                prop_assert_eq!(Uri::of_lease(&uri.entity_name(), uri.entity_key()).unwrap(), uri);
            }
            if let Ok(uri) = Uri::parse_normal(&text) {
                let path = text.find("://").and_then(|at| Some(at + 3 + text[at + 3..].find(['/', '?'])?));
                prop_assert_eq!(path.map_or("/", |at| &text[at..]).trim_start_matches('/'), uri.entity_key().trim_start_matches('/'));
            }
        }

        #[test]
        fn a_normal_spelling_is_normal(text in "https?://[a-z0-9.]{1,10}(:[2-9][0-9]{3})?/[a-z/?%'\"`ü ]{0,10}") {
            if let Ok(uri) = Uri::parse(&text) {
                prop_assert_eq!(Uri::parse_normal(uri.as_str()), Ok(uri));
            }
        }
    }
}
