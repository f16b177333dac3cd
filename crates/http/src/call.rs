//! One call: as many attempts as are safe and useful.

use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{CallRecord, CloudError, ErrorKind};
use http::StatusCode;
use tokio::time::{Instant, sleep, timeout};

use crate::attempt_failure::{Failure, MESSAGE_CHARS};
use crate::client::Inner;
use crate::error::{CallFailure, TransportError, TransportErrorKind};
use crate::limit::{BudgetExhausted, Limiter, Permit};
use crate::log;
use crate::request::Request;
use crate::response::Response;
use crate::retry::Failed;
use crate::sent_secrets::SentSecrets;
use crate::token::LoginId;

/// Error messages are far shorter. Longer bodies are not parsed: as JSON values they would take many times their
/// size, and they would stay in memory as long as the error.
const MAX_ERROR_BODY_BYTES: usize = 256 * 1024;

pub(crate) struct Call<'a> {
    client: &'a Inner,
    request: &'a Request,
    started: Instant,
    total: Duration,
    attempts: u32,
    logged_in_again: bool,
    /// Whether an attempt may have taken effect although its response does not say so.
    may_have_happened: bool,
    last: Option<Failure>,
}

/// The outcome of an attempt.
enum Outcome {
    Answered(Response),
    Failed(Failure),
    /// The credential was rejected, and a new login is worth one more attempt.
    LogInAgain(Failure),
}

/// A request as it is sent, and the secrets that must not appear in messages about it.
struct Outgoing {
    wire: http::Request<Bytes>,
    url: String,
    login: Option<LoginId>,
    sent_secrets: SentSecrets,
}

impl<'a> Call<'a> {
    pub(crate) fn begin(client: &'a Inner, request: &'a Request) -> Self {
        Self {
            client,
            request,
            started: Instant::now(),
            total: request.limits().total.unwrap_or(client.retry.total),
            attempts: 0,
            logged_in_again: false,
            may_have_happened: false,
            last: None,
        }
    }

    pub(crate) async fn run(mut self) -> Result<Response, CloudError> {
        loop {
            let permit = match self.admit().await {
                Ok(permit) => permit,
                Err(budget_exhausted) => return Err(self.budget_exhausted(budget_exhausted)),
            };
            let outgoing = self.prepare().await.map_err(|e| self.with_effect(e))?;
            self.attempts += 1;
            let failure = match self.attempt(outgoing, permit).await {
                Outcome::Answered(response) => return Ok(response),
                Outcome::LogInAgain(failure) => {
                    self.logged_in_again = true;
                    self.last = Some(failure);
                    continue;
                }
                Outcome::Failed(failure) => failure,
            };
            self.may_have_happened |= !failure.is_refusal();
            let Some(pause) = self.pause_after(&failure) else {
                return Err(self.give_up(failure));
            };
            self.last = Some(failure);
            sleep(pause).await;
        }
    }

    fn time_left(&self) -> Duration {
        self.total.saturating_sub(self.started.elapsed())
    }

