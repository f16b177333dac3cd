//! What a look at a cloud's routes has shown, for people who ask later.

use std::collections::BTreeSet;

use cloudkeel_api::{CloudError, Route, RouteChange, RouteTarget};
use ipnet::IpNet;

use super::pass::is_elsewhere;
use super::plan::{Plan, Wish};
use crate::report::{Holdings, RouteReport, RouteUse};

/// What the last look showed.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The routes, as they were left.
    pub(super) holdings: Holdings,
    /// Why nothing could be done about them since.
    pub(super) complaint: Option<String>,
}

impl Seen {
    /// The routes of a cloud after what was planned was done, or not. Those that should be otherwise
    /// come first.
    pub(super) fn of(
        cloud: &str,
        listed: &[Route],
        plan: &Plan,
        results: &[Result<(), CloudError>],
    ) -> Self {
        let mut routes: Vec<(RouteUse, IpNet, String)> = Vec::new();
        let mut gone = BTreeSet::new();
        for (change, result) in plan.changes.iter().zip(results) {
            match (change, result) {
                (RouteChange::Delete(route), Ok(())) => {
                    gone.insert(key_of(route));
                }
                (RouteChange::Create(route), Ok(())) => {
                    routes.push((RouteUse::Serving, route.destination, hop_of(route)));
                }
                (RouteChange::Create(route), Err(error)) if !is_elsewhere(error) => {
                    let why = error.to_string();
                    routes.push((RouteUse::Missing { why }, route.destination, hop_of(route)));
                }
                (_, Err(_)) => {}
            }
        }
        let serving = serving(plan);
        let suspects: BTreeSet<_> = plan.suspects.iter().map(key_of).collect();
        for route in listed.iter().filter(|route| !gone.contains(&key_of(route))) {
            let node = route.target.node_name().unwrap_or_default();
            let role = if suspects.contains(&key_of(route)) {
                RouteUse::Suspect
            } else if serving.contains(&(route.destination.trunc(), node)) {
                RouteUse::Serving
            } else {
                RouteUse::Foreign
            };
            routes.push((role, route.destination, hop_of(route)));
        }
        routes.extend(contested(plan));
        Self {
            holdings: holdings(cloud, routes),
            complaint: None,
        }
    }
}

fn holdings(cloud: &str, mut routes: Vec<(RouteUse, IpNet, String)>) -> Holdings {
    routes.sort_unstable();
    let more_routes = routes.len().saturating_sub(Holdings::MOST_ROUTES);
    routes.truncate(Holdings::MOST_ROUTES);
    let told = routes
        .into_iter()
        .map(|(role, destination, to)| RouteReport {
            cloud: cloud.to_owned(),
            destination: destination.to_string(),
            to,
            role,
        });
    Holdings {
        routes: told.collect(),
        more_routes,
        ..Holdings::default()
    }
}

fn key_of(route: &Route) -> (String, IpNet, String) {
    (route.name.clone(), route.destination, hop_of(route))
}

fn hop_of(route: &Route) -> String {
    match &route.target {
        RouteTarget::Node { name, .. } => name.clone(),
        RouteTarget::Elsewhere { hop } => hop.clone(),
    }
}

/// The networks whose routes are as they should be, with their Nodes.
fn serving(plan: &Plan) -> BTreeSet<(IpNet, &str)> {
    let nodes = plan.nodes.iter();
    nodes
        .flat_map(|node| {
            let kept = node.networks.iter().filter(|(_, wish)| *wish == Wish::Kept);
            kept.map(|(network, _)| (*network, node.name.as_str()))
        })
        .collect()
}

/// The networks that belong to two Nodes, so that one of them has no route.
fn contested(plan: &Plan) -> Vec<(RouteUse, IpNet, String)> {
    let nodes = plan.nodes.iter();
    nodes
        .flat_map(|node| {
            node.networks
                .iter()
                .filter_map(|(network, wish)| match wish {
                    Wish::Contested { with } => {
                        let why = format!("it is the Pod network of node {with} too");
                        Some((RouteUse::Missing { why }, *network, node.name.clone()))
                    }
                    Wish::Kept | Wish::Made(_) | Wish::Waits => None,
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::ErrorKind;

    use super::super::plan::NodePlan;
    use super::*;

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

    fn told(seen: &Seen) -> Vec<(&str, &str, RouteUse)> {
        let routes = seen.holdings.routes.iter();
        routes
            .map(|route| (&*route.destination, &*route.to, route.role.clone()))
            .collect()
    }

    #[test]
    fn every_route_is_told_as_it_was_left_and_the_wrong_ones_first() {
        let kept = to_node("10.0.1.0/24", "a");
        let replaced = to_node("10.0.2.0/24", "a");
        let suspect = elsewhere("10.0.3.0/24", "10.9.9.9");
        let foreign = elsewhere("192.168.0.0/24", "gateway");
        let made = to_node("10.0.2.0/24", "b");
        let failed = to_node("10.0.4.0/24", "c");
        let node = |name: &str, network: &str, wish| NodePlan {
            name: name.to_owned(),
            networks: vec![(net(network), wish)],
            is_target: true,
        };
        let plan = Plan {
            changes: vec![
                RouteChange::Delete(replaced.clone()),
                RouteChange::Create(made),
                RouteChange::Create(failed),
            ],
            suspects: vec![suspect.clone()],
            needs_second_look: true,
            nodes: vec![
                node("a", "10.0.1.0/24", Wish::Kept),
                node("b", "10.0.2.0/24", Wish::Made(1)),
                node("c", "10.0.4.0/24", Wish::Made(2)),
                node("d", "10.0.1.0/24", Wish::Contested { with: "a".into() }),
            ],
        };
        let full = CloudError::new("create", ErrorKind::LimitExceeded, "the table is full");
        let why = full.to_string();
        let results = [Ok(()), Ok(()), Err(full)];
        let seen = Seen::of("fsn", &[kept, replaced, suspect, foreign], &plan, &results);
        let contested = "it is the Pod network of node a too".to_owned();
        let expected = [
            ("10.0.4.0/24", "c", RouteUse::Missing { why }),
            ("10.0.1.0/24", "d", RouteUse::Missing { why: contested }),
            ("10.0.3.0/24", "10.9.9.9", RouteUse::Suspect),
            ("10.0.1.0/24", "a", RouteUse::Serving),
            ("10.0.2.0/24", "b", RouteUse::Serving),
            ("192.168.0.0/24", "gateway", RouteUse::Foreign),
        ];
        assert_eq!(told(&seen), expected);
        assert!(
            seen.holdings
                .routes
                .iter()
                .all(|route| route.cloud == "fsn")
        );
    }

    #[test]
    fn of_many_routes_the_rest_is_counted() {
        let network = |number: u16| format!("10.{}.{}.0/24", number / 256, number % 256);
        let many: Vec<_> = (0..700)
            .map(|number| elsewhere(&network(number), "gateway"))
            .collect();
        let seen = Seen::of("fsn", &many, &Plan::default(), &[]);
        assert_eq!(seen.holdings.routes.len(), Holdings::MOST_ROUTES);
        assert_eq!(seen.holdings.more_routes, 200);
    }
}
