//! What each call of the Cloud API does. Plain functions over a project: no I/O, no waiting.

mod balancers;
mod body;
mod certificates;
mod lists;
mod names;
mod render;
mod routes;
mod services;
mod targets;

use cloudkeel_emulation::jobs::{Job, JobStatus, NewJob, RunsJobs as _};
use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::lists::catalogue;
pub(crate) use self::lists::{Resource, page_of};
pub(crate) use self::names::check_free;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::{
    Certificate, LOCATIONS, LoadBalancer, LoadBalancerType, Network, Project, ProjectContext,
    Server,
};

/// A moment as the API writes it.
pub(crate) fn wire_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

/// The ID in the path. What is no number is the ID of nothing.
fn id_of(call: &Call<Operation>, kind: &str) -> Result<u64, Refusal> {
    let text = call.resource.as_deref().unwrap_or_default();
    text.parse().map_err(|_| Refusal::not_found(kind, text))
}

/// Carries out a call.
pub(crate) fn perform(
    context: &mut ProjectContext<'_>,
    call: &Call<Operation>,
) -> Result<Answer, Refusal> {
    match call.operation {
        Operation::ListServers => context.list::<Server>(call),
        Operation::GetServer => context.get::<Server>(call),
        Operation::ListNetworks => context.list::<Network>(call),
        Operation::GetNetwork => context.get::<Network>(call),
        Operation::ListLoadBalancers => context.list::<LoadBalancer>(call),
        Operation::GetLoadBalancer => context.get::<LoadBalancer>(call),
        Operation::ListCertificates => context.list::<Certificate>(call),
        Operation::GetCertificate => context.get::<Certificate>(call),
        Operation::ListActions => context.list_actions(call),
        Operation::GetAction => context.get_action(call),
        Operation::ListLocations | Operation::GetLocation => {
            let locations = LOCATIONS.iter().map(|location| json!(location));
            catalogue(call, "location", locations.collect())
        }
        Operation::ListLoadBalancerTypes | Operation::GetLoadBalancerType => {
            let types = context.balancer_types.iter().map(LoadBalancerType::wire);
            catalogue(call, "load_balancer_type", types.collect())
        }
        Operation::AddRoute | Operation::DeleteRoute => context.change_routes(call),
        Operation::CreateCertificate => context.create_certificate(call),
        Operation::DeleteCertificate => context.delete_certificate(call),
        _ => context.change_balancer(call),
    }
}

impl ProjectContext<'_> {
    /// Begins an action with this effect, and answers with it.
    fn begin(
        &mut self,
        job: NewJob,
        on_success: impl FnOnce(&mut Project, Instant) + Send + 'static,
    ) -> Answer {
        let job = self.project.begin(job, self.now, on_success);
        let action = job.map(|job| self.action(&job));
        Answer::json(StatusCode::CREATED, &json!({"action": action}))
    }

    /// Refuses while an action on this resource is running.
    fn check_unlocked(&self, kind: &'static str, id: u64) -> Result<(), Refusal> {
        let Some(job) = self.project.jobs.lock_on(&(kind, id)) else {
            return Ok(());
        };
        let action = format!("action {} ({}) is running", job.id, job.command);
        Err(Refusal::new(
            "locked",
            format!("{kind} {id} is locked: {action}"),
        ))
    }

    /// An action as the API shows it.
    fn action(&self, job: &Job) -> Value {
        let time = |instant| wire_time(self.clock.time_at(instant));
        let resources = job.resources.iter();
        let resources = resources.map(|(kind, id)| json!({"id": id, "type": kind}));
        let error = job
            .error()
            .map(|code| json!({"code": code, "message": format!("the action ended in {code}")}));
        json!({
            "id": job.id,
            "command": job.command,
            "status": status_of(job),
            "progress": job.progress(self.now),
            "started": time(job.started),
            "finished": job.finished.map(time),
            "resources": resources.collect::<Vec<_>>(),
            "error": error,
        })
    }
}

fn status_of(job: &Job) -> &'static str {
    match job.status() {
        JobStatus::Running => "running",
        JobStatus::Succeeded => "success",
        JobStatus::Failed => "error",
    }
}
