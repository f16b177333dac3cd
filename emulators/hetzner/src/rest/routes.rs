//! Routes of networks.

use std::net::Ipv4Addr;

use cloudkeel_emulation::{Answer, Call};
use ipnet::Ipv4Net;
use serde::Deserialize;

use super::body::{address, range, read};
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::{Network, ProjectContext, Route, first_address};

#[derive(Deserialize)]
struct RouteRequest {
    destination: String,
    gateway: String,
}

/// The gateway of every server's public interface.
const PUBLIC_GATEWAY: Ipv4Addr = Ipv4Addr::new(172, 31, 1, 1);

impl ProjectContext<'_> {
    pub(super) fn change_routes(&mut self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let network: Network = self.find(call)?;
        self.check_unlocked("network", network.id)?;
        let request: RouteRequest = read(call)?;
        let route = Route {
            destination: range("destination", &request.destination)?,
            gateway: address("gateway", &request.gateway)?,
        };
        let adds = call.operation == Operation::AddRoute;
        if adds {
            network.check_new_route(route, self.settings.limits.routes)?;
        } else if !network.routes.contains(&route) {
            let what = format!("{} via {}", route.destination, route.gateway);
            return Err(Refusal::not_found("route", what));
        }
        let command = if adds { "add_route" } else { "delete_route" };
        let job = self.job(command, vec![("network", network.id)]);
        Ok(self.begin(job, move |project, at| {
            project.networks.edit(&network.id, at, |network| {
                if adds {
                    network.routes.push(route);
                } else {
                    network.routes.retain(|have| *have != route);
                }
            });
        }))
    }
}

impl Network {
    /// Refuses a route that is not good for this network.
    fn check_new_route(&self, route: Route, most: usize) -> Result<(), Refusal> {
        let Route {
            destination,
            gateway,
        } = route;
        let everything = Ipv4Net::default();
        let mut subnets = self.subnets.iter().map(|subnet| subnet.ip_range);
        let mut others = self.routes.iter().map(|route| route.destination);
        let overlaps_route = |other: Ipv4Net| {
            let both_or_none = (other == everything) == (destination == everything);
            both_or_none && overlap(other, destination)
        };
        let mut vswitches = self
            .subnets
            .iter()
            .filter(|subnet| subnet.kind == "vswitch");
        let is_own = [first_address(self.ip_range), PUBLIC_GATEWAY].contains(&gateway);
        let refuse = |is_wrong: bool, field, why: &str| {
            let refusal = is_wrong.then(|| Refusal::invalid(field, why));
            refusal.map_or(Ok(()), Err)
        };
        if destination != everything {
            let why = "must be private by RFC 1918, or 0.0.0.0/0";
            refuse(!is_private(destination), "destination", why)?;
            let in_subnet = subnets.any(|subnet| overlap(subnet, destination));
            refuse(in_subnet, "destination", "overlaps with a subnet")?;
            let has_public = destination.contains(&PUBLIC_GATEWAY);
            refuse(has_public, "destination", "contains 172.31.1.1")?;
        }
        let overlaps = others.any(overlaps_route);
        refuse(overlaps, "destination", "overlaps with another route")?;
        refuse(is_own, "gateway", "is the gateway of the network itself")?;
        let behind_vswitch = vswitches.any(|subnet| subnet.ip_range.contains(&gateway));
        refuse(behind_vswitch, "gateway", "is behind a vSwitch")?;
        let outside = !self.ip_range.contains(&gateway);
        refuse(outside, "gateway", "is not inside the network")?;
        if self.routes.len() >= most {
            return Err(Refusal::limit_exceeded("route limit exceeded"));
        }
        Ok(())
    }
}

fn overlap(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b) || b.contains(&a)
}

/// Whether all of it is private by RFC 1918.
fn is_private(range: Ipv4Net) -> bool {
    range.network().is_private() && range.broadcast().is_private() && range.prefix_len() >= 8
}
