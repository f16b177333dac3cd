//! The one door: every call, in process or over a socket, passes through here and meets, in this
//! order, authentication, the rate limit, the fault script, latency, and the operation itself on
//! what the caller may see.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use bytes::Bytes;
use cloudkeel_provider_local::wire::{PROJECT_HEADER, REQUEST_ID_HEADER};
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::SimulatedCloud;
use super::calls::{CallOutcome, LoggedCall, request_id};
use super::distort::distort;
use super::fault::{Fault, code_of};
use super::history::View;
use super::operation::Operation;
use super::rate_limit::{Bucket, Budget};
use super::refusal::Refusal;
use super::rest::{Answer, Call, perform};
use super::tokens::{Caller, token_of};
use super::world::World;

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
    budget: Option<Budget>,
    entry: Result<Entry, Refusal>,
}

/// A call that was let in.
struct Entry {
    caller: Caller,
    fault: Option<Fault>,
    delay: Duration,
}

/// Handles one call from its arrival to its answer.
pub(super) async fn enter(
    cloud: SimulatedCloud,
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
    let entry = match &admission.entry {
        Ok(entry) => entry,
        Err(refusal) => {
            let status = refusal.status.as_u16();
            cloud.end(admission.number, CallOutcome::Status(status));
            let answer = Answer::refused(refusal);
            return Ok(dressed(&admission, None, rendered(answer)));
        }
    };
    if !entry.delay.is_zero() {
        tokio::time::sleep(entry.delay).await;
    }
    Ok(answer(&cloud, &arrival, &admission, entry).await)
}

async fn answer(
    cloud: &SimulatedCloud,
    arrival: &Arrival,
    admission: &Admission,
    entry: &Entry,
) -> Response {
    let project = match &entry.fault {
        Some(Fault::OtherProject { project }) => project.as_str(),
        _ => entry.caller.project.as_str(),
    };
    let result = match &entry.fault {
        Some(Fault::NoAnswer) => return std::future::pending().await,
        Some(Fault::BrokenBefore) => {
            cloud.end(admission.number, CallOutcome::BrokenBefore);
            return broken();
        }
        Some(Fault::Status {
            status,
            code,
            retry_after_seconds,
        }) => Err(Refusal {
            retry_after: retry_after_seconds.map(Duration::from_secs),
            ..Refusal::new(
                StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                code.unwrap_or(code_of(*status)),
                "by script",
            )
        }),
        fault => cloud.with(|world, now| world.carry_out(arrival, project, fault.as_ref(), now)),
    };
    let result = match result {
        Ok(answer) if arrival.operation.is_mutating() => cloud.settle().await.map(|()| answer),
        result => result,
    };
    if entry.fault == Some(Fault::BrokenAfter) {
        cloud.end(admission.number, CallOutcome::BrokenAfter);
        return broken();
    }
    let answer = result.unwrap_or_else(|refusal| Answer::refused(&refusal));
    let answer = distort(answer, entry.fault.as_ref());
    cloud.end(
        admission.number,
        CallOutcome::Status(answer.status.as_u16()),
    );
    let tells = cloud.with(|world, _| world.settings.features.tells_project);
    dressed(admission, tells.then_some(project), rendered(answer))
}

impl World {
    fn admit(&mut self, arrival: &Arrival, now: Instant) -> Admission {
        let number = self.log.next_number();
        let token = token_of(&arrival.headers);
        let entry = LoggedCall {
            number,
            at: now.saturating_duration_since(self.started),
            token: token.to_owned(),
            operation: arrival.operation,
            resource: arrival.resource.clone(),
            query: arrival.query.clone(),
            fault: None,
            outcome: CallOutcome::Unanswered,
        };
        self.log.arrive(entry, self.settings.log_capacity);
        let mut budget = None;
        let entry = self
            .tokens
            .admit(token, arrival.operation)
            .and_then(|caller| {
                budget = self.charge(token, now);
                match budget.and_then(|budget| budget.retry_after) {
                    Some(wait) => Err(Refusal::rate_limited(wait)),
                    None => Ok(self.let_in(number, caller, arrival)),
                }
            });
        Admission {
            number,
            budget,
            entry,
        }
    }

    fn charge(&mut self, token: &str, now: Instant) -> Option<Budget> {
        let limit = self.settings.rate_limit?;
        let bucket = self
            .buckets
            .entry(token.to_owned())
            .or_insert_with(|| Bucket::full(now));
        Some(bucket.take(limit, now))
    }

    fn let_in(&mut self, number: u64, caller: Caller, arrival: &Arrival) -> Entry {
        let resource = arrival.resource.as_deref();
        let fault = self.faults.meet(arrival.operation, &caller.token, resource);
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
            caller,
            fault,
            delay: latency.fixed + jitter + slower,
        }
    }

    fn carry_out(
        &mut self,
        arrival: &Arrival,
        project: &str,
        fault: Option<&Fault>,
        now: Instant,
    ) -> Result<Answer, Refusal> {
        let lag = if arrival.operation.is_list() {
            self.settings.consistency.list
        } else {
            self.settings.consistency.get
        };
        let staler = match fault {
            Some(Fault::Stale { by }) => *by,
            _ => Duration::ZERO,
        };
        let call = Call {
            operation: arrival.operation,
            project,
            resource: arrival.resource.as_deref(),
            query: &arrival.query,
            if_match: arrival
                .headers
                .get(IF_MATCH)
                .and_then(|value| value.to_str().ok()),
            body: &arrival.body,
            now,
            view: View::lagging(now, lag + staler),
        };
        perform(self, &call)
    }
}

fn rendered(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = answer.status;
    set(response.headers_mut(), CONTENT_TYPE, "application/json");
    if let Some(etag) = answer.etag {
        set(response.headers_mut(), ETAG, &etag);
    }
    if let Some(wait) = answer.retry_after {
        set(response.headers_mut(), RETRY_AFTER, &whole_seconds(wait));
    }
    response
}

/// An answer whose body breaks off at once, which closes a real connection too.
fn broken() -> Response {
    let cut = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    Response::new(Body::from_stream(cut))
}

/// Adds what every answer carries.
fn dressed(admission: &Admission, project: Option<&str>, response: Response) -> Response {
    let mut response = numbered(admission.number, response);
    let headers = response.headers_mut();
    if let Some(project) = project {
        set(headers, HeaderName::from_static(PROJECT_HEADER), project);
    }
    if let Some(budget) = admission.budget {
        for (name, value) in [
            ("ratelimit-limit", budget.limit.to_string()),
            ("ratelimit-remaining", budget.remaining.to_string()),
            ("ratelimit-reset", whole_seconds(budget.reset)),
        ] {
            set(headers, HeaderName::from_static(name), &value);
        }
    }
    response
}

fn numbered(number: u64, mut response: Response) -> Response {
    let id = HeaderName::from_static(REQUEST_ID_HEADER);
    set(response.headers_mut(), id, &request_id(number));
    response
}

/// An answer that did not come through the door: to a wrong path, or from the control API.
pub(super) fn beside_the_door(cloud: &SimulatedCloud, answer: Result<Answer, Refusal>) -> Response {
    let number = cloud.with(|world, _| world.log.next_number());
    let answer = answer.unwrap_or_else(|refusal| Answer::refused(&refusal));
    numbered(number, rendered(answer))
}

/// Rounded up, so that nobody comes too early.
fn whole_seconds(duration: Duration) -> String {
    let rounded_up = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    rounded_up.to_string()
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
