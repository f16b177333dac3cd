//! What each operation of the REST API does. Plain functions over the world: no I/O, no waiting.

mod list;
mod query;

use std::time::Duration;

use cloudkeel_emulation::history::View;
use cloudkeel_provider_local::wire::{
    ListenersChange, MachineState, NewBalancer, NewMachine, NewRoute, RouteBatch, Scope,
};
use http::StatusCode;
use http::header::{ETAG, RETRY_AFTER};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use self::list::paged;
use self::query::ListQuery;
use super::operation::Operation;
use super::refusal::Refusal;
use super::world::{Project, Subject, World, find_balancer, find_machine};

/// One call, after it was let in.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    pub(super) project: &'a str,
    /// The ID in the path.
    pub(super) resource: Option<&'a str>,
    pub(super) query: &'a str,
    pub(super) if_match: Option<&'a str>,
    pub(super) body: &'a [u8],
    pub(super) now: Instant,
    /// Which moment a read shows.
    pub(super) view: View,
}

/// What the cloud says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) etag: Option<String>,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    fn of<T: Serialize>(status: StatusCode, value: &T) -> Result<Self, Refusal> {
        let body = serde_json::to_vec(value).map_err(|error| {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            let code = cloudkeel_provider_local::wire::ErrorCode::Unavailable;
            Refusal::new(status, code, error.to_string())
        })?;
        Ok(Self {
            status,
            etag: None,
            retry_after: None,
            body,
        })
    }

    pub(super) fn refused(refusal: &Refusal) -> Self {
        Self {
            status: refusal.status,
            etag: None,
            retry_after: refusal.retry_after,
            // A struct of texts always becomes JSON.
            body: serde_json::to_vec(&refusal.body()).unwrap_or_default(),
        }
    }

    pub(super) fn ok<T: Serialize>(value: &T) -> Result<Self, Refusal> {
        Self::of(StatusCode::OK, value)
    }

    pub(super) const fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            etag: None,
            retry_after: None,
            body: Vec::new(),
        }
    }

    /// The answer, or the refusal as one.
    pub(super) fn either(result: Result<Self, Refusal>) -> Self {
        result.unwrap_or_else(|refusal| Self::refused(&refusal))
    }

    fn with_etag(mut self, etag: String) -> Self {
        self.etag = Some(etag);
        self
    }
}

impl From<Answer> for cloudkeel_emulation::Answer {
    fn from(answer: Answer) -> Self {
        let mut outgoing = Self::of(answer.status, answer.body);
        if let Some(etag) = answer.etag {
            outgoing = outgoing.with_header(ETAG, &etag);
        }
        if let Some(wait) = answer.retry_after {
            outgoing = outgoing.with_header(RETRY_AFTER, &whole_seconds(wait));
        }
        outgoing
    }
}

/// Rounded up, so that nobody comes too early.
pub(super) fn whole_seconds(duration: Duration) -> String {
    let rounded_up = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    rounded_up.to_string()
}

/// Carries out a call.
pub(super) fn perform(world: &mut World, call: &Call<'_>) -> Result<Answer, Refusal> {
    match call.operation {
        Operation::ReadScope
        | Operation::ListMachines
        | Operation::GetMachine
        | Operation::ListBalancers
        | Operation::GetBalancer
        | Operation::ListRoutes
        | Operation::GetVolume
        | Operation::ListClusters
        | Operation::GetAction => read(world, call),
        Operation::CreateMachine
        | Operation::DeleteMachine
        | Operation::PowerOn
        | Operation::PowerOff => change_machine(world, call),
        Operation::CreateBalancer
        | Operation::ChangeBalancer
        | Operation::DeleteBalancer
        | Operation::SetListeners
        | Operation::ChangeTargets => change_balancer(world, call),
        Operation::CreateRoute | Operation::DeleteRoute | Operation::BatchRoutes => {
            change_routes(world, call)
        }
    }
}

fn read(world: &World, call: &Call<'_>) -> Result<Answer, Refusal> {
    let project = world.project(call.project)?;
    match call.operation {
        Operation::GetMachine => {
            let id = call.id("machine")?;
            let shown = project.machines.seen(id, call.view);
            let shown = shown.filter(|machine| world.shows(machine));
            let machine = find_machine(shown, id)?;
            Answer::ok(&*machine)
        }
        Operation::GetBalancer => {
            let id = call.id("balancer")?;
            let balancer = find_balancer(project.balancers.seen(id, call.view), id)?;
            Ok(Answer::ok(&*balancer)?.with_etag(balancer.etag()))
        }
        Operation::GetAction => {
            let id = call.id("action")?;
            let action = project.actions.get(&id);
            Answer::ok(action.ok_or_else(|| Refusal::not_found(format_args!("action {id}")))?)
        }
        Operation::GetVolume => {
            let id = call.resource.unwrap_or_default();
            let volume = project.volumes.get(id);
            Answer::ok(volume.ok_or_else(|| Refusal::not_found(format_args!("volume {id:?}")))?)
        }
        Operation::ReadScope => Answer::ok(&Scope {
            project: call.project.to_owned(),
            region: project.region.clone(),
            features: world.settings.features,
        }),
        _ => list(world, project, call),
    }
}

