//! A balancer that does what it is told, as the cloud would.

use std::collections::BTreeMap;

use super::super::certificate::Certificates;
use super::super::service::{WantedCheck, WantedService};
use super::super::step::NewBalancer;
use super::super::targets::TargetAt;
use super::*;
use crate::annotations::ServiceProtocol;
use crate::wire::{ServiceCheckHttp, ServiceHttp};

/// What the cloud would show after these steps.
pub(super) fn apply(mut have: Observed, steps: &[Step]) -> Observed {
    for step in steps {
        match step {
            Step::Create(new) => {
                let kind = take_type(&mut have);
                have.found.ours = vec![made(new, kind)];
            }
            Step::IssueCertificate(_) => {
                have.certificates = Certificates::Known([9].into());
            }
            Step::Adopt { labels, .. } => {
                have.found.ours = vec![have.found.adoptable.take().unwrap()];
                have.found.ours[0].labels = labels.clone();
            }
            Step::Label { labels, .. } => have.found.ours[0].labels = labels.clone(),
            Step::Rename { name, .. } => have.found.ours[0].name = name.clone(),
            Step::Change { change, .. } => {
                if let Change::Type { .. } = change {
                    have.found.ours[0].kind = take_type(&mut have);
                } else {
                    change_one(&mut have.found.ours[0], change);
                }
            }
            Step::Release { .. } | Step::Delete { .. } => have.found.ours.clear(),
        }
    }
    have
}

fn take_type(have: &mut Observed) -> BalancerType {
    match std::mem::take(&mut have.kind) {
        WantedType::Change(kind) => kind,
        other => panic!("{other:?}"),
    }
}

fn made(new: &NewBalancer, kind: BalancerType) -> LoadBalancer {
    let mut made = LoadBalancer {
        name: new.name.clone(),
        labels: new.labels.clone(),
        kind,
        algorithm: AlgorithmField {
            kind: new.algorithm.map_or("round_robin", |a| a.as_str()).into(),
        },
        ..balancer()
    };
    made.public_net.enabled = new.public.unwrap_or(true);
    let (ip, range) = (None, None);
    let attach = new.network;
    let attach = attach.map(|network| Change::Attach { network, ip, range });
    let services = new.services.iter().cloned().map(Change::AddService);
    let targets = new.targets.iter().map(|(at, private)| Change::AddTarget {
        at: *at,
        private: *private,
        needs_room: false,
    });
    for change in attach.into_iter().chain(services).chain(targets) {
        change_one(&mut made, &change);
    }
    made
}

fn change_one(balancer: &mut LoadBalancer, change: &Change) {
    match change {
        Change::Ptr { ip, name } => {
            let public = &mut balancer.public_net;
            for address in [&mut public.ipv4, &mut public.ipv6] {
                if address.ip == Some(*ip) {
                    address.dns_ptr = Some(name.clone());
                }
            }
        }
        Change::Algorithm(algorithm) => balancer.algorithm.kind = algorithm.as_str().into(),
        Change::Type { .. } => panic!("the type is changed elsewhere"),
        Change::Detach { network } => balancer.private_net.retain(|net| net.network != *network),
        Change::Attach { network, ip, .. } => {
            assert!(balancer.private_net.is_empty(), "one network at a time");
            balancer.private_net.push(BalancerNet {
                network: *network,
                ip: ip.map_or_else(|| "10.0.0.100".parse().unwrap(), IpAddr::from),
            });
        }
        Change::Move { network, ip, .. } => {
            let net = balancer.private_net.iter_mut();
            let mut net = net.filter(|net| net.network == *network);
            net.next().expect("it is there").ip = ip.unwrap().into();
        }
        Change::Public(on) => balancer.public_net.enabled = *on,
        Change::AddService(wanted) => {
            let fresh = Service {
                listen_port: wanted.listen_port,
                ..service(wanted.listen_port)
            };
            assert!(
                !balancer
                    .services
                    .iter()
                    .any(|s| s.listen_port == wanted.listen_port),
                "one service per port"
            );
            balancer.services.push(set(fresh, wanted));
        }
        Change::UpdateService(wanted) => {
            let place = balancer.services.iter_mut();
            let mut place = place.filter(|s| s.listen_port == wanted.listen_port);
            let place = place.next().expect("updates what is there");
            *place = set(place.clone(), wanted);
        }
        Change::DeleteService(port) => balancer.services.retain(|s| s.listen_port != *port),
        Change::AddTarget { at, private, .. } => {
            let limit = balancer.kind.max_targets;
            assert!(balancer.targets.len() < limit, "there is room for {at}");
            let private = *private && matches!(at, TargetAt::Server(_));
            balancer.targets.push(match at {
                TargetAt::Server(id) => server_target(*id, private),
                TargetAt::Ip(ip) => ip_target(&ip.to_string()),
            });
        }
        Change::TurnTarget { at, private } => {
            let TargetAt::Server(id) = at else {
                panic!("{at} has only one way");
            };
            let targets = balancer.targets.iter_mut();
            let mut targets = targets.filter(|t| t.server == Some(TargetServer { id: *id }));
            let target = targets.next().expect("it is there");
            target.use_private_ip = Some(*private);
        }
        Change::RemoveTarget { at, .. } => balancer.targets.retain(|target| match at {
            TargetAt::Server(id) => target.server != Some(TargetServer { id: *id }),
            TargetAt::Ip(ip) => target.ip != Some(TargetIp { ip: *ip }),
        }),
    }
}

