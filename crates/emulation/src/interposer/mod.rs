//! Between a client and a cloud that is real software: counts and logs calls, and injects scripted faults.
//!
//! It sits in process around a [`Transport`], or on loopback as a [`Proxy`] in front of any server. One interposer may
//! stand in front of several servers; it counts them together. It is a [`FaultInjector`], as every emulated
//! cloud is, so the conformance kit treats both alike. Under a paused clock it stands in front of [`RealTime`] connections.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use cloudkeel_emulation::interposer::{Classifier, Interposer, Proxy, Rule};
//! use cloudkeel_emulation::{CommonFault, FaultInjector as _, FaultMatch};
//!
//! const EC2: Classifier = Classifier {
//!     rules: &[Rule::Param { param: "Action", reads: &["Describe"] }],
//!     page_param: None,
//! };
//! let interposer = Interposer::new(EC2);
//! let proxy = Proxy::start(&interposer, "http://127.0.0.1:5000").await?;
//! println!("point the client at {}", proxy.url());
//! interposer.once(FaultMatch::operation("DescribeInstances"), CommonFault::throttled(3));
//! println!("{:?}", interposer.call_totals());
//! # Ok(())
//! # }
//! ```

mod classifier;
mod proxy;
mod real_time;
mod recordings;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError, TransportErrorKind};
use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::json;
use tokio::time::Instant;

pub use self::classifier::{Classified, Classifier, Rule};
pub use self::proxy::Proxy;
pub use self::real_time::{RealTime, in_real_time, real_time};
use self::recordings::{Recordings, key_of};
use super::fault::CallAttributes;
use super::injector::{CallTotals, FaultInjector, FaultTiming, rules};
use super::{
    Answer, CallCounts, CallLog, CallOutcome, CommonFault, FaultMatch, FaultRule, FaultScript,
    ListShape, LoggedCall, basic_of, bearer_of,
};

/// How many calls the log keeps.
const LOG_CAPACITY: usize = 10_000;

/// One call, as the log of an interposer shows it.
pub type InterposedCall = LoggedCall<String, CommonFault>;

/// Counts calls on their way to a cloud and plays faults. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Interposer {
    classifier: Classifier,
    list_shape: ListShape,
    error_answer: fn(StatusCode) -> Answer,
    other_project: Option<OtherProject>,
    state: Arc<Mutex<State>>,
}

/// The way to another project of the cloud.
#[derive(Clone)]
struct OtherProject(Arc<dyn Transport>);

impl fmt::Debug for OtherProject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherProject")
    }
}

#[derive(Debug)]
struct State {
    log: CallLog<String, CommonFault>,
    faults: FaultScript<String, CommonFault>,
    recordings: Recordings,
    started: Instant,
}

impl Interposer {
    /// Names operations by this classifier. Lists are plain JSON, and so are the errors that it plays.
    pub fn new(classifier: Classifier) -> Self {
        let error_answer = |status: StatusCode| {
            Answer::json(
                status,
                &json!({"error": {"code": status.as_u16(), "message": "by script"}}),
            )
        };
        Self {
            classifier,
            list_shape: ListShape::PLAIN_JSON,
            error_answer,
            other_project: None,
            state: Arc::new(Mutex::new(State {
                log: CallLog::default(),
                faults: FaultScript::default(),
                recordings: Recordings::default(),
                started: Instant::now(),
            })),
        }
    }

    /// With lists of this shape, for the faults that make them wrong.
    #[must_use]
    pub const fn with_list_shape(mut self, shape: ListShape) -> Self {
        self.list_shape = shape;
        self
    }

    /// With refusals as this cloud words them. The answer may have another status than was asked for, where the cloud
    /// says the same with another.
    #[must_use]
    pub const fn with_errors(mut self, error_answer: fn(StatusCode) -> Answer) -> Self {
        self.error_answer = error_answer;
        self
    }

    /// With a way to another project of the cloud, or another account: where [`CommonFault::OtherProject`] leads. It may be
    /// another server, or the same one with another credential in the request.
    #[must_use]
    pub fn with_other_project(mut self, way: Arc<dyn Transport>) -> Self {
        self.other_project = Some(OtherProject(way));
        self
    }

