//! The one door: every call, in process or over a socket, passes through here and meets, in this
//! order, authentication, the rate limit, the fault script, latency, and the operation itself on
//! what the caller may see.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use super::HetznerCloud;
use super::calls::{LoggedCall, correlation_id};
use super::distort::Outgoing;
use super::fault::{Fault, Suspect};
use super::operation::Operation;
use super::refusal::Refusal;
use super::rest::{Answer, Call, page_of, perform};
use super::tokens::{login_of, token_of};
use super::world::{Moment, World};
use crate::simulated_cloud::CallOutcome;
use crate::simulated_cloud::history::View;
use crate::simulated_cloud::rate_limit::{Bucket, Budget};

/// More than any honest request carries.
const BIGGEST_BODY: usize = 16 * 1024 * 1024;

/// What arrived.
struct Arrival {
    operation: Operation,
    resource: Option<String>,
    query: String,
    headers: HeaderMap,
    body: Bytes,
}

/// What was decided about it at the door.
struct Admission {
    number: u64,
    /// What is left of the rate limit, and when it is whole again.
    budget: Option<(Budget, i64)>,
    entry: Result<Entry, Refusal>,
}

/// A call that was let in.
struct Entry {
    project: String,
    fault: Option<Fault>,
    delay: Duration,
}

/// Handles one call from its arrival to its answer.
pub(super) async fn enter(
    cloud: HetznerCloud,
    operation: Operation,
    params: RawPathParams,
    request: Request,
) -> Result<Response, Infallible> {
    let resource = params.iter().next().map(|(_, value)| value.to_owned());
    let (head, body) = request.into_parts();
    let arrival = Arrival {
        operation,
        resource,
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        // A body that breaks off does not parse either, and is refused as such.
        body: axum::body::to_bytes(body, BIGGEST_BODY)
            .await
            .unwrap_or_default(),
    };
    let admission = cloud.with(|world, now| world.admit(&arrival, now));
    let outgoing = match &admission.entry {
        Err(refusal) => Some(refused(operation, refusal)),
        Ok(entry) => {
            if !entry.delay.is_zero() {
                tokio::time::sleep(entry.delay).await;
            }
            answer(&cloud, &arrival, admission.number, entry).await
        }
    };
    let Some(outgoing) = outgoing else {
        return Ok(broken());
    };
    let status = CallOutcome::Status(outgoing.status.as_u16());
    cloud.with(|world, _| world.log.end(admission.number, status));
    Ok(dressed(admission.number, admission.budget, outgoing))
}

/// `None` if the connection breaks.
async fn answer(
    cloud: &HetznerCloud,
    arrival: &Arrival,
    number: u64,
    entry: &Entry,
) -> Option<Outgoing> {
    let end = |outcome| cloud.with(|world, _| world.log.end(number, outcome));
    let result = match &entry.fault {
        Some(Fault::NoAnswer) => return std::future::pending().await,
        Some(Fault::BrokenBefore) => {
            end(CallOutcome::BrokenBefore);
            return None;
        }
        Some(Fault::Bare { status }) => return Some(Outgoing::bare(*status)),
        Some(Fault::Refused { code, status }) => {
            let mut refusal = Refusal::new(code, "by script");
            if let Some(status) = status.and_then(|status| StatusCode::from_u16(status).ok()) {
                refusal.status = status;
            }
            Err(refusal)
        }
        fault => cloud.with(|world, now| world.carry_out(arrival, entry, fault.as_ref(), now)),
    };
    if entry.fault == Some(Fault::BrokenAfter) {
        end(CallOutcome::BrokenAfter);
        return None;
    }
    let outgoing = match result {
        Ok(answer) => Outgoing::json(answer.status, answer.body.as_ref()),
        Err(refusal) => refused(arrival.operation, &refusal),
    };
    Some(outgoing.distorted(entry.fault.as_ref()))
}

fn refused(operation: Operation, refusal: &Refusal) -> Outgoing {
    let body = if operation.is_robot() {
        refusal.robot_body()
    } else {
        refusal.body()
    };
    Outgoing::json(refusal.status, Some(&body))
}

impl World {
    fn admit(&mut self, arrival: &Arrival, now: Moment) -> Admission {
        let number = self.log.next_number();
        let login = login_of(&arrival.headers);
        let token = match &login {
            Some((user, _)) => user.as_str(),
            None => token_of(&arrival.headers),
        };
        let entry = LoggedCall {
            number,
            at: now.instant.saturating_duration_since(self.started),
            token: token.to_owned(),
            operation: arrival.operation,
            resource: arrival.resource.clone(),
            query: arrival.query.clone(),
            body: serde_json::from_slice(&arrival.body).unwrap_or(Value::Null),
            fault: None,
            outcome: CallOutcome::Unanswered,
        };
        self.log.arrive(entry, self.settings.log_capacity);
        let mut budget = None;
        let admitted = if arrival.operation.is_robot() {
            let limit = self.settings.robot_limit;
            let admitted = self
                .robot
                .admit(login.as_ref(), arrival.operation, limit, now.instant);
            admitted.map(|()| String::new())
        } else {
            self.admit_token(token, arrival.operation, now, &mut budget)
        };
        let entry = admitted.map(|project| self.let_in(number, token, project, arrival));
        Admission {
            number,
            budget,
            entry,
        }
    }

