//! The gateway: every call, in process or over a socket, passes through here and meets, in this order,
//! authentication, the rate limit, the fault script, latency, and the operation itself.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use super::fault::{CallAttributes, CommonFault};
use super::{
    Answer, ApiOperation, Call, CallLog, CallOutcome, Emulated, FaultScript, Latency, LoggedCall,
    ScriptedFault,
};

/// What the gateway of a cloud remembers. It lives under the cloud's lock.
#[derive(Debug)]
pub struct Gateway<O, F> {
    /// Every call, counted and in order.
    pub log: CallLog<O, F>,
    /// What will go wrong.
    pub faults: FaultScript<O, F>,
    random: fastrand::Rng,
    opened: Instant,
}

impl<O: ApiOperation, F: ScriptedFault> Gateway<O, F> {
    /// A gateway that opens now. What is random about it follows from the seed.
    pub fn new(seed: u64, now: Instant) -> Self {
        Self {
            log: CallLog::default(),
            faults: FaultScript::default(),
            random: fastrand::Rng::with_seed(seed),
            opened: now,
        }
    }

    /// Logs a call and gives it a number. Its body has to wait: that of a refused caller is not worth the
    /// memory.
    fn receive(
        &mut self,
        call: &Call<O>,
        caller: &str,
        request_id: impl FnOnce(u64) -> String,
        capacity: usize,
    ) -> u64 {
        let number = self.log.next_number();
        let entry = LoggedCall {
            number,
            request_id: request_id(number),
            at: Instant::now().saturating_duration_since(self.opened),
            token: caller.to_owned(),
            operation: call.operation,
            resource: call.resource.clone(),
            query: call.query.clone(),
            body: Value::Null,
            fault: None,
            outcome: CallOutcome::Unanswered,
        };
        self.log.add(entry, call.operation.is_mutating(), capacity);
        number
    }

    /// The fault that a call meets, and how long its answer takes.
    fn meet_fault(
        &mut self,
        number: u64,
        call: &CallAttributes<'_, O>,
        latency: Latency,
    ) -> (Option<F>, Duration) {
        let fault = self.faults.take_for(call);
        if let Some(fault) = &fault {
            self.log.set_fault(number, fault);
        }
        let slower = match fault.as_ref().and_then(F::common) {
            Some(CommonFault::Slow { by }) => by,
            _ => Duration::ZERO,
        };
        let jitter = match u64::try_from(latency.jitter.as_nanos()) {
            Ok(0) | Err(_) => Duration::ZERO,
            Ok(nanos) => Duration::from_nanos(self.random.u64(0..=nanos)),
        };
        (fault, latency.fixed + jitter + slower)
    }
}

/// Handles one call from its arrival to its answer.
pub(super) async fn handle<C: Emulated>(
    cloud: C,
    call: Call<C::Operation>,
) -> Result<Response, Infallible> {
    let caller_name = C::caller_name(&call.headers);
    let settings = cloud.gateway_settings();
    let request_id = |number| C::request_id(number).1;
    let number = cloud.with_gateway(|gateway| {
        gateway.receive(&call, &caller_name, request_id, settings.log_capacity)
    });
    let admission = cloud.admit(&call);
    let answer = match admission.caller {
        Err(refusal) => Some(refusal),
        Ok(caller) => {
            let attributes = CallAttributes {
                operation: &call.operation,
                token: &caller_name,
                resource: call.resource.as_deref(),
                page: C::page_of(&call.query),
                mutating: call.operation.is_mutating(),
            };
            let body = call.body_shown();
            let (fault, delay) = cloud.with_gateway(|gateway| {
                gateway.log.set_body(number, body);
                gateway.meet_fault(number, &attributes, settings.latency)
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
    cloud.with_gateway(|gateway| gateway.log.set_outcome(number, status));
    let headers = admission.headers.into_iter();
    let answer = headers.fold(answer, |answer, (name, value)| {
        answer.with_header(name, &value)
    });
    Ok(numbered::<C>(number, answer))
}

/// `None` if the connection breaks.
async fn answer<C: Emulated>(
    cloud: &C,
    call: &Call<C::Operation>,
    number: u64,
    caller: &C::Caller,
    fault: Option<&C::Fault>,
) -> Option<Answer> {
    let end = |outcome| cloud.with_gateway(|gateway| gateway.log.set_outcome(number, outcome));
    let common = fault.and_then(ScriptedFault::common);
    match common {
        Some(CommonFault::NoAnswer) => return std::future::pending().await,
        Some(CommonFault::BrokenBefore) => {
            end(CallOutcome::BrokenBefore);
            return None;
        }
        _ => {}
    }
    let answer = cloud.perform(call, caller, fault).await;
    match common {
        Some(CommonFault::BrokenAfter) => {
            end(CallOutcome::BrokenAfter);
            None
        }
        Some(common) => Some(answer.corrupted(&C::LIST_SHAPE, &common)),
        None => Some(answer),
    }
}

/// An answer whose body breaks off at once, which closes a real connection too.
pub(super) fn broken() -> Response {
    let cut = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    Response::new(Body::from_stream(cut))
}

fn numbered<C: Emulated>(number: u64, answer: Answer) -> Response {
    let (header, id) = C::request_id(number);
    answer.with_header(header, &id).into_response()
}

/// An answer that did not come through the gateway and is not counted: to a wrong path, or to a request about the
/// emulator itself.
pub fn uncounted_response<C: Emulated>(cloud: &C, answer: Answer) -> Response {
    let number = cloud.with_gateway(|gateway| gateway.log.next_number());
    numbered::<C>(number, answer)
}
