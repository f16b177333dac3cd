//! The routes of a project's network.

use cloudkeel_provider_local::wire::{
    Hop, MachineState, NewRoute, Route, RouteBatch, RouteBatchAnswer, RouteResult,
};
use tokio::time::Instant;

use super::{Project, State};
use crate::simulated_cloud::refusal::Refusal;

impl State {
    pub(in crate::simulated_cloud) fn create_route(
        &mut self,
        project: &str,
        new: NewRoute,
        at: Instant,
    ) -> Result<Route, Refusal> {
        let limit = self.settings.limits.routes;
        let known = self.project(project)?;
        if let Some(id) = known.destinations.get(&new.destination) {
            return Err(Refusal::already_exists(format!(
                "route {id} leads to {} already",
                new.destination
            )));
        }
        if known.routes.count() >= limit {
            let message = format!("the project has {limit} routes already");
            return Err(Refusal::limit_exceeded(message));
        }
        if new.destination.trunc() != new.destination {
            let message = format!("{}: expected a network address", new.destination);
            return Err(Refusal::invalid("destination", message));
        }
        if !known.has_hop(new.hop) {
            return Err(Refusal::not_found(new.hop));
        }
        let id = self.next_id();
        let route = Route {
            id,
            destination: new.destination,
            hop: new.hop,
            blackhole: false,
        };
        let project = self.project_mut(project)?;
        project.routes.put(id, route.clone(), at);
        project.destinations.insert(route.destination, id);
        Ok(route)
    }

    pub(in crate::simulated_cloud) fn delete_route(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
    ) -> Result<(), Refusal> {
        let project = self.project_mut(project)?;
        let Some(route) = project.routes.get(&id) else {
            return Err(Refusal::not_found(format_args!("route {id}")));
        };
        project.destinations.remove(&route.destination);
        project.routes.remove(&id, at);
        Ok(())
    }

    pub(in crate::simulated_cloud) fn change_routes(
        &mut self,
        project: &str,
        batch: &RouteBatch,
        at: Instant,
    ) -> RouteBatchAnswer {
        let mut deleted = Vec::with_capacity(batch.delete.len());
        for id in &batch.delete {
            let done = self.delete_route(project, *id, at);
            deleted.push(result(done.map(|()| *id)));
        }
        let mut created = Vec::with_capacity(batch.create.len());
        for new in &batch.create {
            let done = self.create_route(project, *new, at);
            created.push(result(done.map(|route| route.id)));
        }
        RouteBatchAnswer { deleted, created }
    }
}

impl Project {
    fn has_hop(&self, hop: Hop) -> bool {
        let alive = self
            .machines
            .iter()
            .filter(|(_, machine)| machine.state != MachineState::Deleted);
        match hop {
            Hop::Machine(id) => self
                .machines
                .get(&id)
                .is_some_and(|machine| machine.state != MachineState::Deleted),
            Hop::Ip(ip) => alive
                .into_iter()
                .any(|(_, machine)| machine.has_address(ip)),
        }
    }
}

fn result(done: Result<u64, Refusal>) -> RouteResult {
    match done {
        Ok(id) => RouteResult::Done(id),
        Err(refusal) => RouteResult::Error(refusal.info),
    }
}
