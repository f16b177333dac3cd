//! The report about routes, from the last reconciliation, without a cloud call.

use std::collections::BTreeSet;

use cloudkeel_api::{Route, RouteChange};
use ipnet::IpNet;

use super::{ManagedResources, RouteReport, RouteUse, truncate};
use crate::route::plan::{NetworkPlan, Plan};
use crate::route::reconcile::{Results, conflict, is_implemented_elsewhere, target_name};

/// What the last reconciliation of a cloud's routes left.
#[derive(Debug, Default)]
pub(crate) struct RouteSnapshot {
    pub(crate) listed: Vec<Route>,
    pub(crate) plan: Plan,
    pub(crate) results: Results,
    /// Why nothing could be done since.
    pub(crate) error: Option<String>,
}

impl RouteSnapshot {
    /// The routes; those that should be otherwise come first.
    pub(crate) fn report(&self, cloud: &str) -> ManagedResources {
        let mut routes = self.of_nodes();
        let serving = routes
            .iter()
            .filter(|(role, ..)| *role == RouteUse::Serving);
        let serving: BTreeSet<_> = serving.map(|(_, net, node)| (*net, *node)).collect();
        let changes = self.plan.changes.iter().zip(&self.results);
        let is_deleted = |route: &&Route| {
            let mut changes = changes.clone();
            changes.any(|it| matches!(it, (RouteChange::Delete(gone), Ok(())) if gone == *route))
        };
        for route in self.listed.iter().filter(|route| !is_deleted(route)) {
            let to = target_name(route);
            if serving.contains(&(route.destination.trunc(), to)) {
                continue;
            }
            let role = if self.plan.suspects.contains(route) {
                RouteUse::Suspect
            } else {
                RouteUse::Foreign
            };
            routes.push((role, route.destination, to));
        }
        routes.sort_unstable();
        let more_routes = truncate(&mut routes, ManagedResources::MOST_ROUTES);
        let routes = routes
            .into_iter()
            .map(|(role, destination, to)| RouteReport {
                cloud: cloud.to_owned(),
                destination: destination.to_string(),
                to: to.to_owned(),
                role,
            });
        ManagedResources {
            routes: routes.collect(),
            more_routes,
            ..ManagedResources::default()
        }
    }

    /// The routes that the Nodes have, or should have.
    fn of_nodes(&self) -> Vec<(RouteUse, IpNet, &str)> {
        let mut routes = Vec::new();
        for node in &self.plan.nodes {
            for (network, planned) in &node.networks {
                let created = match planned {
                    NetworkPlan::Create(change) => self.results.get(*change),
                    _ => None,
                };
                let role = match (planned, created) {
                    (NetworkPlan::Keep, _) | (_, Some(Ok(()))) => RouteUse::Serving,
                    (_, Some(Err(error))) if !is_implemented_elsewhere(error) => {
                        let why = error.to_string();
                        RouteUse::Missing { why }
                    }
                    (NetworkPlan::Conflict { with }, _) => {
                        let why = conflict(with);
                        RouteUse::Missing { why }
                    }
                    _ => continue,
                };
                routes.push((role, *network, node.name.as_str()));
            }
        }
        routes
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{CloudError, ErrorKind, RouteTarget};

    use super::*;
    use crate::route::plan::NodePlan;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn to_node(network: &str, name: &str) -> Route {
        Route {
            name: format!("r-{network}"),
            destination: net(network),
            target: RouteTarget::Node {
                name: name.to_owned(),
                uid: String::new(),
                provider_id: None,
                addresses: Vec::new(),
            },
            blackhole: false,
            follows_addresses: false,
        }
    }

    fn elsewhere(network: &str, hop: &str) -> Route {
        Route {
            target: RouteTarget::Elsewhere {
                hop: hop.to_owned(),
            },
            ..to_node(network, "")
        }
    }

    fn reported(status: &ManagedResources) -> Vec<(&str, &str, RouteUse)> {
        let routes = status.routes.iter();
        routes
            .map(|route| (&*route.destination, &*route.to, route.role.clone()))
            .collect()
    }

    #[test]
    fn every_route_is_reported_as_it_was_left_and_the_wrong_ones_first() {
        let kept = to_node("10.0.1.0/24", "a");
        let replaced = to_node("10.0.2.0/24", "a");
        let suspect = elsewhere("10.0.3.0/24", "10.9.9.9");
        let foreign = elsewhere("192.168.0.0/24", "gateway");
        let made = to_node("10.0.2.0/24", "b");
        let failed = to_node("10.0.4.0/24", "c");
        let node = |name: &str, network: &str, planned| NodePlan {
            name: name.to_owned(),
            networks: vec![(net(network), planned)],
            is_target: true,
        };
        let plan = Plan {
            changes: vec![
                RouteChange::Delete(replaced.clone()),
                RouteChange::Create(made),
                RouteChange::Create(failed),
            ],
            suspects: vec![suspect.clone()],
            has_unconfirmed: true,
            nodes: vec![
                node("a", "10.0.1.0/24", NetworkPlan::Keep),
                node("b", "10.0.2.0/24", NetworkPlan::Create(1)),
                node("c", "10.0.4.0/24", NetworkPlan::Create(2)),
                node(
                    "d",
                    "10.0.1.0/24",
                    NetworkPlan::Conflict { with: "a".into() },
                ),
            ],
        };
        let full = CloudError::new("create", ErrorKind::LimitExceeded, "the table is full");
        let why = full.to_string();
        let snapshot = RouteSnapshot {
            listed: vec![kept, replaced, suspect, foreign],
            plan,
            results: vec![Ok(()), Ok(()), Err(full)],
            error: None,
        };
        let status = snapshot.report("fsn");
        let conflict =
            "node a has the same Pod CIDR: delete and recreate one of the two".to_owned();
        let expected = [
            ("10.0.4.0/24", "c", RouteUse::Missing { why }),
            ("10.0.1.0/24", "d", RouteUse::Missing { why: conflict }),
            ("10.0.3.0/24", "10.9.9.9", RouteUse::Suspect),
            ("10.0.1.0/24", "a", RouteUse::Serving),
            ("10.0.2.0/24", "b", RouteUse::Serving),
            ("192.168.0.0/24", "gateway", RouteUse::Foreign),
        ];
        assert_eq!(reported(&status), expected);
        assert!(status.routes.iter().all(|route| route.cloud == "fsn"));
    }

    #[test]
    fn of_many_routes_the_rest_is_counted() {
        let network = |number: u16| format!("10.{}.{}.0/24", number / 256, number % 256);
        let many: Vec<_> = (0..700)
            .map(|number| elsewhere(&network(number), "gateway"))
            .collect();
        let snapshot = RouteSnapshot {
            listed: many,
            ..RouteSnapshot::default()
        };
        let status = snapshot.report("fsn");
        assert_eq!(status.routes.len(), ManagedResources::MOST_ROUTES);
        assert_eq!(status.more_routes, 200);
    }
}
