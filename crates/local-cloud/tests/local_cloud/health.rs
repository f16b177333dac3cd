//! Targets that fail and recover.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use cloudkeel_local_cloud::Health;
use cloudkeel_local_cloud::simulated_cloud::wire::{
    HealthCheck, Probe, Target, TargetAt, TargetState,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::lab::{Backend, DEADLINE, Lab, listener};

#[tokio::test]
async fn a_target_that_fails_is_left_out_until_it_recovers() {
    let lab = Lab::new().await;
    let mut backends = Backend::several(["a", "b"]).await;
    let targets: Vec<_> = backends.iter().collect();
    let front = lab.balancer(&targets, |_| {}).await;
    let failing = backends[0].address;
    backends[0].stop().await;
    lab.until(&front, "it is found out", |targets| {
        let target = targets.iter().find(|t| t.address == failing);
        target.is_some_and(|t| t.health == Health::Unhealthy)
    })
    .await;
    let before = failures(&lab, &front, failing).await;
    for _ in 0..6 {
        assert_eq!(front.ask().await.as_deref(), Some("b"));
    }
    assert_eq!(
        failures(&lab, &front, failing).await,
        before,
        "it is not even tried"
    );
    let reported = lab.reported_health(&front, "every client can read it", |health| {
        health.contains(&Health::Unhealthy)
    });
    assert_eq!(reported.await, [Health::Unhealthy, Health::Healthy]);
    let complaint = lab.targets(&front).await;
    let complaint = complaint.iter().find_map(|t| t.complaint.clone());
    assert!(complaint.is_some_and(|why| why.contains("refused")));
    backends[0].start_again().await;
    lab.until(&front, "it recovers", |targets| {
        targets.iter().all(|t| t.health == Health::Healthy)
    })
    .await;
    let heard = [front.ask().await, front.ask().await];
    assert!(heard.contains(&Some("a".to_owned())), "{heard:?}");
}

async fn failures(lab: &Lab, front: &crate::lab::Front, address: SocketAddr) -> u64 {
    let targets = lab.targets(front).await;
    let target = targets.iter().find(|t| t.address == address);
    target.map_or(0, |target| target.failures)
}

/// Answers every request with the status of the moment; over TLS if it can.
async fn web_server(status: Arc<AtomicU16>, tls: Option<TlsAcceptor>) -> SocketAddr {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let address = server.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = server.accept().await {
            let (status, tls) = (Arc::clone(&status), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => answer(stream, &status).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, &status).await;
                        }
                    }
                }
            });
        }
    });
    address
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, status: &AtomicU16) {
    let mut request = vec![0; 1024];
    let Ok(read) = stream.read(&mut request).await else {
        return;
    };
    let is_right = request[..read].starts_with(b"GET /healthz HTTP/1.1\r\n");
    let status = if is_right {
        status.load(Ordering::Relaxed)
    } else {
        400
    };
    let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n");
    // Who left does not want an answer.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn self_signed() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["node".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a configuration");
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn a_check_by_http_goes_by_the_status_on_its_own_port() {
    let path = || "/healthz".to_owned();
    for (case, probe, tls) in [
        ("http", Probe::Http { path: path() }, None),
        ("https", Probe::Https { path: path() }, Some(self_signed())),
    ] {
        let lab = Lab::new().await;
        let backend = Backend::several(["a"]).await;
        let status = Arc::new(AtomicU16::new(503));
        let web = web_server(Arc::clone(&status), tls).await;
        let front = lab
            .balancer(&[], |new| {
                let mut checked = listener(8080, backend[0].address.port());
                checked.health_check = HealthCheck {
                    probe,
                    port: Some(web.port()),
                    ..checked.health_check
                };
                new.listeners = vec![checked];
                // The server of checks listens on 127.0.0.1, so the target is there too.
                new.targets = vec![Target {
                    at: TargetAt::Ip(web.ip()),
                    state: TargetState::Serving,
                }];
            })
            .await;
        lab.until(&front, case, |targets| {
            targets.iter().all(|t| {
                let why = t.complaint.as_deref().unwrap_or_default();
                t.health == Health::Unhealthy && why.contains("503")
            })
        })
        .await;
        status.store(200, Ordering::Relaxed);
        lab.until(&front, case, |targets| {
            targets.iter().all(|t| t.health == Health::Healthy)
        })
        .await;
    }
}

#[tokio::test]
async fn targets_that_come_and_go_do_not_put_off_the_checks_of_others() {
    let lab = Lab::new().await;
    let mut backends = Backend::several(["a", "b", "guest"]).await;
    let targets: Vec<_> = backends.iter().take(2).collect();
    let front = lab.balancer(&targets, |_| {}).await;
    backends[1].stop().await;
    let [_, dead, guest] = backends.each_ref();
    let noticed = async {
        loop {
            lab.edit(&front, |balancer| balancer.targets.push(guest.as_target()))
                .await;
            lab.edit(&front, |balancer| {
                balancer.targets.retain(|target| target.at != guest.at());
            })
            .await;
            let targets = lab.targets(&front).await;
            let dead = targets.iter().find(|t| t.address == dead.address);
            if dead.is_some_and(|t| t.health == Health::Unhealthy) {
                return;
            }
        }
    };
    let noticed = tokio::time::timeout(DEADLINE, noticed).await;
    assert!(noticed.is_ok(), "the others were not checked");
}

#[tokio::test]
async fn another_interval_counts_at_once() {
    let lab = Lab::new().await;
    let mut backend = Backend::one("a").await;
    let front = lab
        .balancer(&[&backend], |new| {
            new.listeners[0].health_check.interval_seconds = 3600;
        })
        .await;
    backend.stop().await;
    lab.edit(&front, |balancer| {
        balancer.listeners[0].health_check.interval_seconds = 1;
    })
    .await;
    lab.until(&front, "it is found out", |targets| {
        targets[0].health == Health::Unhealthy
    })
    .await;
}
