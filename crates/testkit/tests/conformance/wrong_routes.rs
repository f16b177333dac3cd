//! Routes, with one sin.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, NodeFacts, Route, RouteChange, RouteTarget, Routes, Shared};

use cloudkeel_testkit::simulated_cloud::wire::{self, Hop, NewRoute};

use crate::sin::Sin;
use crate::wrong::Wrong;

impl Wrong {
    fn drop_routes_in_the_way(&self, changes: &[RouteChange]) {
        for route in self.cloud.routes() {
            let in_the_way = |change: &RouteChange| match change {
                RouteChange::Create(new) => new.destination == route.destination,
                RouteChange::Delete(_) => false,
            };
            if changes.iter().any(in_the_way) {
                self.cloud.drop_route(route.id).unwrap();
            }
        }
    }
}

impl Wrong {
    /// In the order in which they come.
    async fn one_by_one(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let mut results = Vec::new();
        for change in changes {
            let refused = match change {
                RouteChange::Create(new) => {
                    self.sin == Sin::RefusesIpv6 && new.destination.addr().is_ipv6()
                }
                RouteChange::Delete(old) => {
                    let there = |r: &wire::Route| r.id.to_string() == old.name;
                    self.sin == Sin::MissesWhatIsDeleted && !self.cloud.routes().iter().any(there)
                }
            };
            if refused {
                results.push(Err(CloudError::invalid("change route", "not like this")));
                continue;
            }
            let one = std::slice::from_ref(change);
            results.extend(self.routes_of_right().apply(one).await);
        }
        results
    }

    fn leak_a_route(&self) {
        let machine = self.cloud.machines()[0].id;
        let route = NewRoute {
            destination: "192.168.99.0/24".parse().unwrap(),
            hop: Hop::Machine(machine),
        };
        // The second time it is there already.
        let _ = self.cloud.add_route(route);
    }
}

#[async_trait]
impl Routes for Wrong {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let mut routes = self.routes_of_right().list(nodes).await;
        match (&mut routes, self.sin) {
            (Ok(routes), Sin::HidesForeignRoutes) => {
                routes.retain(|route| !matches!(route.target, RouteTarget::Elsewhere { .. }));
            }
            (Err(_), Sin::ListsNothingOnErrors) => return Ok(Vec::new()),
            _ => {}
        }
        routes
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        if self.sin == Sin::TakesOverRoutes {
            self.drop_routes_in_the_way(changes);
        }
        if self.sin == Sin::MakesRoutesAgain {
            let there = self.routes_of_right().list(&[]).await.unwrap_or_default();
            let away: Vec<_> = there.into_iter().map(RouteChange::Delete).collect();
            self.routes_of_right().apply(&away).await;
        }
        if let Sin::MakesBeforeItDeletes | Sin::MissesWhatIsDeleted | Sin::RefusesIpv6 = self.sin {
            return self.one_by_one(changes).await;
        }
        let mut results = self.routes_of_right().apply(changes).await;
        match self.sin {
            Sin::AnswersOnce => results.truncate(1),
            Sin::LeaksRoutes if self.has_met_a_fault() => self.leak_a_route(),
            Sin::DeletesAllRoutes if matches!(changes, [RouteChange::Delete(_), ..]) => {
                for route in self.cloud.routes() {
                    self.cloud.drop_route(route.id).unwrap();
                }
            }
            _ => {}
        }
        results
    }
}
