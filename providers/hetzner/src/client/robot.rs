//! The Robot web service: another account, few requests, no pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, SharedRead};
use cloudkeel_http::{Client, HeaderAuth, Limiter, LimiterSettings, Pace, Request, RetryPolicy};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{ATTEMPT, Wiring};
use crate::config::Config;
use crate::error::RobotRefusals;
use crate::wire::{RobotResetAnswer, RobotServer, RobotServerAnswer};

/// Robot gives each path some hundred requests an hour, and says so only when they are used up.
const PACE: Pace = Pace {
    interval: Duration::from_secs(18),
    burst: 60,
};

/// After a wrong password Robot is left alone for this long: a few in a row lock the caller out.
const AFTER_REFUSED_LOGIN: Duration = Duration::from_mins(10);

/// How many requests are under way at once. Three with a wrong password lock the caller out, and only the
/// first answer shows that it is wrong.
const AT_ONCE: usize = 2;

/// Whether anybody may ask.
#[derive(Clone)]
pub(crate) enum Login {
    /// There are no dedicated servers.
    Off,
    /// There are, but nobody may ask about them.
    NoCredentials,
    /// There are.
    Known(Arc<Robot>),
}

/// The dedicated servers of an account.
pub(crate) struct Robot {
    client: Client,
    keep: Duration,
    /// Only callers that want the list wait for it.
    list: SharedRead<Vec<RobotServer>>,
    under_way: Semaphore,
    /// When the login was refused last.
    refused: Mutex<Option<(Instant, CloudError)>>,
}

impl Robot {
    pub(crate) fn new(
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Option<Self>, CloudError> {
        let Some((user, password)) = &config.robot.login else {
            return Ok(None);
        };
        let refusals = RobotRefusals {
            wait: config.robot.rate_limit_wait,
        };
        let retry = RetryPolicy {
            attempt: ATTEMPT,
            ..RetryPolicy::never()
        };
        let client = wiring
            .builder(&config.robot.endpoint, config, None)?
            .authorizer(HeaderAuth::basic(user, password))
            .error_map(refusals)
            .limiter(Limiter::new(LimiterSettings {
                pace: Some(PACE),
                ..LimiterSettings::default()
            }))
            .retry(retry)
            .observer(Arc::clone(&context.observer))
            .clock(Arc::clone(&context.clock))
            .build()?;
        Ok(Some(Self {
            client,
            keep: config.robot.cache_timeout,
            list: SharedRead::default(),
            under_way: Semaphore::new(AT_ONCE),
            refused: Mutex::default(),
        }))
    }

    /// All servers, as they were not too long ago. A refresh that fails is an error: old news is not
    /// passed off as new.
    pub(crate) async fn servers(&self) -> Result<Arc<Vec<RobotServer>>, CloudError> {
        self.list.no_older_than(self.keep, || self.read_all()).await
    }

    /// All servers, as they are now.
    pub(crate) async fn servers_now(&self) -> Result<Arc<Vec<RobotServer>>, CloudError> {
        self.list.fresh(|| self.read_all()).await
    }

    async fn read_all(&self) -> Result<Vec<RobotServer>, CloudError> {
        let request = Request::get("/server").priority(Priority::Background);
        let answer: Vec<RobotServerAnswer> = match self.fetch(request).await {
            // Robot's way of saying that the account has no servers.
            Err(error) if error.is_not_found() => Vec::new(),
            answer => answer?,
        };
        let mut servers = BTreeMap::new();
        for RobotServerAnswer { server } in answer {
            servers.insert(server.number, server);
        }
        Ok(servers.into_values().collect())
    }

    /// One server. Only [`ErrorKind::NotFound`] says that there is none.
    pub(crate) async fn server(&self, number: u64) -> Result<RobotServer, CloudError> {
        let request = Request::get("/server/{number}")
            .param("number", number)
            .priority(Priority::Urgent);
        let RobotServerAnswer { server } = self.fetch(request).await?;
        if server.number != number {
            let message = format!("asked for server {number}, got server {}", server.number);
            return Err(CloudError::new(
                "GET /server/{number}",
                ErrorKind::Malformed,
                message,
            ));
        }
        Ok(server)
    }

    /// Whether a server runs, in Robot's own words. `None` if Robot cannot tell.
    pub(crate) async fn operating_status(&self, number: u64) -> Option<String> {
        let request = Request::get("/reset/{number}")
            .param("number", number)
            .priority(Priority::Urgent);
        let answer: RobotResetAnswer = self.fetch(request).await.ok()?;
        answer.reset.operating_status
    }

    /// Asks, unless the login was refused a short while ago.
    async fn fetch<T: DeserializeOwned>(&self, request: Request) -> Result<T, CloudError> {
        // It is never closed.
        let _permit = self.under_way.acquire().await;
        match &*self.refused() {
            Some((at, error)) if at.elapsed() < AFTER_REFUSED_LOGIN => return Err(error.retold()),
            _ => {}
        }
        let answer = self.client.fetch(request).await;
        if let Err(error) = &answer
            && error.kind() == ErrorKind::Unauthenticated
        {
            *self.refused() = Some((Instant::now(), error.retold()));
        }
        answer
    }

    fn refused(&self) -> MutexGuard<'_, Option<(Instant, CloudError)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