/// What is said counts, the rest stays.
fn set(have: Service, wanted: &WantedService) -> Service {
    let http = match wanted.protocol {
        ServiceProtocol::Tcp => None,
        ServiceProtocol::Http | ServiceProtocol::Https => {
            let old = have.http.unwrap_or(ServiceHttp {
                cookie_name: Some("HCLBSTICKY".into()),
                cookie_lifetime: Some(300),
                timeout_idle: Some(60),
                ..ServiceHttp::default()
            });
            let new = &wanted.http.options;
            Some(ServiceHttp {
                cookie_name: new.cookie_name.clone().or(old.cookie_name),
                cookie_lifetime: new.cookie_lifetime.or(old.cookie_lifetime),
                timeout_idle: new.timeout_idle.or(old.timeout_idle),
                redirect_http: new.redirect_http.unwrap_or(old.redirect_http),
                sticky_sessions: new.sticky_sessions.unwrap_or(old.sticky_sessions),
                certificates: match &wanted.http.certificates {
                    Some(ids) => ids.iter().copied().collect(),
                    None => old.certificates,
                },
            })
        }
    };
    Service {
        protocol: wanted.protocol.as_str().into(),
        destination_port: wanted.destination_port,
        proxyprotocol: wanted.proxy_protocol.unwrap_or(have.proxyprotocol),
        health_check: check(have.health_check, &wanted.check),
        http,
        ..have
    }
}

fn check(have: ServiceCheck, wanted: &WantedCheck) -> ServiceCheck {
    let http = match wanted.protocol {
        ServiceProtocol::Tcp => None,
        ServiceProtocol::Http | ServiceProtocol::Https => {
            let old = have.http.unwrap_or(ServiceCheckHttp {
                domain: Some(String::new()),
                path: Some("/".into()),
                status_codes: Some(vec!["2??".into(), "3??".into()]),
                tls: Some(false),
            });
            Some(ServiceCheckHttp {
                domain: wanted.domain.clone().or(old.domain),
                path: wanted.path.clone().or(old.path),
                status_codes: wanted.status_codes.clone().or(old.status_codes),
                tls: wanted.tls.or(old.tls),
            })
        }
    };
    ServiceCheck {
        protocol: wanted.protocol.as_str().into(),
        port: wanted.port,
        interval: wanted.interval.or(have.interval),
        timeout: wanted.timeout.or(have.timeout),
        retries: wanted.retries.or(have.retries),
        http,
    }
}

/// All labels of a balancer that we make.
pub(super) fn own_labels() -> BTreeMap<String, String> {
    [
        ("hcloud-ccm/service-uid", "u-1"),
        ("cloudkeel.dev/cluster-uid", "c-1"),
        ("cloudkeel.dev/service-namespace", "ns"),
        ("cloudkeel.dev/service-name", "web"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}