    fn admit_token(
        &mut self,
        token: &str,
        operation: Operation,
        now: Moment,
        budget: &mut Option<(Budget, i64)>,
    ) -> Result<String, Refusal> {
        let project = self.tokens.admit(token, operation)?.to_owned();
        let Some(limit) = self.settings.rate_limit else {
            return Ok(project);
        };
        let bucket = self.buckets.entry(project.clone());
        let bucket = bucket.or_insert_with(|| Bucket::full(now.instant));
        let taken = bucket.take(limit, now.instant);
        *budget = Some((taken, now.plus(taken.reset).time.as_second()));
        if taken.retry_after.is_none() {
            return Ok(project);
        }
        let message = format!("limit of {} requests reached", limit.burst);
        Err(Refusal::new("rate_limit_exceeded", message))
    }

    fn let_in(&mut self, number: u64, token: &str, project: String, arrival: &Arrival) -> Entry {
        let fault = self.faults.meet(&Suspect {
            operation: arrival.operation,
            token,
            resource: arrival.resource.as_deref(),
            page: page_of(&arrival.query),
        });
        if let Some(fault) = &fault {
            self.log.meet(number, fault);
        }
        let slower = match &fault {
            Some(Fault::Slow { by }) => *by,
            _ => Duration::ZERO,
        };
        let latency = self.settings.latency;
        let jitter = match u64::try_from(latency.jitter.as_nanos()) {
            Ok(0) | Err(_) => Duration::ZERO,
            Ok(nanos) => Duration::from_nanos(self.random.u64(0..=nanos)),
        };
        Entry {
            project,
            fault,
            delay: latency.fixed + jitter + slower,
        }
    }

    fn carry_out(
        &mut self,
        arrival: &Arrival,
        entry: &Entry,
        fault: Option<&Fault>,
        now: Moment,
    ) -> Result<Answer, Refusal> {
        let resource = arrival.resource.as_deref();
        if arrival.operation.is_robot() {
            let form = String::from_utf8_lossy(&arrival.body);
            let number = resource.unwrap_or_default();
            let body = self.robot.perform(arrival.operation, number, &form)?;
            return Ok(Answer::ok(body));
        }
        let consistency = self.settings.consistency;
        let lag = if arrival.operation.is_list() {
            consistency.list
        } else {
            consistency.get
        };
        let (mut staler, mut failure, mut project) = (Duration::ZERO, None, &entry.project);
        match fault {
            Some(Fault::Stale { by }) => staler = *by,
            Some(Fault::ActionFails { code }) => failure = Some(code.clone()),
            Some(Fault::OtherProject { project: other }) => project = other,
            _ => {}
        }
        let scene = self.scene(project, now);
        let mut scene = scene.ok_or_else(|| Refusal::not_found("project", project))?;
        scene.view = View::lagging(now.instant, lag + staler);
        scene.failure = failure;
        let call = Call {
            operation: arrival.operation,
            resource,
            query: &arrival.query,
            body: &arrival.body,
        };
        perform(&mut scene, &call)
    }
}

/// An answer whose body breaks off at once, which closes a real connection too.
fn broken() -> Response {
    let cut = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    Response::new(Body::from_stream(cut))
}

/// Adds what every answer carries.
fn dressed(number: u64, budget: Option<(Budget, i64)>, outgoing: Outgoing) -> Response {
    let kind = match (outgoing.html, outgoing.body.is_empty()) {
        (true, _) => Some("text/html"),
        (false, false) => Some("application/json"),
        (false, true) => None,
    };
    let mut response = Response::new(Body::from(outgoing.body));
    *response.status_mut() = outgoing.status;
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        set(headers, CONTENT_TYPE, kind);
    }
    let id = HeaderName::from_static("x-correlation-id");
    set(headers, id, &correlation_id(number));
    if let Some((budget, reset)) = budget {
        for (name, value) in [
            ("ratelimit-limit", budget.limit.to_string()),
            ("ratelimit-remaining", budget.remaining.to_string()),
            ("ratelimit-reset", reset.to_string()),
        ] {
            set(headers, HeaderName::from_static(name), &value);
        }
    }
    response
}

/// An answer that did not come through the door: to a wrong path, or from the control API.
pub(super) fn beside_the_door(cloud: &HetznerCloud, answer: Result<Answer, Refusal>) -> Response {
    let number = cloud.with(|world, _| world.log.next_number());
    let outgoing = match answer {
        Ok(answer) => Outgoing::json(answer.status, answer.body.as_ref()),
        Err(refusal) => Outgoing::json(refusal.status, Some(&refusal.body())),
    };
    dressed(number, None, outgoing)
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
