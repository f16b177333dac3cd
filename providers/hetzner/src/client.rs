//! The Cloud API: how resources are listed, read and changed.

pub(crate) mod network;
pub(crate) mod requests;
mod robot;

use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext};
use cloudkeel_http::{
    Backoff, Client, HeaderAuth, HttpSettings, Limiter, LimiterSettings, Next, PollSchedule,
    Progress, Refill, Request, Response, RetryPolicy,
};
use cloudkeel_toolkit::{ApiMetrics, Instruments, Resource, Wiring, json};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) use self::robot::{Login, Robot};
use crate::config::Config;
use crate::error::cloud_refusals;
use crate::wire::{Action, ActionError, LoadBalancer};

/// How long an answer may take.
const ATTEMPT: Duration = Duration::from_secs(15);

/// How long an action is waited for before it is checked again later.
const ACTION_TIMEOUT: Duration = Duration::from_secs(15);

/// How an action ended, as far as it was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionState {
    /// Well.
    Done,
    /// Not yet.
    StillRunning,
}

/// The project, seen with one token.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    client: Client,
}

#[derive(Deserialize)]
struct ActionAnswer {
    action: Option<Action>,
}

#[derive(Deserialize)]
struct ActionsAnswer {
    actions: Vec<Action>,
}

impl Api {
    pub(crate) fn new(
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
        metrics: Option<&ApiMetrics>,
    ) -> Result<Self, CloudError> {
        let limiter = Limiter::new(LimiterSettings {
            refill: Refill::Gradual,
            reserve_percent: config.reserve_percent,
            ..LimiterSettings::default()
        });
        let retry = RetryPolicy {
            attempts: 6,
            backoff: Backoff {
                first: Duration::from_secs(1),
                longest: Duration::from_secs(20),
            },
            attempt: ATTEMPT,
            ..RetryPolicy::default()
        };
        let dump = config.debug;
        let client = wiring
            .client(
                &config.endpoint,
                context,
                HttpSettings::from_env()?,
                Instruments { dump, metrics },
            )?
            .authorizer(HeaderAuth::bearer(config.token.clone()))
            .error_map(cloud_refusals())
            .request_id_header("X-Correlation-Id")
            .limiter(limiter)
            .retry(retry)
            .build()?;
        Ok(Self { client })
    }

    /// Where it is.
    pub(crate) fn endpoint(&self) -> String {
        self.client.base_url().to_string()
    }

    /// Proves that the token is good for something.
    pub(crate) async fn prove(&self) -> Result<(), CloudError> {
        self.send(Request::get("/locations")).await
    }

    /// All resources that a request asks for.
    pub(crate) async fn all<T: Resource<Id = u64>>(
        &self,
        request: Request,
    ) -> Result<Vec<T>, CloudError> {
        json::all(&self.client, request, next_page).await
    }

    /// One resource. Only [`ErrorKind::NotFound`] says that there is none.
    pub(crate) async fn get<T: Resource<Id = u64>>(
        &self,
        id: u64,
        priority: Priority,
    ) -> Result<T, CloudError> {
        let request = requests::get::<T>(id).priority(priority);
        let response = self.client.send(request).await?;
        let found: T = json::one(&response)?;
        if found.id() != id {
            let (name, other) = (T::ONE, found.id());
            let why = format!("asked for {name} {id}, got {name} {other}");
            return Err(response.malformed(&why));
        }
        Ok(found)
    }

    /// Sends a request whose answer does not matter.
    pub(crate) async fn send(&self, request: Request) -> Result<(), CloudError> {
        self.client.send(request).await.map(drop)
    }

    /// Creates a balancer. Returns it as the answer shows it.
    pub(crate) async fn create_balancer(
        &self,
        body: Value,
    ) -> Result<(ActionState, LoadBalancer), CloudError> {
        let request = requests::create::<LoadBalancer>(body);
        let response = self.client.send(request).await?;
        let created: LoadBalancer = json::one(&response)?;
        let state = self.wait_for(response.json()?).await?;
        Ok((state, created))
    }

    /// Starts an action, and waits for it for a while.
    pub(crate) async fn act(&self, request: Request) -> Result<ActionState, CloudError> {
        let answer: ActionAnswer = self.client.fetch(request).await?;
        self.wait_for(answer).await
    }

    async fn wait_for(&self, answer: ActionAnswer) -> Result<ActionState, CloudError> {
        let Some(action) = answer.action else {
            return Ok(ActionState::Done);
        };
        if let Progress::Done(()) = progress(&action)? {
            return Ok(ActionState::Done);
        }
        let pause = Duration::from_millis(500);
        let schedule = PollSchedule::every(pause)
            .starting_after(pause)
            .growing_to(Duration::from_secs(2))
            .within(ACTION_TIMEOUT);
        let id = action.id;
        let polled = self
            .client
            .poll_until(requests::action(id), schedule, |answer| {
                let answered: ActionsAnswer = answer.json()?;
                let mut actions = answered.actions.iter();
                match actions.find(|action| action.id == id) {
                    Some(action) => progress(action),
                    None => Err(answer.malformed(&format!("it does not show action {id}"))),
                }
            });
        match polled.await {
            Ok(()) => Ok(ActionState::Done),
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(ActionState::StillRunning),
            Err(error) => Err(error),
        }
    }
}

fn next_page(
    response: &Response,
    rest: &Map<String, Value>,
) -> Result<(Next, Option<u64>), CloudError> {
    let number = |key: &str| {
        let value = rest.get("meta").and_then(|meta| meta.pointer(key));
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| {
                response.malformed(&format!("meta{key} is {value}, which is no number"))
            }),
        }
    };
    let next = number("/pagination/next_page")?;
    Ok((Next::page(next), number("/pagination/total_entries")?))
}

/// How far an action is; its failure is an error of the kind that its code says.
fn progress(action: &Action) -> Result<Progress<()>, CloudError> {
    match (action.status.as_str(), &action.error) {
        ("success", _) => Ok(Progress::Done(())),
        ("running", _) => Ok(Progress::Pending(action.status.clone())),
        (status, error) => {
            let code = error.as_ref().map(|error| error.code.as_str());
            let kind = match code.and_then(|code| cloud_refusals().kind(code)) {
                // Not a wait that took too long: the action itself is over.
                Some(ErrorKind::Timeout) => ErrorKind::Unavailable,
                Some(kind) => kind,
                None => ErrorKind::Other,
            };
            let why = error.as_ref().map(ActionError::text);
            let message = format!(
                "action {} ended as {status}: {}",
                action.id,
                why.unwrap_or_else(|| "no reason given".to_owned())
            );
            let operation = format!("action {}", action.command);
            Err(CloudError::new(operation, kind, message))
        }
    }
}

#[cfg(test)]
mod tests;
