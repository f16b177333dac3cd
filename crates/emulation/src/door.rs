//! The one door: every call, in process or over a socket, passes through here and meets, in this
//! order, authentication, the rate limit, the fault script, latency, and the operation itself.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use super::fault::Suspect;
use super::{
    Answer, ApiOperation, Arrival, CallLog, CallOutcome, Emulated, FaultScript, Latency,
    LoggedCall, Mishap, ScriptedFault,
};

/// More than any honest request carries.
const BIGGEST_BODY: usize = 16 * 1024 * 1024;

/// What a cloud's door remembers. It lives under the cloud's lock.
#[derive(Debug)]
pub struct Door<O, F> {
    /// Every call, counted and in order.
    pub log: CallLog<O, F>,
    /// What will go wrong.
    pub faults: FaultScript<O, F>,
    random: fastrand::Rng,
    opened: Instant,
}

impl<O: ApiOperation, F: ScriptedFault> Door<O, F> {
    /// A door that opens now. What is random about it follows from the seed.
    pub fn new(seed: u64, now: Instant) -> Self {
        Self {
            log: CallLog::default(),
            faults: FaultScript::default(),
            random: fastrand::Rng::with_seed(seed),
            opened: now,
        }
    }

    /// Logs a call and gives it a number. Its body has to wait: that of a stranger is not worth the memory.
    fn arrive(
        &mut self,
        call: &Arrival<O>,
        token: &str,
        name: impl FnOnce(u64) -> String,
        capacity: usize,
    ) -> u64 {
        let number = self.log.next_number();
        let entry = LoggedCall {
            number,
            request_id: name(number),
            at: Instant::now().saturating_duration_since(self.opened),
            token: token.to_owned(),
            operation: call.operation,
            resource: call.resource.clone(),
            query: call.query.clone(),
            body: Value::Null,
            fault: None,
            outcome: CallOutcome::Unanswered,
        };
        self.log.arrive(entry, capacity);
        number
    }

    /// The fault that a call meets, and how long its answer takes.
    fn let_in(
        &mut self,
        number: u64,
        suspect: &Suspect<'_, O>,
        latency: Latency,
    ) -> (Option<F>, Duration) {
        let fault = self.faults.meet(suspect);
        if let Some(fault) = &fault {
            self.log.meet(number, fault);
        }
        let slower = match fault.as_ref().and_then(F::mishap) {
            Some(Mishap::Slow(by)) => by,
            _ => Duration::ZERO,
        };
        let jitter = match u64::try_from(latency.jitter.as_nanos()) {
            Ok(0) | Err(_) => Duration::ZERO,
            Ok(nanos) => Duration::from_nanos(self.random.u64(0..=nanos)),
        };
        (fault, latency.fixed + jitter + slower)
    }
}

impl<O> Arrival<O> {
    async fn read(operation: O, params: &RawPathParams, request: Request) -> Self {
        let resource = params.iter().next().map(|(_, value)| value.to_owned());
        let (head, body) = request.into_parts();
        Self {
            operation,
            resource,
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers,
            // A body that breaks off does not parse either, and is refused as such.
            body: axum::body::to_bytes(body, BIGGEST_BODY)
                .await
                .unwrap_or_default(),
        }
    }
}

/// Handles one call from its arrival to its answer.
pub(super) async fn enter<C: Emulated>(
    cloud: C,
    operation: C::Operation,
    params: RawPathParams,
    request: Request,
) -> Result<Response, Infallible> {
    let call = Arrival::read(operation, &params, request).await;
    let token = C::name_of_caller(&call.headers);
    let behaviour = cloud.behaviour();
    let name = |number| C::request_id(number).1;
    let number = cloud.with_door(|door| door.arrive(&call, &token, name, behaviour.log_capacity));
    let admitted = cloud.admit(&call);
    let answer = match admitted.entry {
        Err(refusal) => Some(refusal),
        Ok(caller) => {
            let suspect = Suspect {
                operation,
                token: &token,
                resource: call.resource.as_deref(),
                page: C::page_of(&call.query),
                mutating: operation.is_mutating(),
            };
            let body = serde_json::from_slice(&call.body).unwrap_or_default();
            let (fault, delay) = cloud.with_door(|door| {
                door.log.remember(number, body);
                door.let_in(number, &suspect, behaviour.latency)
            });
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            answer(&cloud, &call, number, &caller, fault.as_ref()).await
        }
    };
    let Some(answer) = answer else {
        return Ok(broken());
    };
    let status = CallOutcome::Status(answer.status().as_u16());
    cloud.with_door(|door| door.log.end(number, status));
    let headers = admitted.headers.into_iter();
    let answer = headers.fold(answer, |answer, (name, value)| {
        answer.with_header(name, &value)
    });
    Ok(numbered::<C>(number, answer))
}

/// `None` if the connection breaks.
async fn answer<C: Emulated>(
    cloud: &C,
    call: &Arrival<C::Operation>,
    number: u64,
    caller: &C::Caller,
    fault: Option<&C::Fault>,
) -> Option<Answer> {
    let end = |outcome| cloud.with_door(|door| door.log.end(number, outcome));
    let mishap = fault.and_then(ScriptedFault::mishap);
    match mishap {
        Some(Mishap::NoAnswer) => return std::future::pending().await,
        Some(Mishap::BrokenBefore) => {
            end(CallOutcome::BrokenBefore);
            return None;
        }
        _ => {}
    }
    let answer = cloud.perform(call, caller, fault).await;
    if mishap == Some(Mishap::BrokenAfter) {
        end(CallOutcome::BrokenAfter);
        return None;
    }
    Some(answer.spoilt(cloud, fault))
}

/// An answer whose body breaks off at once, which closes a real connection too.
fn broken() -> Response {
    let cut = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    Response::new(Body::from_stream(cut))
}

fn numbered<C: Emulated>(number: u64, answer: Answer) -> Response {
    let (header, id) = C::request_id(number);
    answer.with_header(header, &id).into_response()
}

/// An answer that did not come through the door: to a wrong path, or to a question about the cloud
/// itself.
pub fn beside_the_door<C: Emulated>(cloud: &C, answer: Answer) -> Response {
    let number = cloud.with_door(|door| door.log.next_number());
    numbered::<C>(number, answer)
}
