//! What each operation of the REST API does. Plain functions over the state: no I/O, no waiting.

mod list;

use std::time::Duration;

use cloudkeel_emulation::history::View;
use cloudkeel_emulation::{Answer, Call};
use cloudkeel_provider_local::wire::{
    BalancerAnswer, ListenersChange, MachineState, NewBalancer, NewMachine, NewRoute, RouteBatch,
    Scope,
};
use http::StatusCode;
use http::header::{ETAG, IF_MATCH, RETRY_AFTER};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use self::list::{BALANCER, MACHINE, paged, read_query};
use super::operation::Operation;
use super::refusal::Refusal;
use super::state::{Project, State, Subject, find_balancer, find_machine};

/// One call, after it was admitted.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) call: &'a Call<Operation>,
    pub(super) project: &'a str,
    pub(super) now: Instant,
    /// Which moment a read shows.
    pub(super) view: View,
}

/// A refusal as the API writes it.
pub(super) fn refused(refusal: &Refusal) -> Answer {
    let answer = Answer::json(refusal.status, &refusal.body());
    match refusal.retry_after {
        Some(wait) => answer.with_header(RETRY_AFTER, &whole_seconds(wait)),
        None => answer,
    }
}

pub(super) fn ok(value: &impl Serialize) -> Answer {
    Answer::json(StatusCode::OK, value)
}

fn with_etag(status: StatusCode, answer: &BalancerAnswer) -> Answer {
    Answer::json(status, answer).with_header(ETAG, &answer.balancer.etag())
}

/// Rounded up, so that no client comes too early.
pub(super) fn whole_seconds(duration: Duration) -> String {
    let rounded_up = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    rounded_up.to_string()
}

/// Carries out a call.
pub(super) fn perform(state: &mut State, request: &Request<'_>) -> Result<Answer, Refusal> {
    match request.call.operation {
        Operation::CreateMachine
        | Operation::DeleteMachine
        | Operation::PowerOn
        | Operation::PowerOff => change_machine(state, request),
        Operation::CreateBalancer
        | Operation::ChangeBalancer
        | Operation::DeleteBalancer
        | Operation::SetListeners
        | Operation::ChangeTargets => change_balancer(state, request),
        Operation::CreateRoute | Operation::DeleteRoute | Operation::BatchRoutes => {
            change_routes(state, request)
        }
        _ => read(state, request),
    }
}

fn read(state: &State, request: &Request<'_>) -> Result<Answer, Refusal> {
    let project = state.project(request.project)?;
    match request.call.operation {
        Operation::GetMachine => {
            let id = request.id("machine")?;
            let shown = project.machines.seen(&id, request.view);
            let shown = shown.filter(|machine| state.shows(machine));
            Ok(ok(&*find_machine(shown, id)?))
        }
        Operation::GetBalancer => {
            let id = request.id("balancer")?;
            let balancer = find_balancer(project.balancers.seen(&id, request.view), id)?;
            Ok(ok(&*balancer).with_header(ETAG, &balancer.etag()))
        }
        Operation::GetAction => {
            let id = request.id("action")?;
            let action = project.action(id);
            let action = action.ok_or_else(|| Refusal::not_found(format_args!("action {id}")))?;
            Ok(ok(&action))
        }
        Operation::GetVolume => {
            let id = request.call.resource.as_deref().unwrap_or_default();
            let volume = project.volumes.get(id);
            let volume = volume.ok_or_else(|| Refusal::not_found(format_args!("volume {id:?}")))?;
            Ok(ok(volume))
        }
        Operation::ReadScope => Ok(ok(&Scope {
            project: request.project.to_owned(),
            region: project.region.clone(),
            features: state.settings.features,
            limits: state.settings.limits.of_balancers(),
        })),
        _ => list(state, project, request),
    }
}

