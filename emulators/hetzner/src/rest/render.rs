//! Resources as the API shows them.

use std::net::IpAddr;

use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::selector::Selector;
use serde_json::{Value, json};

use super::wire_time;
use crate::state::{
    Certificate, Destination, LoadBalancer, LoadBalancerType, Network, ProjectContext, Server,
    ServerStatus, Target,
};

/// The IDs of the resources of which this is true.
fn ids<T>(table: &Table<T>, view: View, is_meant: impl Fn(&T) -> bool) -> Vec<u64> {
    let meant = table.all_seen(view).filter(|(_, value)| is_meant(value));
    meant.map(|(id, _)| id).collect()
}

impl ProjectContext<'_> {
    pub(super) fn render_server(&self, server: &Server) -> Value {
        let balancers = ids(&self.project.balancers, self.view, |balancer| {
            let mut targets = balancer.targets.iter();
            targets.any(|target| target.to == Destination::Server(server.id))
        });
        let ipv4 = server.ipv4.map(|ip| {
            json!({
                "id": server.id + 1_000_000_000,
                "ip": ip,
                "blocked": false,
                "dns_ptr": static_name(IpAddr::V4(ip)),
            })
        });
        let ipv6 = server.ipv6.map(|net| {
            let id = server.id + 2_000_000_000;
            json!({"id": id, "ip": net, "blocked": false, "dns_ptr": []})
        });
        json!({
            "id": server.id,
            "name": server.name,
            "status": server.status,
            "created": wire_time(server.created),
            "public_net": {
                "ipv4": ipv4,
                "ipv6": ipv6,
                "floating_ips": [],
                "firewalls": [],
            },
            "private_net": server.private_net,
            "server_type": server.server_type,
            "location": server.location,
            "image": null,
            "iso": null,
            "rescue_enabled": false,
            "locked": self.project.jobs.lock_on(&("server", server.id)).is_some(),
            "backup_window": null,
            "outgoing_traffic": 0,
            "ingoing_traffic": 0,
            "included_traffic": 21_990_232_555_520_u64,
            "protection": {"delete": server.protected, "rebuild": server.protected},
            "labels": server.labels,
            "volumes": [],
            "load_balancers": balancers,
            "primary_disk_size": 40,
            "placement_group": null,
        })
    }

    pub(super) fn render_network(&self, network: &Network) -> Value {
        let servers = ids(&self.project.servers, self.view, |server| {
            server.in_network(network.id).is_some()
        });
        let balancers = ids(&self.project.balancers, self.view, |balancer| {
            let attached = balancer.private_net;
            attached.is_some_and(|(there, _)| there == network.id)
        });
        json!({
            "id": network.id,
            "name": network.name,
            "ip_range": network.ip_range,
            "subnets": network.subnets,
            "routes": network.routes,
            "servers": servers,
            "load_balancers": balancers,
            "protection": {"delete": network.protected},
            "labels": network.labels,
            "created": wire_time(network.created),
            "expose_routes_to_vswitch": network.expose_routes_to_vswitch,
        })
    }

    pub(super) fn render_balancer(&self, balancer: &LoadBalancer) -> Value {
        let public = balancer.public.as_ref();
        let private = balancer
            .private_net
            .map(|(network, ip)| json!({"network": network, "ip": ip}));
        let kind = self
            .balancer_types
            .iter()
            .find(|kind| kind.id == balancer.kind);
        let targets = balancer.targets.iter();
        json!({
            "id": balancer.id,
            "name": balancer.name,
            "public_net": {
                "enabled": balancer.public_interface,
                "ipv4": {
                    "ip": public.map(|public| public.ipv4),
                    "dns_ptr": public.map(|public| &public.ipv4_ptr),
                },
                "ipv6": {
                    "ip": public.map(|public| public.ipv6),
                    "dns_ptr": public.map(|public| &public.ipv6_ptr),
                },
            },
            "private_net": private.into_iter().collect::<Vec<_>>(),
            "location": balancer.location,
            "load_balancer_type": kind.map(LoadBalancerType::wire),
            "protection": {"delete": balancer.protected},
            "labels": balancer.labels,
            "created": wire_time(balancer.created),
            "services": balancer.services,
            "targets": targets.map(|target| self.render_target(balancer, target)).collect::<Vec<_>>(),
            "algorithm": {"type": balancer.algorithm},
            "included_traffic": 21_990_232_555_520_u64,
            "outgoing_traffic": null,
            "ingoing_traffic": null,
        })
    }

    fn render_target(&self, balancer: &LoadBalancer, target: &Target) -> Value {
        match &target.to {
            Destination::Server(id) => self.render_server_target(balancer, target, *id),
            Destination::Ip(ip) => {
                let mut servers = self.robot.servers.values();
                let server = servers.find(|server| IpAddr::V4(server.ip) == *ip);
                let is_healthy = server.is_none_or(|server| server.operating_status != "shut off");
                json!({
                    "type": "ip",
                    "ip": {"ip": ip},
                    "health_status": statuses(balancer, is_healthy),
                    "use_private_ip": false,
                })
            }
            Destination::LabelSelector(selector) => {
                let parsed = Selector::parse(selector).unwrap_or_default();
                let servers = self.project.servers.all_seen(self.view);
                let selected = servers.filter(|(_, server)| parsed.matches(&server.labels));
                let inner = selected.map(|(id, _)| self.render_server_target(balancer, target, id));
                json!({
                    "type": "label_selector",
                    "label_selector": {"selector": selector},
                    "targets": inner.collect::<Vec<_>>(),
                    "use_private_ip": target.use_private_ip,
                })
            }
        }
    }

    fn render_server_target(&self, balancer: &LoadBalancer, target: &Target, id: u64) -> Value {
        let network = balancer.private_net.map(|(network, _)| network);
        let reachable = |server: &Server| match (target.use_private_ip, network) {
            (true, Some(network)) => server.in_network(network).is_some(),
            (true, None) => false,
            (false, _) => server.ipv4.is_some() && balancer.public_interface,
        };
        let server = self.project.servers.get(&id);
        let is_healthy = server
            .is_some_and(|server| server.status == ServerStatus::Running && reachable(server));
        json!({
            "type": "server",
            "server": {"id": id},
            "health_status": statuses(balancer, is_healthy),
            "use_private_ip": target.use_private_ip,
        })
    }

    pub(super) fn render_certificate(&self, certificate: &Certificate) -> Value {
        let balancers = ids(&self.project.balancers, self.view, |balancer| {
            balancer.certificates().contains(&certificate.id)
        });
        let used_by = balancers.iter();
        let used_by = used_by.map(|id| json!({"id": id, "type": "load_balancer"}));
        let failure = certificate.failure.as_ref();
        let status = certificate.managed.then(|| {
            json!({
                "issuance": certificate.issuance,
                "renewal": "unavailable",
                "error": failure.map(|code| json!({"code": code, "message": code})),
            })
        });
        let issued = certificate.issued.as_ref();
        json!({
            "id": certificate.id,
            "name": certificate.name,
            "labels": certificate.labels,
            "type": certificate.kind(),
            "certificate": issued.map(|issued| &issued.certificate),
            "created": wire_time(certificate.created),
            "not_valid_before": issued.map(|issued| wire_time(issued.not_before)),
            "not_valid_after": issued.map(|issued| wire_time(issued.not_after)),
            "domain_names": certificate.domain_names,
            "fingerprint": issued.map(|issued| &issued.fingerprint),
            "status": status,
            "used_by": used_by.collect::<Vec<_>>(),
        })
    }
}

/// Every service checks for itself.
fn statuses(balancer: &LoadBalancer, is_healthy: bool) -> Vec<Value> {
    let health = if is_healthy { "healthy" } else { "unhealthy" };
    let ports = balancer.services.iter().map(|service| service.listen_port);
    ports
        .map(|port| json!({"listen_port": port, "status": health}))
        .collect()
}

/// The name behind an address, as long as no other was chosen.
pub(super) fn static_name(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("static.{d}.{c}.{b}.{a}.clients.your-server.de")
        }
        IpAddr::V6(ip) => {
            let nibbles = ip.octets().into_iter().rev();
            let nibbles = nibbles.flat_map(|octet| [octet & 0xf, octet >> 4]);
            let text: Vec<_> = nibbles.map(|nibble| format!("{nibble:x}")).collect();
            format!("static.{}.clients.your-server.de", text.join("."))
        }
    }
}
