//! Routes.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, ErrorKind, IpFamily, NodeFacts, ProviderId, Route, RouteChange, RouteTarget,
    Routes, Shared,
};

use crate::client::Api;
use crate::id::LocalId;
use crate::wire::{self, ErrorCode, Hop, NewRoute, RouteBatch, RouteResult};

/// The routes of the project's network.
pub(crate) struct LocalRoutes {
    api: Api,
}

impl LocalRoutes {
    pub(crate) const fn new(api: Api) -> Self {
        Self { api }
    }

    fn route(&self, route: &wire::Route, nodes: &[Shared<NodeFacts>]) -> Route {
        let leads_to = |node: &&Shared<NodeFacts>| match route.hop {
            Hop::Machine(id) => {
                let id = LocalId::new(&self.api.home().project, id).provider_id();
                node.provider_id.as_ref() == Some(&id)
            }
            Hop::Ip(ip) => node.addresses.iter().any(|a| a.ip() == Some(ip)),
        };
        let elsewhere = || RouteTarget::Elsewhere {
            hop: route.hop.to_string(),
        };
        let node = nodes.iter().find(leads_to);
        Route {
            name: route.id.to_string(),
            destination: route.destination,
            target: node.map_or_else(elsewhere, |node| RouteTarget::node(node)),
            blackhole: route.blackhole,
            follows_addresses: matches!(route.hop, Hop::Ip(_)),
        }
    }

    /// The next hop to a Node: its machine if it is one of ours, else its address.
    fn hop(&self, route: &Route) -> Result<Hop, CloudError> {
        let RouteTarget::Node {
            name,
            provider_id,
            addresses,
            ..
        } = &route.target
        else {
            let message = format!("a route to {} leads to no Node", route.destination);
            return Err(CloudError::invalid("create route", message));
        };
        if let Some(machine) = provider_id.as_ref().and_then(|id| self.own_machine(id)) {
            return Ok(Hop::Machine(machine));
        }
        let family = IpFamily::of(route.destination.addr());
        let same_family = addresses.iter().find(|ip| IpFamily::of(**ip) == family);
        same_family.copied().map(Hop::Ip).ok_or_else(|| {
            let message = format!("node {name} has neither a machine here nor an {family} address");
            CloudError::invalid("create route", message)
        })
    }

    fn own_machine(&self, id: &ProviderId) -> Option<u64> {
        let id = LocalId::read(id).ok()?;
        (id.project == self.api.home().project).then_some(id.machine)
    }

    /// What has to be asked of the cloud for one change, if anything. `leaving` are routes that are
    /// deleted by other changes.
    fn need(
        &self,
        change: &RouteChange,
        present: &[wire::Route],
        leaving: &BTreeSet<&str>,
    ) -> Result<Need, CloudError> {
        let known = present.iter();
        match change {
            RouteChange::Create(route) => {
                let new = NewRoute {
                    destination: route.destination,
                    hop: self.hop(route)?,
                };
                let there = known
                    .filter(|known| !leaving.contains(known.id.to_string().as_str()))
                    .any(|known| {
                        known.destination == new.destination
                            && known.hop == new.hop
                            && !known.blackhole
                    });
                Ok(if there {
                    Need::Nothing
                } else {
                    Need::Create(new)
                })
            }
            RouteChange::Delete(route) => {
                let mut there = known.filter(|known| known.id.to_string() == route.name);
                Ok(there.next().map_or(Need::Nothing, |r| Need::Delete(r.id)))
            }
        }
    }
}

enum Need {
    Nothing,
    Create(NewRoute),
    Delete(u64),
}

#[async_trait]
impl Routes for LocalRoutes {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let routes = self.api.routes().await?;
        Ok(routes.iter().map(|r| self.route(r, nodes)).collect())
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let present = match self.api.routes().await {
            Ok(present) => present,
            Err(error) => return changes.iter().map(|_| Err(error.retold())).collect(),
        };
        let leaving = changes.iter().filter_map(|change| match change {
            RouteChange::Delete(route) => Some(route.name.as_str()),
            RouteChange::Create(_) => None,
        });
        let leaving: BTreeSet<_> = leaving.collect();
        let needs = changes.iter().map(|c| self.need(c, &present, &leaving));
        let needs: Vec<_> = needs.collect();
        let mut batch = RouteBatch::default();
        for need in needs.iter().flatten() {
            match need {
                Need::Nothing => {}
                Need::Create(new) => batch.create.push(*new),
                Need::Delete(id) => batch.delete.push(*id),
            }
        }
        if batch == RouteBatch::default() {
            return needs.into_iter().map(|need| need.map(|_| ())).collect();
        }
        let answer = match self.api.change_routes(&batch).await {
            Ok(answer) => answer,
            Err(error) => return needs.into_iter().map(|n| failed(n, &error)).collect(),
        };
        let mut created = answer.created.into_iter();
        let mut deleted = answer.deleted.into_iter();
        needs
            .into_iter()
            .map(|need| match need? {
                Need::Nothing => Ok(()),
                Need::Create(_) => result("create route", created.next()),
                Need::Delete(_) => deleted_or_gone(result("delete route", deleted.next())),
            })
            .collect()
    }
}

/// The batch failed as a whole; changes that needed nothing of it are fine all the same.
fn failed(need: Result<Need, CloudError>, error: &CloudError) -> Result<(), CloudError> {
    match need? {
        Need::Nothing => Ok(()),
        Need::Create(_) | Need::Delete(_) => Err(error.retold()),
    }
}

fn result(operation: &'static str, result: Option<RouteResult>) -> Result<(), CloudError> {
    match result {
        Some(RouteResult::Done(_)) => Ok(()),
        Some(RouteResult::Error(info)) => {
            let kind = match info.code {
                ErrorCode::NotFound => ErrorKind::NotFound,
                // Somebody was faster: the next look shows whose route it is.
                ErrorCode::AlreadyExists | ErrorCode::Conflict => ErrorKind::Conflict,
                ErrorCode::Locked => ErrorKind::Busy,
                ErrorCode::LimitExceeded => ErrorKind::LimitExceeded,
                ErrorCode::Invalid => ErrorKind::Invalid,
                ErrorCode::Forbidden | ErrorCode::Protected => ErrorKind::Denied,
                ErrorCode::Unauthorized => ErrorKind::Unauthenticated,
                ErrorCode::RateLimited => ErrorKind::Throttled { retry_after: None },
                ErrorCode::Unavailable => ErrorKind::Unavailable,
            };
            Err(CloudError::new(operation, kind, info.message))
        }
        None => Err(CloudError::new(
            operation,
            ErrorKind::Incomplete,
            "the cloud did not say what became of it",
        )),
    }
}

fn deleted_or_gone(result: Result<(), CloudError>) -> Result<(), CloudError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}