    /// In front of this transport.
    pub fn transport(&self, inner: Arc<dyn Transport>) -> InterposedTransport {
        InterposedTransport {
            interposer: self.clone(),
            inner,
        }
    }

    /// How often it was called for what.
    pub fn calls(&self) -> CallCounts<String> {
        self.with(|state| state.log.counts().clone())
    }

    /// How often it was called for this operation.
    pub fn calls_of(&self, operation: &str) -> u64 {
        self.calls().of(operation.to_owned())
    }

    /// Every call in order, as far back as the log reaches.
    pub fn call_log(&self) -> Vec<InterposedCall> {
        self.with(|state| state.log.to_vec())
    }

    /// The next such call meets a fault.
    pub fn once(&self, on: FaultMatch<String>, fault: CommonFault) {
        self.add_rule(on, Some(1), fault);
    }

    /// The next `times` such calls meet a fault.
    pub fn times(&self, on: FaultMatch<String>, times: u64, fault: CommonFault) {
        self.add_rule(on, Some(times), fault);
    }

    /// Every such call meets a fault.
    pub fn always(&self, on: FaultMatch<String>, fault: CommonFault) {
        self.add_rule(on, None, fault);
    }

    fn add_rule(&self, on: FaultMatch<String>, times: Option<u64>, fault: CommonFault) {
        self.with(|state| state.faults.add(FaultRule { on, times, fault }));
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Passes a request on to the cloud and its answer back, except where a fault says otherwise.
    async fn exchange(
        &self,
        request: Request<Bytes>,
        upstream: &dyn Transport,
    ) -> Result<Response<Bytes>, TransportError> {
        let (head, body) = request.into_parts();
        let call = self.classifier.classify(&head, &body);
        let request = Request::from_parts(head, body);
        let (number, fault) = self.receive(&call, &request);
        let result = match &fault {
            None => self.forward(&call, request, upstream).await,
            Some(fault) => self.play(fault, &call, request, upstream).await,
        };
        let outcome = match (&result, &fault) {
            (Ok(answer), _) => CallOutcome::Status(answer.status().as_u16()),
            (Err(_), Some(CommonFault::BrokenAfter)) => CallOutcome::BrokenAfter,
            (Err(_), Some(CommonFault::BrokenBefore)) => CallOutcome::BrokenBefore,
            (Err(_), _) => CallOutcome::Unanswered,
        };
        self.with(|state| state.log.set_outcome(number, outcome));
        result
    }

    /// Logs a call, and takes its fault from the script.
    fn receive(&self, call: &Classified, request: &Request<Bytes>) -> (u64, Option<CommonFault>) {
        let token = caller_of(request.headers());
        self.with(|state| {
            let number = state.log.next_number();
            let fault = state.faults.take_for(&CallAttributes {
                operation: &call.operation,
                token: &token,
                resource: call.resource.as_deref(),
                page: call.page,
                mutating: call.mutating,
            });
            let entry = LoggedCall {
                number,
                request_id: number.to_string(),
                at: state.started.elapsed(),
                token,
                operation: call.operation.clone(),
                resource: call.resource.clone(),
                query: request.uri().query().unwrap_or_default().to_owned(),
                body: serde_json::from_slice(request.body()).unwrap_or_default(),
                fault: fault.clone(),
                outcome: CallOutcome::Unanswered,
            };
            state.log.add(entry, call.mutating, LOG_CAPACITY);
            (number, fault)
        })
    }

    /// Passes a request on, and keeps the answer to a read for stale ones.
    async fn forward(
        &self,
        call: &Classified,
        request: Request<Bytes>,
        upstream: &dyn Transport,
    ) -> Result<Response<Bytes>, TransportError> {
        let key = (!call.mutating).then(|| key_of(&request));
        let answer = upstream.send(request).await?;
        if let Some(key) = key {
            let (answer, now) = (answer.clone(), Instant::now());
            self.with(|state| state.recordings.add(key, answer, now));
        }
        Ok(answer)
    }

    async fn play(
        &self,
        fault: &CommonFault,
        call: &Classified,
        request: Request<Bytes>,
        upstream: &dyn Transport,
    ) -> Result<Response<Bytes>, TransportError> {
        match fault {
            CommonFault::Status { .. } => return Ok(self.refusal(fault)),
            CommonFault::NoAnswer => return std::future::pending().await,
            CommonFault::BrokenBefore => return Err(broken()),
            CommonFault::Slow { by } => tokio::time::sleep(*by).await,
            CommonFault::OtherProject { .. } => {
                if let Some(other) = &self.other_project {
                    return other.0.send(request).await;
                }
            }
            CommonFault::Stale { by } if !call.mutating => {
                let key = key_of(&request);
                let recorded =
                    |state: &mut State| state.recordings.stale(&key, *by, Instant::now());
                if let Some(answer) = self.with(recorded) {
                    return Ok(answer);
                }
            }
            _ => {}
        }
        let answer = self.forward(call, request, upstream).await?;
        match fault {
            CommonFault::BrokenAfter => Err(broken()),
            fault => Ok(self.corrupted(answer, fault)),
        }
    }

    fn refusal(&self, fault: &CommonFault) -> Response<Bytes> {
        let CommonFault::Status {
            status,
            body,
            retry_after_seconds,
        } = fault
        else {
            return Response::default();
        };
        let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = match body {
            Some(body) => Answer::of(status, body.clone().into_bytes()),
            None => (self.error_answer)(status),
        };
        if let Some(seconds) = retry_after_seconds {
            answer = answer.with_header(RETRY_AFTER, &seconds.to_string());
        }
        response(answer)
    }

    /// The answer of the cloud as a fault lets it through. Its headers stay, except the length.
    fn corrupted(&self, answer: Response<Bytes>, fault: &CommonFault) -> Response<Bytes> {
        let (mut head, body) = answer.into_parts();
        let untouched = Answer::of(head.status, body.to_vec());
        let (status, headers, body) = untouched.corrupted(&self.list_shape, fault).into_parts();
        if *fault == CommonFault::Html {
            head.headers.extend(headers);
        }
        head.status = status;
        head.headers.remove(http::header::CONTENT_LENGTH);
        Response::from_parts(head, Bytes::from(body))
    }
}

fn response(answer: Answer) -> Response<Bytes> {
    let (status, headers, body) = answer.into_parts();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().extend(headers);
    response
}

fn broken() -> TransportError {
    TransportError::new(TransportErrorKind::Broken, "the connection broke by script")
}

/// The name of the caller in log and script: a bearer token, a user, or the token of OpenStack.
fn caller_of(headers: &HeaderMap) -> String {
    if let Some((user, _)) = basic_of(headers) {
        return user;
    }
    let token = headers.get("x-auth-token");
    let token = token.and_then(|value| value.to_str().ok());
    token.unwrap_or_else(|| bearer_of(headers)).to_owned()
}

impl FaultInjector for Interposer {
    fn call_totals(&self) -> CallTotals {
        let counts = self.calls();
        CallTotals {
            total: counts.total(),
            mutating: counts.mutations(),
        }
    }

    fn reset_calls(&self) {
        self.with(|state| {
            state.log.reset();
            state.recordings.clear();
        });
    }

    /// It cannot show another project unless it [knows the way](Interposer::with_other_project) to one.
    fn inject(&self, when: FaultTiming, fault: CommonFault) -> bool {
        if matches!(fault, CommonFault::OtherProject { .. }) && self.other_project.is_none() {
            return false;
        }
        for (on, times, fault) in rules(when, fault) {
            self.add_rule(on, times, fault);
        }
        true
    }

    fn clear_faults(&self) {
        self.with(|state| state.faults.clear());
    }
}

/// An interposer in front of a transport.
pub struct InterposedTransport {
    interposer: Interposer,
    inner: Arc<dyn Transport>,
}

#[async_trait]
impl Transport for InterposedTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.interposer.exchange(request, &*self.inner).await
    }
}
