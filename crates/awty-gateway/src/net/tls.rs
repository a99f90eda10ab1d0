//! Connections to endpoints need TLS 1.2 or later. The gateway trusts the certificates of the system and of the
//! configuration.

use super::allowance::Metered;
use super::fault::{Failure, Fault};
use super::verifier::Verifier;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub fn roots(extra: &[PathBuf]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for file in extra {
        let problem = |error: &dyn std::fmt::Display| format!("extra_roots: {}: {error}", file.display());
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| problem(&error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| problem(&error))?;
            roots.add(certificate).map_err(|error| problem(&error))?;
        }
    }
    Ok(roots)
}

pub fn config(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier::new(roots, &provider));
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| format!("TLS cannot start: {error}"))?;
    let mut config = versions.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    // Does not keep sessions, because each of them has a copy of all certificates of its endpoint.
    config.resumption = Resumption::disabled();
    Ok(config)
}

pub async fn handshake(config: &Arc<ClientConfig>, host: &str, tcp: Metered) -> Result<TlsStream<Metered>, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let name = ServerName::try_from(bare.to_owned()).map_err(|error| Failure::new(Fault::CertificateName, error))?;
    TlsConnector::from(config.clone()).connect(name, tcp).await.map_err(|error| failure(&error))
}

fn failure(error: &std::io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let fault = match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::CertificateExpired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Fault::CertificateExpired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Fault::CertificateName
            }
            CertificateError::UnknownIssuer => Fault::CertificateUnknown,
            _ => Fault::Tls,
        },
        _ => Fault::Tls,
    };
    Failure::new(fault, error)
}
