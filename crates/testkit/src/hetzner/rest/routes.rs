//! Routes of networks.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::Deserialize;

use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{Network, Project, Route, Scene, edit, first_address};
use super::body::{address, range};
use super::networks::{is_private, overlap};

#[derive(Deserialize)]
pub(super) struct RouteWish {
    destination: String,
    gateway: String,
}

impl RouteWish {
    fn read(&self) -> Result<Route, Refusal> {
        Ok(Route {
            destination: range("destination", &self.destination)?,
            gateway: address("gateway", &self.gateway)?,
        })
    }
}

/// The gateway of every server's public interface.
const PUBLIC_GATEWAY: Ipv4Addr = Ipv4Addr::new(172, 31, 1, 1);

impl Scene<'_> {
    pub(super) fn add_route(
        &mut self,
        network: &Network,
        wish: &RouteWish,
    ) -> Result<Action, Refusal> {
        let id = network.id;
        let route = network.new_route(wish, self.settings.limits.routes)?;
        let work = self.work("add_route", vec![("network", id)]);
        let add = move |project: &mut Project, now| {
            edit(&mut project.networks, id, now, |network| {
                network.routes.push(route);
            });
        };
        Ok(self.project.begin(work, add, None))
    }

    pub(super) fn delete_route(
        &mut self,
        network: &Network,
        wish: &RouteWish,
    ) -> Result<Action, Refusal> {
        let (id, route) = (network.id, wish.read()?);
        if !network.routes.contains(&route) {
            let what = format!("{} via {}", route.destination, route.gateway);
            return Err(Refusal::not_found("route", what));
        }
        let work = self.work("delete_route", vec![("network", id)]);
        let delete = move |project: &mut Project, now| {
            edit(&mut project.networks, id, now, |network| {
                network.routes.retain(|have| *have != route);
            });
        };
        Ok(self.project.begin(work, delete, None))
    }
}

impl Network {
    /// A route that is good for this network.
    pub(super) fn new_route(&self, wish: &RouteWish, most: usize) -> Result<Route, Refusal> {
        let route = wish.read()?;
        let Route {
            destination,
            gateway,
        } = route;
        let bad = |field, why: &str| Err(Refusal::invalid(field, why));
        if destination != Ipv4Net::default() && !is_private(destination) {
            return bad("destination", "must be private by RFC 1918, or 0.0.0.0/0");
        }
        if destination != Ipv4Net::default() {
            if self.overlaps_subnet(destination) {
                return bad("destination", "overlaps with a subnet");
            }
            if destination.contains(&PUBLIC_GATEWAY) {
                return bad("destination", "contains 172.31.1.1");
            }
            let mut others = self.routes.iter().map(|route| route.destination);
            if others.any(|other| other != Ipv4Net::default() && overlap(other, destination)) {
                return bad("destination", "overlaps with another route");
            }
        } else if self
            .routes
            .iter()
            .any(|route| route.destination == destination)
        {
            return bad("destination", "overlaps with another route");
        }
        if gateway == first_address(self.ip_range) || gateway == PUBLIC_GATEWAY {
            return bad("gateway", "is the gateway of the network itself");
        }
        let mut vswitches = self
            .subnets
            .iter()
            .filter(|subnet| subnet.kind == "vswitch");
        if vswitches.any(|subnet| subnet.ip_range.contains(&gateway)) {
            return bad("gateway", "is behind a vSwitch");
        }
        if !self.ip_range.contains(&gateway) {
            return bad("gateway", "is not inside the network");
        }
        if self.routes.len() >= most {
            return Err(Refusal::new(
                "resource_limit_exceeded",
                "route limit exceeded",
            ));
        }
        Ok(route)
    }
}