    fn limiter(&self) -> &'a Limiter {
        if self.request.is_mutating() {
            &self.client.writes
        } else {
            &self.client.reads
        }
    }

    async fn admit(&self) -> Result<Permit, BudgetExhausted> {
        let longest = self.request.limits().budget_wait;
        let longest = longest
            .unwrap_or(self.client.retry.budget_wait)
            .min(self.time_left());
        let permit = self
            .limiter()
            .acquire(self.request.urgency(), longest)
            .await?;
        if permit.waited() > Duration::ZERO {
            let operation = self.request.operation();
            self.client
                .observer
                .call_delayed(operation, permit.waited());
        }
        Ok(permit)
    }

    async fn prepare(&self) -> Result<Outgoing, CloudError> {
        let client = self.client;
        let mut wire = self.request.to_http_under(&client.base, &client.links)?;
        for (name, value) in &client.headers {
            if !wire.headers().contains_key(name) {
                wire.headers_mut().insert(name, value.clone());
            }
        }
        let url = client.redactor.url(&wire.uri().to_string());
        let mut login = None;
        if let Some(authorizer) = &client.authorizer
            && !self.request.is_anonymous()
        {
            let authorized = timeout(self.time_left(), authorizer.authorize(&mut wire)).await;
            login = Some(match authorized {
                Ok(login) => login.map_err(|error| self.no_credential(error))?,
                Err(_) => return Err(self.out_of_time_at_login()),
            });
        }
        let sent_secrets = SentSecrets::of(self.request, &wire, &client.redactor);
        Ok(Outgoing {
            wire,
            url,
            login,
            sent_secrets,
        })
    }

    async fn attempt(&self, outgoing: Outgoing, mut permit: Permit) -> Outcome {
        let client = self.client;
        log::sending(self.request, &outgoing.wire, &client.redactor);
        let longest = self.request.limits().attempt;
        let longest = longest
            .unwrap_or(client.retry.attempt)
            .min(self.time_left());
        let in_flight = InFlight::new(self);
        let answer = timeout(longest, client.transport.send(outgoing.wire)).await;
        let duration = in_flight.finished();
        permit.finished();
        let (url, sent_secrets) = (outgoing.url, outgoing.sent_secrets);
        let (outcome, status) = match answer {
            Ok(Ok(answer)) => {
                let status = answer.status();
                let outcome = self.classify(answer, &url, sent_secrets, outgoing.login);
                (outcome, Some(status))
            }
            Ok(Err(error)) => {
                let failure = Failure::unanswered(error, &url, &sent_secrets, &client.redactor);
                (Outcome::Failed(failure), None)
            }
            Err(_) => {
                let message = format!("no complete answer within {longest:?}");
                let error = TransportError::new(TransportErrorKind::TimedOut, message);
                let failure = Failure::unanswered(error, &url, &sent_secrets, &client.redactor);
                (Outcome::Failed(failure), None)
            }
        };
        self.report(&outcome, status, duration, &url);
        outcome
    }

    fn classify(
        &self,
        answer: http::Response<Bytes>,
        url: &str,
        sent_secrets: SentSecrets,
        login: Option<LoginId>,
    ) -> Outcome {
        let response = self.received(answer, sent_secrets);
        if let Some(budget) = self.limiter().learn(&response.headers, response.received) {
            self.client.observer.budget_seen(budget);
        }
        let failure = self.error_in(&response, url);
        let kind = failure.as_ref().map(|failure| failure.kind);
        if let Some(ErrorKind::Throttled { retry_after }) = kind {
            self.limiter().refused(retry_after);
        } else {
            self.limiter().served();
        }
        let refused = kind == Some(ErrorKind::Unauthenticated);
        let may_log_in = match (&self.client.authorizer, login) {
            (Some(authorizer), Some(login)) if refused => {
                !self.logged_in_again && authorizer.refused(login)
            }
            (Some(authorizer), Some(login)) => {
                authorizer.accepted(login);
                false
            }
            _ => false,
        };
        match failure {
            None => Outcome::Answered(response),
            Some(failure) if may_log_in => Outcome::LogInAgain(failure),
            Some(failure) => Outcome::Failed(failure),
        }
    }

    fn received(&self, answer: http::Response<Bytes>, sent_secrets: SentSecrets) -> Response {
        let (head, body) = answer.into_parts();
        let mut names = self.client.request_ids.iter();
        let request_id = names.find_map(|name| head.headers.get(name)?.to_str().ok());
        let redactor = &self.client.redactor;
        Response {
            status: head.status,
            request_id: request_id.map(|id| redactor.foreign(id, &sent_secrets, MESSAGE_CHARS)),
            headers: head.headers,
            body,
            operation: self.request.operation().to_owned(),
            received: self.client.clock.now(),
            redactor: redactor.clone(),
            sent_secrets,
            confidential: self.request.is_confidential(),
        }
    }

    /// The error that a response is or contains, if there is one.
    fn error_in(&self, response: &Response, url: &str) -> Option<Failure> {
        let (status, headers) = (response.status, &response.headers);
        let body = if response.body.len() > MAX_ERROR_BODY_BYTES {
            Bytes::new()
        } else {
            response.body.clone()
        };
        let errors = &self.client.errors;
        let problem = if status.is_success() {
            errors.classify_success(headers, &response.body)?
        } else if self.request.accepts(status) {
            return None;
        } else {
            errors.classify(status, headers, &body)
        };
        Some(Failure::answered(&problem, response, body, url))
    }

    fn report(&self, outcome: &Outcome, status: Option<StatusCode>, duration: Duration, url: &str) {
        let error = match outcome {
            Outcome::Answered(_) => None,
            Outcome::Failed(failure) | Outcome::LogInAgain(failure) => Some(failure.kind),
        };
        let record = self.record(status, error, duration);
        self.client.observer.call_finished(&record);
        match outcome {
            Outcome::Answered(response) => log::answered(&record, url, response),
            Outcome::Failed(failure) | Outcome::LogInAgain(failure) => {
                log::failed(
                    &record,
                    url,
                    &failure.message,
                    failure.request_id.as_deref(),
                );
            }
        }
    }

    fn record(
        &self,
        status: Option<StatusCode>,
        error: Option<ErrorKind>,
        duration: Duration,
    ) -> CallRecord<'a> {
        CallRecord {
            operation: self.request.operation(),
            mutating: self.request.is_mutating(),
            priority: self.request.urgency(),
            status: status.map(|status| status.as_u16()),
            error,
            duration,
            attempt: self.attempts,
        }
    }

    fn pause_after(&self, failure: &Failure) -> Option<Duration> {
        let failed = Failed {
            kind: failure.kind,
            retry_hint: failure.retry_hint,
            unsent: failure.unsent,
            idempotent: self.request.is_idempotent(),
            // The attempt before the new login was not the cloud's fault.
            attempts: self.attempts - u32::from(self.logged_in_again),
            retry_after: failure.retry_after,
            time_left: self.time_left(),
        };
        self.client.retry.pause(&failed, &self.client.jitter)
    }

    fn budget_exhausted(mut self, held: BudgetExhausted) -> CloudError {
        let kind = ErrorKind::Throttled {
            retry_after: Some(held.wait),
        };
        match self.last.take() {
            Some(failure) => self.give_up(Failure { kind, ..failure }),
            None => self.with_effect(CloudError::new(
                self.request.operation().to_owned(),
                kind,
                "held back to stay within the cloud's request budget",
            )),
        }
    }

    /// The same error, with what is known about its effect after all attempts.
    fn with_effect(&self, error: CloudError) -> CloudError {
        if self.may_have_happened {
            return error;
        }
        error.without_effect()
    }

    fn give_up(&self, failure: Failure) -> CloudError {
        let details = CallFailure {
            method: self.request.method().clone(),
            url: failure.url,
            status: failure.status,
            code: failure.code,
            body: failure.body,
            headers: failure.headers,
            attempts: self.attempts,
            elapsed: self.started.elapsed(),
            cause: failure.cause,
        };
        let message = match details.answer() {
            Some(answer) => format!("{} ({answer})", failure.message),
            None => failure.message,
        };
        let operation = self.request.operation().to_owned();
        let error = CloudError::new(operation, failure.kind, message)
            .with_details(details.to_string())
            .with_source(details);
        let error = self.with_effect(error);
        match failure.request_id {
            Some(request_id) => error.with_request_id(request_id),
            None => error,
        }
    }

    fn no_credential(&self, error: CloudError) -> CloudError {
        let message = format!("no credential to send: {}", error.cause());
        CloudError::new(self.request.operation().to_owned(), error.kind(), message)
            .with_source(error)
    }

    fn out_of_time_at_login(&self) -> CloudError {
        let message = format!("the login took longer than {:?}", self.total);
        CloudError::new(
            self.request.operation().to_owned(),
            ErrorKind::Timeout,
            message,
        )
    }
}

/// An attempt that was sent. If its future is dropped before the response, that is reported too.
struct InFlight<'c, 'a> {
    call: &'c Call<'a>,
    sent: Instant,
    finished: bool,
}

impl<'c, 'a> InFlight<'c, 'a> {
    fn new(call: &'c Call<'a>) -> Self {
        Self {
            call,
            sent: Instant::now(),
            finished: false,
        }
    }

    fn finished(mut self) -> Duration {
        self.finished = true;
        self.sent.elapsed()
    }
}

impl Drop for InFlight<'_, '_> {
    fn drop(&mut self) {
        if !self.finished {
            let error = Some(ErrorKind::Cancelled);
            let record = self.call.record(None, error, self.sent.elapsed());
            self.call.client.observer.call_finished(&record);
        }
    }
}
