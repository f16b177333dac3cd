//! A balancer that carries steps out, as the cloud would.

use std::collections::BTreeMap;

use super::super::certificate::Certificates;
use super::super::step::NewBalancer;
use super::super::targets::TargetAt;
use super::*;
use crate::wire::{ServiceCheckHttp, ServiceHttp};

/// What the cloud would show after these steps.
pub(super) fn apply(mut have: Observed, steps: &[Step]) -> Observed {
    for step in steps {
        match step {
            Step::Create(new) => {
                let wanted = take_type(&mut have);
                have.found.ours = vec![created(new, wanted)];
            }
            Step::IssueCertificate(_) => {
                have.certificates = Certificates::Known([9].into());
            }
            Step::Adopt(_, labels) => {
                have.found.ours = vec![have.found.adoptable.take().unwrap()];
                have.found.ours[0].labels = labels.clone();
            }
            Step::Label(_, labels) => have.found.ours[0].labels = labels.clone(),
            Step::Rename(_, name) => have.found.ours[0].name = name.clone(),
            Step::Change { change, .. } => {
                if let Change::Type { .. } = change {
                    have.found.ours[0].load_balancer_type = take_type(&mut have);
                } else {
                    change_one(&mut have.found.ours[0], change);
                }
            }
            Step::Release(..) | Step::Delete(_) => have.found.ours.clear(),
            Step::DeleteCertificate(id) => have.left_certificates.retain(|left| left != id),
        }
    }
    have
}

fn take_type(have: &mut Observed) -> BalancerType {
    match std::mem::take(&mut have.type_change) {
        BalancerTypeChange::To(wanted) => wanted,
        other => panic!("{other:?}"),
    }
}

fn created(new: &NewBalancer, load_balancer_type: BalancerType) -> LoadBalancer {
    let mut created = LoadBalancer {
        name: new.name.clone(),
        labels: new.labels.clone(),
        load_balancer_type,
        algorithm: new.algorithm.clone().unwrap_or(AlgorithmField {
            name: "round_robin".into(),
        }),
        ..balancer()
    };
    created.public_net.enabled = new.public.unwrap_or(true);
    let (ip, ip_range) = (None, None);
    let attach = new.network;
    let attach = attach.map(|network| Change::Attach {
        network,
        ip,
        ip_range,
    });
    let services = new.services.iter().cloned().map(Change::AddService);
    let targets = new.targets.iter().map(|target| Change::AddTarget {
        at: TargetAt::Server(target.server.expect("a server").id),
        private: target.use_private_ip.expect("a way"),
        needs_capacity: false,
    });
    for change in attach.into_iter().chain(services).chain(targets) {
        change_one(&mut created, &change);
    }
    created
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
        Change::Algorithm { algorithm } => balancer.algorithm.name = algorithm.as_str().into(),
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
            let mut services = balancer.services.iter();
            let is_taken = services.any(|s| s.listen_port == wanted.listen_port);
            assert!(!is_taken, "one service per port");
            balancer.services.push(set(fresh, wanted));
        }
        Change::UpdateService(wanted) => {
            let place = balancer.services.iter_mut();
            let mut place = place.filter(|s| s.listen_port == wanted.listen_port);
            let place = place.next().expect("updates what is there");
            *place = set(place.clone(), wanted);
        }
        Change::DeleteService { listen_port } => {
            balancer.services.retain(|s| s.listen_port != *listen_port);
        }
        Change::AddTarget { at, private, .. } => {
            let limit = balancer.load_balancer_type.max_targets;
            assert!(balancer.targets.len() < limit, "it takes {at}");
            let private = *private && matches!(at, TargetAt::Server(_));
            balancer.targets.push(match at {
                TargetAt::Server(id) => server_target(*id, private),
                TargetAt::Ip(ip) => ip_target(&ip.to_string()),
            });
        }
        Change::Retarget { at, private } => {
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

/// What is asked for counts, the rest stays.
fn set(have: Service, wanted: &Service) -> Service {
    let http = (wanted.protocol != "tcp").then(|| {
        let old = have.http.unwrap_or(ServiceHttp {
            cookie_name: Some("HCLBSTICKY".into()),
            cookie_lifetime: Some(300),
            timeout_idle: Some(60),
            ..ServiceHttp::default()
        });
        let new = wanted.http.clone().unwrap_or_default();
        ServiceHttp {
            cookie_name: new.cookie_name.or(old.cookie_name),
            cookie_lifetime: new.cookie_lifetime.or(old.cookie_lifetime),
            timeout_idle: new.timeout_idle.or(old.timeout_idle),
            redirect_http: new.redirect_http.or(old.redirect_http),
            sticky_sessions: new.sticky_sessions.or(old.sticky_sessions),
            certificates: new.certificates.or(old.certificates),
        }
    });
    Service {
        protocol: wanted.protocol.clone(),
        destination_port: wanted.destination_port,
        proxyprotocol: wanted.proxyprotocol.or(have.proxyprotocol),
        health_check: check(have.health_check, &wanted.health_check),
        http,
        ..have
    }
}

fn check(have: ServiceCheck, wanted: &ServiceCheck) -> ServiceCheck {
    let http = wanted.http.as_ref().map(|new| {
        let old = have.http.unwrap_or(ServiceCheckHttp {
            domain: Some(String::new()),
            path: Some("/".into()),
            status_codes: Some(vec!["2??".into(), "3??".into()]),
            tls: Some(false),
        });
        ServiceCheckHttp {
            domain: new.domain.clone().or(old.domain),
            path: new.path.clone().or(old.path),
            status_codes: new.status_codes.clone().or(old.status_codes),
            tls: new.tls.or(old.tls),
        }
    });
    ServiceCheck {
        protocol: wanted.protocol.clone(),
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