fn list(world: &World, project: &Project, call: &Call<'_>) -> Result<Answer, Refusal> {
    let query = ListQuery::parse(call.query, world.settings.page_size)?;
    match call.operation {
        Operation::ListMachines if !query.ids.is_empty() => {
            let found = query
                .ids
                .iter()
                .filter_map(|id| project.machines.seen(*id, call.view))
                .filter(|machine| world.shows(machine));
            paged(found.map(AsRef::as_ref), &query, call)
        }
        Operation::ListMachines => {
            let machines = project.machines.all_seen(call.view);
            let found =
                machines.filter(|(_, machine)| world.shows(machine) && query.fits_machine(machine));
            paged(found.map(|(_, machine)| &**machine), &query, call)
        }
        Operation::ListBalancers => {
            let balancers = project.balancers.all_seen(call.view);
            let found = balancers.filter(|(_, balancer)| query.fits_balancer(balancer));
            paged(found.map(|(_, balancer)| &**balancer), &query, call)
        }
        Operation::ListRoutes => {
            let routes = project.routes.all_seen(call.view);
            paged(routes.map(|(_, route)| &**route), &query, call)
        }
        _ => paged(project.clusters.values(), &query, call),
    }
}

fn change_machine(world: &mut World, call: &Call<'_>) -> Result<Answer, Refusal> {
    match call.operation {
        Operation::CreateMachine => {
            let new: NewMachine = call.json()?;
            let machine = world.add_machine(call.project, new, MachineState::Starting, call.now)?;
            world.machine_will_reach(call.project, machine.id, MachineState::Running, call.now);
            let machines = &world.project(call.project)?.machines;
            let machine = find_machine(machines.get(machine.id), machine.id)?;
            Answer::of(StatusCode::CREATED, &*machine)
        }
        Operation::DeleteMachine => {
            world.destroy_machine(call.project, call.id("machine")?, call.now)?;
            Ok(Answer::nothing())
        }
        operation => {
            let on = operation == Operation::PowerOn;
            let machine = world.power(call.project, call.id("machine")?, on, call.now)?;
            Answer::ok(&*machine)
        }
    }
}

fn change_balancer(world: &mut World, call: &Call<'_>) -> Result<Answer, Refusal> {
    if call.operation == Operation::CreateBalancer {
        let new: NewBalancer = call.json()?;
        let answer = world.create_balancer(call.project, new, call.now)?;
        let etag = answer.balancer.etag();
        return Ok(Answer::of(StatusCode::CREATED, &answer)?.with_etag(etag));
    }
    let subject = Subject {
        project: call.project,
        id: call.id("balancer")?,
        if_match: call.if_match,
    };
    let answer = match call.operation {
        Operation::ChangeBalancer => world.patch_balancer(subject, call.json()?, call.now)?,
        Operation::SetListeners => {
            let change: ListenersChange = call.json()?;
            world.set_listeners(subject, change.listeners, call.now)?
        }
        Operation::ChangeTargets => world.change_targets(subject, &call.json()?, call.now)?,
        _ => world.delete_balancer(subject, call.now)?,
    };
    let etag = answer.balancer.etag();
    Ok(Answer::ok(&answer)?.with_etag(etag))
}

fn change_routes(world: &mut World, call: &Call<'_>) -> Result<Answer, Refusal> {
    match call.operation {
        Operation::CreateRoute => {
            let new: NewRoute = call.json()?;
            let route = world.create_route(call.project, new, call.now)?;
            Answer::of(StatusCode::CREATED, &route)
        }
        Operation::DeleteRoute => {
            world.delete_route(call.project, call.id("route")?, call.now)?;
            Ok(Answer::nothing())
        }
        _ => {
            let batch: RouteBatch = call.json()?;
            Answer::ok(&world.change_routes(call.project, &batch, call.now))
        }
    }
}

impl Call<'_> {
    /// The ID in the path.
    fn id(&self, what: &str) -> Result<u64, Refusal> {
        let text = self.resource.unwrap_or_default();
        text.parse().map_err(|_| {
            Refusal::unreadable(format!(
                "{text:?} is not the ID of a {what}: expected a number"
            ))
        })
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(self.body)
            .map_err(|error| Refusal::unreadable(format!("the body does not fit: {error}")))
    }
}
