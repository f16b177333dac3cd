//! The Cloud API: how resources are listed, read and changed.

pub(crate) mod network;
pub(crate) mod requests;
mod robot;

use std::ops::Deref;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext};
use cloudkeel_http::{PollSchedule, Progress, Request};
use cloudkeel_toolkit::{
    ApiMetrics, Instruments, Paging, Resource, RestApi, TokenApi, Wiring, json,
};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::robot::{Login, Robot};
use crate::config::Config;
use crate::error::cloud_refusals;
use crate::wire::{Action, ActionError, LoadBalancer};

/// As much as the API gives on one page.
const PER_PAGE: usize = 50;

/// How long an action is waited for before it is checked again later.
const ACTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Where a list says how it goes on.
const PAGING: Paging = Paging {
    next: "/meta/pagination/next_page",
    total: "/meta/pagination/total_entries",
};

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
pub(crate) struct Api(RestApi);

impl Deref for Api {
    type Target = RestApi;

    fn deref(&self) -> &RestApi {
        &self.0
    }
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
        let api = TokenApi {
            endpoint: &config.endpoint,
            token: &config.token,
            refusals: cloud_refusals(),
            request_id_header: "X-Correlation-Id",
            attempts: 6,
            rate: None,
            reserve_percent: config.reserve_percent,
            instruments: Instruments {
                dump: config.debug,
                metrics,
            },
        };
        let client = wiring.token_client(context, api)?;
        Ok(Self(RestApi::new(client, "", PER_PAGE, PAGING)))
    }

    /// Where it is.
    pub(crate) fn endpoint(&self) -> String {
        self.client().base_url().to_string()
    }

    /// Proves that the token is good for something.
    pub(crate) async fn prove(&self) -> Result<(), CloudError> {
        self.send(Request::get("/locations")).await
    }

    /// Asks for those of a name.
    pub(crate) fn named<T: Resource>(&self, name: &str) -> Request {
        self.list::<T>().query("name", name)
    }

    /// Asks for those with a label.
    pub(crate) fn labelled<T: Resource>(&self, label: &str, value: &str) -> Request {
        let selector = format!("{label}={value}");
        self.list::<T>().query("label_selector", selector)
    }

    /// Creates a balancer. Returns it as the answer shows it.
    pub(crate) async fn create_balancer(
        &self,
        body: Value,
    ) -> Result<(ActionState, LoadBalancer), CloudError> {
        let request = self.create_request::<LoadBalancer>(&body);
        let request = request.priority(Priority::Urgent);
        let response = self.client().send(request).await?;
        let created: LoadBalancer = json::one(&response)?;
        let state = self.wait_for(response.json()?).await?;
        Ok((state, created))
    }

    /// Starts an action, and waits for it for a while.
    pub(crate) async fn act(&self, request: Request) -> Result<ActionState, CloudError> {
        let answer: ActionAnswer = self.client().fetch(request).await?;
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
        let client = self.client();
        let polled = client.poll_until(requests::action(id), schedule, |answer| {
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
