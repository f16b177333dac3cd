use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Secret};
use cloudkeel_http::{CallFailure, HttpSettings, Request, Response, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::client;
use crate::server::Server;

/// A CA for one test.
pub(crate) struct Ca {
    pub(crate) pem: String,
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let name = format!("CA {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            pem: certificate.pem(),
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate, key)
    }

    /// A server of this name that asks clients for certificates of `clients`, if given.
    pub(crate) fn acceptor(&self, name: &str, clients: Option<&Self>) -> TlsAcceptor {
        let (certificate, key) = self.issue(name);
        let provider = Arc::new(ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                roots.add(ca.certificate.der().clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = builder
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

async fn ask(address: SocketAddr, tls: TlsSettings) -> Result<Response, CloudError> {
    let http = HttpSettings {
        tls,
        ..HttpSettings::default()
    };
    let client = client(format!("https://{address}"), http).build()?;
    client.send(Request::get("/x")).await
}

#[tokio::test]
async fn only_a_server_with_a_trusted_certificate_is_spoken_to() {
    let (ca, other) = (Ca::new(), Ca::new());
    for (case, name, tls, trusted) in [
        (
            "its CA",
            "127.0.0.1",
            TlsSettings::default().trust(ca.pem.as_str()),
            true,
        ),
        (
            "one of two CAs",
            "127.0.0.1",
            TlsSettings::default().trust(format!("{}{}", other.pem, ca.pem)),
            true,
        ),
        (
            "another CA",
            "127.0.0.1",
            TlsSettings::default().trust(other.pem.as_str()),
            false,
        ),
        (
            "only the system's",
            "127.0.0.1",
            TlsSettings::default(),
            false,
        ),
        (
            "its CA, another name",
            "cloud.invalid",
            TlsSettings::default().trust(ca.pem.as_str()),
            false,
        ),
        (
            "no check",
            "cloud.invalid",
            TlsSettings::default().insecure(true),
            true,
        ),
        (
            "no check on purpose",
            "cloud.invalid",
            TlsSettings::default().insecure(false),
            false,
        ),
    ] {
        let server = Server::tls(ca.acceptor(name, None)).await;
        match ask(server.address, tls).await {
            Ok(_) => assert!(trusted, "{case}"),
            Err(error) => {
                assert!(!trusted, "{case}: {error}");
                assert_eq!(error.kind(), ErrorKind::Invalid, "{case}: {error}");
                assert!(error.to_string().contains("certificate"), "{case}: {error}");
                assert_eq!(CallFailure::of(&error).unwrap().attempts, 1, "{case}");
                assert!(server.seen().is_empty(), "{case}");
                assert_eq!(server.connections.load(Ordering::Relaxed), 1, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_left_and_even_a_post_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut silent = Vec::new();
        loop {
            silent.push(listener.accept().await.unwrap());
        }
    });
    let http = HttpSettings {
        connect_timeout: Duration::from_millis(300),
        ..HttpSettings::default()
    };
    let client = client(base, http).build().unwrap();
    let error = client.send(Request::post("/x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(text.contains("no connection within 300ms"), "{text}");
    assert_eq!(CallFailure::of(&error).unwrap().attempts, 4);
}

#[tokio::test]
async fn a_client_certificate_is_presented() {
    let (ca, clients, strangers) = (Ca::new(), Ca::new(), Ca::new());
    let trusting = || TlsSettings::default().trust(ca.pem.as_str());
    let presenting = |issuer: &Ca| {
        let (certificate, key) = issuer.issue("cloudkeel");
        trusting().present(certificate.pem(), Secret::new(key.serialize_pem()))
    };
    for (case, tls, accepted) in [
        ("the right one", presenting(&clients), true),
        ("none", trusting(), false),
        ("a strange one", presenting(&strangers), false),
    ] {
        let server = Server::tls(ca.acceptor("127.0.0.1", Some(&clients))).await;
        match ask(server.address, tls).await {
            Ok(_) => assert!(accepted, "{case}"),
            Err(error) => {
                assert!(!accepted, "{case}: {error}");
                assert_eq!(error.kind(), ErrorKind::Invalid, "{case}: {error}");
                assert!(server.seen().is_empty(), "{case}");
            }
        }
    }
}
