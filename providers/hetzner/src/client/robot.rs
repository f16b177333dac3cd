//! The Robot web service: another account, few requests, no pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext};
use cloudkeel_http::{Client, HeaderAuth, Limiter, LimiterSettings, Pace, Request, RetryPolicy};
use tokio::sync::Mutex;
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
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    listed: Option<(Instant, Arc<Vec<RobotServer>>)>,
    refused: Option<(Instant, CloudError)>,
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
            last: Mutex::default(),
        }))
    }

    /// All servers, as they were not too long ago. A refresh that fails is an error: old news is not
    /// passed off as new.
    pub(crate) async fn servers(&self) -> Result<Arc<Vec<RobotServer>>, CloudError> {
        self.no_older_than(self.keep).await
    }

    /// All servers, as they are now.
    pub(crate) async fn servers_now(&self) -> Result<Arc<Vec<RobotServer>>, CloudError> {
        self.no_older_than(Duration::ZERO).await
    }

    async fn no_older_than(&self, age: Duration) -> Result<Arc<Vec<RobotServer>>, CloudError> {
        let mut last = self.last.lock().await;
        if let Some((at, listed)) = &last.listed
            && at.elapsed() < age
        {
            return Ok(Arc::clone(listed));
        }
        last.check_refused()?;
        let began = Instant::now();
        let request = Request::get("/server").priority(Priority::Background);
        let answer: Result<Vec<RobotServerAnswer>, _> = self.client.fetch(request).await;
        let answer = match answer {
            Ok(answer) => answer,
            // Robot's way of saying that the account has no servers.
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(last.note(error)),
        };
        let mut servers = BTreeMap::new();
        for RobotServerAnswer { server } in answer {
            servers.insert(server.number, server);
        }
        let listed = Arc::new(servers.into_values().collect::<Vec<_>>());
        last.listed = Some((began, Arc::clone(&listed)));
        Ok(listed)
    }

    /// One server. Only [`ErrorKind::NotFound`] says that there is none.
    pub(crate) async fn server(&self, number: u64) -> Result<RobotServer, CloudError> {
        let mut last = self.last.lock().await;
        last.check_refused()?;
        let request = Request::get("/server/{number}")
            .param("number", number)
            .priority(Priority::Urgent);
        let answer: Result<RobotServerAnswer, _> = self.client.fetch(request).await;
        let server = answer.map_err(|error| last.note(error))?.server;
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
        let mut last = self.last.lock().await;
        last.check_refused().ok()?;
        let request = Request::get("/reset/{number}")
            .param("number", number)
            .priority(Priority::Urgent);
        let answer: Result<RobotResetAnswer, _> = self.client.fetch(request).await;
        let answer = answer.map_err(|error| last.note(error)).ok()?;
        answer.reset.operating_status
    }
}

impl Last {
    fn check_refused(&self) -> Result<(), CloudError> {
        match &self.refused {
            Some((at, error)) if at.elapsed() < AFTER_REFUSED_LOGIN => Err(error.retold()),
            _ => Ok(()),
        }
    }

    fn note(&mut self, error: CloudError) -> CloudError {
        if error.kind() == ErrorKind::Unauthenticated {
            self.refused = Some((Instant::now(), error.retold()));
        }
        error
    }
}