fn list(state: &State, project: &Project, request: &Request<'_>) -> Result<Answer, Refusal> {
    let query = read_query(&request.call.query, state.settings.page_size)?;
    Ok(match request.call.operation {
        Operation::ListMachines => {
            let machines = &project.machines;
            let mut ids: Vec<u64> = query
                .wanted("id")
                .iter()
                .flat_map(|id| id.parse())
                .collect();
            ids.sort_unstable();
            ids.dedup();
            if ids.is_empty() {
                let all = machines.values(request.view);
                let all = all.filter(|machine| state.shows(machine));
                return Ok(paged(request, &query, all, MACHINE));
            }
            // A batch is looked up, however many machines there are.
            let batch = ids.iter().filter_map(|id| machines.seen(id, request.view));
            let batch = batch
                .map(AsRef::as_ref)
                .filter(|machine| state.shows(machine));
            paged(request, &query, batch, MACHINE)
        }
        Operation::ListBalancers => {
            let balancers = project.balancers.values(request.view);
            paged(request, &query, balancers, BALANCER)
        }
        Operation::ListRoutes => {
            let routes = project.routes.values(request.view);
            paged(request, &query, routes, (|_, _| None, |_| None))
        }
        _ => {
            let clusters = project.clusters.values();
            paged(request, &query, clusters, (|_, _| None, |_| None))
        }
    })
}

fn change_machine(state: &mut State, request: &Request<'_>) -> Result<Answer, Refusal> {
    let (project, now) = (request.project, request.now);
    match request.call.operation {
        Operation::CreateMachine => {
            let new: NewMachine = request.json()?;
            let machine = state.add_machine(project, new, MachineState::Starting, now)?;
            state.machine_will_reach(project, machine.id, MachineState::Running, now)?;
            let machines = &state.project(project)?.machines;
            let machine = find_machine(machines.get(&machine.id), machine.id)?;
            Ok(Answer::json(StatusCode::CREATED, &*machine))
        }
        Operation::DeleteMachine => {
            state.destroy_machine(project, request.id("machine")?, now)?;
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        }
        operation => {
            let on = operation == Operation::PowerOn;
            let machine = state.power(project, request.id("machine")?, on, now)?;
            Ok(ok(&*machine))
        }
    }
}

fn change_balancer(state: &mut State, request: &Request<'_>) -> Result<Answer, Refusal> {
    let now = request.now;
    if request.call.operation == Operation::CreateBalancer {
        let new: NewBalancer = request.json()?;
        let answer = state.create_balancer(request.project, new, now)?;
        return Ok(with_etag(StatusCode::CREATED, &answer));
    }
    let if_match = request.call.headers.get(IF_MATCH);
    let subject = Subject {
        project: request.project,
        id: request.id("balancer")?,
        if_match: if_match.and_then(|value| value.to_str().ok()),
    };
    let answer = match request.call.operation {
        Operation::ChangeBalancer => state.patch_balancer(subject, request.json()?, now)?,
        Operation::SetListeners => {
            let change: ListenersChange = request.json()?;
            state.set_listeners(subject, change.listeners, now)?
        }
        Operation::ChangeTargets => state.change_targets(subject, &request.json()?, now)?,
        _ => state.delete_balancer(subject, now)?,
    };
    Ok(with_etag(StatusCode::OK, &answer))
}

fn change_routes(state: &mut State, request: &Request<'_>) -> Result<Answer, Refusal> {
    let (project, now) = (request.project, request.now);
    match request.call.operation {
        Operation::CreateRoute => {
            let new: NewRoute = request.json()?;
            let route = state.create_route(project, new, now)?;
            Ok(Answer::json(StatusCode::CREATED, &route))
        }
        Operation::DeleteRoute => {
            state.delete_route(project, request.id("route")?, now)?;
            Ok(Answer::empty(StatusCode::NO_CONTENT))
        }
        _ => {
            let batch: RouteBatch = request.json()?;
            Ok(ok(&state.change_routes(project, &batch, now)))
        }
    }
}

impl Request<'_> {
    /// The ID in the path.
    fn id(&self, what: &str) -> Result<u64, Refusal> {
        let text = self.call.resource.as_deref().unwrap_or_default();
        text.parse().map_err(|_| {
            Refusal::unreadable(format!(
                "{text:?} is not the ID of a {what}: expected a number"
            ))
        })
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.call.body)
            .map_err(|error| Refusal::unreadable(format!("the body does not fit: {error}")))
    }
}
