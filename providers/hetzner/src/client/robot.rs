//! The Robot web service: another account, few requests, no pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, Secret};
use cloudkeel_http::{
    Client, HeaderAuth, HttpSettings, Limiter, LimiterSettings, Request, RequestRate, RetryPolicy,
};
use cloudkeel_toolkit::{Instruments, LoginGuard, SharedRead, Wiring};
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::error::robot_refusals;
use crate::wire::{RobotResetAnswer, RobotServer, RobotServerAnswer};

/// How long an answer may take.
const ATTEMPT: Duration = Duration::from_secs(15);

/// Robot gives each path some hundred requests an hour, and says so only when they are used up.
const RATE_LIMIT: RequestRate = RequestRate {
    interval: Duration::from_secs(18),
    burst: 60,
};

/// After a wrong password Robot is left alone for this long: a few in a row lock the caller out.
const AFTER_REFUSED_LOGIN: Duration = Duration::from_mins(10);

/// How many requests are under way at once. Three with a wrong password lock the caller out, and only the
/// first answer shows that it is wrong.
const MAX_IN_FLIGHT: usize = 2;

/// Whether there are dedicated servers, and whether Robot can be asked about them.
#[derive(Clone)]
pub(crate) enum Login {
    /// There are none.
    Off,
    /// There are, but there is no credential.
    NoCredentials,
    /// There are.
    Known(Arc<Robot>),
}

impl Login {
    pub(crate) fn new(
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        match &config.robot.login {
            _ if !config.robot.enabled => Ok(Self::Off),
            Some(login) => {
                let robot = Robot::new(login, config, context, wiring)?;
                Ok(Self::Known(Arc::new(robot)))
            }
            None => {
                tracing::info!("no Robot credentials, dedicated servers are used as targets only");
                Ok(Self::NoCredentials)
            }
        }
    }
}

/// The dedicated servers of an account.
pub(crate) struct Robot {
    client: Client,
    keep: Duration,
    /// Only callers that want the list wait for it.
    list: SharedRead<Vec<RobotServer>>,
    guard: LoginGuard,
}

impl Robot {
    fn new(
        (user, password): &(String, Secret),
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        let instruments = Instruments {
            dump: config.debug,
            metrics: None,
        };
        let retry = RetryPolicy {
            attempt: ATTEMPT,
            ..RetryPolicy::never()
        };
        let client = wiring
            .client(
                &config.robot.endpoint,
                context,
                HttpSettings::from_env()?,
                instruments,
            )?
            .authorizer(HeaderAuth::basic(user, password))
            .error_map(robot_refusals(config.robot.rate_limit_wait))
            .limiter(Limiter::new(LimiterSettings {
                rate: Some(RATE_LIMIT),
                ..LimiterSettings::default()
            }))
            .retry(retry)
            .build()?;
        Ok(Self {
            client,
            keep: config.robot.cache_timeout,
            list: SharedRead::default(),
            guard: LoginGuard::new(AFTER_REFUSED_LOGIN, MAX_IN_FLIGHT),
        })
    }

    /// All servers, as they were not too long ago. A refresh that fails is an error: an old list does not
    /// stand in for it.
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
        let request = Request::get("/server/{number}").param("number", number);
        let request = request.priority(Priority::Urgent);
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

    /// Whether a server runs, in Robot's own words. `None` if Robot does not know.
    pub(crate) async fn operating_status(&self, number: u64) -> Option<String> {
        let request = Request::get("/reset/{number}").param("number", number);
        let request = request.priority(Priority::Urgent);
        let answer: RobotResetAnswer = self.fetch(request).await.ok()?;
        answer.reset.operating_status
    }

    async fn fetch<T: DeserializeOwned>(&self, request: Request) -> Result<T, CloudError> {
        self.guard.call(|| self.client.fetch(request)).await
    }
}
