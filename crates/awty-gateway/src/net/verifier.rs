//! Verifies certificates as rustls does by default, with a limit of the work.
//!
//! rustls tries all paths between the certificates that an endpoint sends, up to 200,000 steps, and no other task has a
//! turn meanwhile. An endpoint can send certificates with many paths.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Maximum number of certificates that an endpoint may send after its own. A connection keeps all of them.
const MOST: usize = 10;
/// The verifier uses only the first four, which have at most 64 paths. The issuer of a certificate usually follows it
/// (RFC 8446, section 4.4.2), and few certificates need more than two others.
const USED: usize = 4;

#[derive(Debug)]
pub struct Verifier {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub fn new(roots: RootCertStore, provider: &CryptoProvider) -> Self {
        Verifier { roots, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if others.len() > MOST {
            return Err(Error::General(format!("the endpoint sends more than {} certificates", MOST + 1)));
        }
        let (own, used) = (ParsedCertificate::try_from(own)?, &others[..others.len().min(USED)]);
        verify_server_cert_signed_by_trust_anchor(&own, &self.roots, used, now, self.algorithms.all)?;
        verify_server_name(&own, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
