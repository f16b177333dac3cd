//! Routes, with one mutation.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, NodeFacts, Route, RouteChange, RouteTarget, Routes, Shared};

use cloudkeel_testkit::simulated_cloud::wire::{self, Hop, NewRoute};

use crate::faulty::Faulty;
use crate::faulty_instances::within_a_second;
use crate::mutant::Mutant;

impl Faulty {
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

impl Faulty {
    /// In the order in which they come.
    async fn one_by_one(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let mut results = Vec::new();
        for change in changes {
            let refused = match change {
                RouteChange::Create(new) => {
                    self.mutant == Mutant::RefusesIpv6 && new.destination.addr().is_ipv6()
                }
                RouteChange::Delete(old) => {
                    let there = |r: &wire::Route| r.id.to_string() == old.name;
                    self.mutant == Mutant::MissesWhatIsDeleted
                        && !self.cloud.routes().iter().any(there)
                }
            };
            if refused {
                results.push(Err(CloudError::invalid("change route", "not like this")));
                continue;
            }
            let one = std::slice::from_ref(change);
            results.extend(self.routes_of_correct().apply(one).await);
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

/// Leaves a route behind if it is dropped while it is armed.
struct RouteLeak<'a>(&'a Faulty, bool);

impl Drop for RouteLeak<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.leak_a_route();
        }
    }
}

#[async_trait]
impl Routes for Faulty {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let routes = self.routes_of_correct().list(nodes);
        let mut routes = self
            .exclusively(Mutant::StaysBusyWhenRouteListIsDropped, routes)
            .await?;
        match (&mut routes, self.mutant) {
            (Ok(routes), Mutant::HidesRoutesOfOthers) => {
                routes.retain(|route| !matches!(route.target, RouteTarget::Elsewhere { .. }));
            }
            (Err(_), Mutant::ListsNothingOnErrors) => return Ok(Vec::new()),
            _ => {}
        }
        routes
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        if self.mutant == Mutant::TakesOverRoutes {
            self.drop_routes_in_the_way(changes);
        }
        if self.mutant == Mutant::RecreatesRoutes {
            let there = self.routes_of_correct().list(&[]).await.unwrap_or_default();
            let away: Vec<_> = there.into_iter().map(RouteChange::Delete).collect();
            self.routes_of_correct().apply(&away).await;
        }
        if let Mutant::CreatesBeforeItDeletes | Mutant::MissesWhatIsDeleted | Mutant::RefusesIpv6 =
            self.mutant
        {
            return self.one_by_one(changes).await;
        }
        if self.mutant == Mutant::GivesUpAfterASecond {
            let done = within_a_second(self.routes_of_correct().apply(changes)).await;
            return done.unwrap_or_else(|error| {
                let failed = || Err(error.clone_without_source());
                changes.iter().map(|_| failed()).collect()
            });
        }
        let mut dropped = RouteLeak(self, self.mutant == Mutant::LeaksRoutesWhenDropped);
        let mut results = self.routes_of_correct().apply(changes).await;
        dropped.1 = false;
        match self.mutant {
            Mutant::LeaksRoutesWhenStale if self.is_stale() => self.leak_a_route(),
            Mutant::AnswersOnce => results.truncate(1),
            Mutant::LeaksRoutes if self.has_met_a_fault() => self.leak_a_route(),
            Mutant::DeletesAllRoutes if matches!(changes, [RouteChange::Delete(_), ..]) => {
                for route in self.cloud.routes() {
                    self.cloud.drop_route(route.id).unwrap();
                }
            }
            _ => {}
        }
        results
    }
}
