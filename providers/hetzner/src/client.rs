//! The Cloud API: one method per question, answers as wire types.

mod dump;
pub(crate) mod requests;
mod robot;

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext};
use cloudkeel_http::{
    Backoff, Client, ClientBuilder, Dice, HeaderAuth, HttpSettings, HyperTransport, Limiter,
    LimiterSettings, Next, Page, PollSchedule, Progress, Refill, Request, RetryPolicy, Transport,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::dump::Dumping;
pub(crate) use self::robot::{Login, Robot};
use crate::config::Config;
use crate::error::{CloudRefusals, meaning};
use crate::metrics::{ApiMetrics, Counting};
use crate::wire::{Action, BalancerType, Certificate, List, LoadBalancer, Network, Route, Server};

/// How long an answer may take.
const ATTEMPT: Duration = Duration::from_secs(15);

/// How long work is waited for before somebody looks again later.
const PATIENCE: Duration = Duration::from_secs(15);

/// How the cloud is reached, where it is not by real connections and real chance.
#[derive(Clone, Default)]
pub struct Wiring {
    /// Another way of sending, such as straight into an emulator.
    pub transport: Option<Arc<dyn Transport>>,
    /// The same for what this machine asks about itself.
    pub metadata: Option<Arc<dyn Transport>>,
    /// Makes the pauses between retries repeatable.
    pub seed: Option<u64>,
}

impl Wiring {
    /// A builder that sends this way.
    pub(super) fn builder(
        &self,
        url: &str,
        config: &Config,
        metrics: Option<&ApiMetrics>,
    ) -> Result<ClientBuilder, CloudError> {
        let mut transport: Arc<dyn Transport> = match &self.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(HyperTransport::new(HttpSettings::from_env()?)?),
        };
        if config.debug {
            transport = Arc::new(Dumping(transport));
        }
        if let Some(metrics) = metrics {
            transport = Arc::new(Counting {
                inner: transport,
                metrics: metrics.clone(),
                prefix: url.parse::<http::Uri>().map_or_else(
                    |_| String::new(),
                    |uri| uri.path().trim_end_matches('/').to_owned(),
                ),
            });
        }
        let mut builder = Client::builder(url).transport(transport);
        if let Some(seed) = self.seed {
            builder = builder.dice(Dice::seeded(seed));
        }
        Ok(builder)
    }
}

/// How work ended, as far as it was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
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
        let client = wiring
            .builder(&config.endpoint, config, metrics)?
            .authorizer(HeaderAuth::bearer(config.token.clone()))
            .error_map(CloudRefusals)
            .request_id_header("X-Correlation-Id")
            .limiter(limiter)
            .retry(retry)
            .observer(Arc::clone(&context.observer))
            .clock(Arc::clone(&context.clock))
            .build()?;
        Ok(Self { client })
    }

    /// Where it is.
    pub(crate) fn endpoint(&self) -> String {
        self.client.base_url().to_string()
    }

    /// Proves that the token is good for something.
    pub(crate) async fn prove(&self) -> Result<(), CloudError> {
        self.client.send(requests::locations()).await.map(drop)
    }

    pub(crate) async fn servers(&self) -> Result<Vec<Server>, CloudError> {
        self.list(requests::servers(), "servers", |server: &Server| server.id)
            .await
    }

    /// One server. Only [`ErrorKind::NotFound`] says that there is none.
    pub(crate) async fn server(&self, id: u64) -> Result<Server, CloudError> {
        let response = self.client.send(requests::server(id)).await?;
        let server: Server = field(&response, "server")?;
        if server.id != id {
            let why = format!("asked for server {id}, got server {}", server.id);
            return Err(response.malformed(&why));
        }
        Ok(server)
    }

    pub(crate) async fn servers_named(&self, name: &str) -> Result<Vec<Server>, CloudError> {
        let request = requests::servers_named(name);
        self.list(request, "servers", |server: &Server| server.id)
            .await
    }

    pub(crate) async fn network(&self, id: u64) -> Result<Network, CloudError> {
        field(&self.client.send(requests::network(id)).await?, "network")
    }

    pub(crate) async fn networks_named(&self, name: &str) -> Result<Vec<Network>, CloudError> {
        let request = requests::named("/networks", name);
        self.list(request, "networks", |network: &Network| network.id)
            .await
    }

    pub(crate) async fn balancers(
        &self,
        priority: Priority,
    ) -> Result<Vec<LoadBalancer>, CloudError> {
        self.list_balancers(requests::list("/load_balancers").priority(priority))
            .await
    }

    pub(crate) async fn balancers_with(
        &self,
        label: &str,
        value: &str,
    ) -> Result<Vec<LoadBalancer>, CloudError> {
        self.list_balancers(requests::labelled("/load_balancers", label, value))
            .await
    }

    pub(crate) async fn balancers_named(
        &self,
        name: &str,
    ) -> Result<Vec<LoadBalancer>, CloudError> {
        self.list_balancers(requests::named("/load_balancers", name))
            .await
    }

    async fn list_balancers(&self, request: Request) -> Result<Vec<LoadBalancer>, CloudError> {
        let key = |balancer: &LoadBalancer| balancer.id;
        self.list(request, "load_balancers", key).await
    }

    pub(crate) async fn balancer(&self, id: u64) -> Result<LoadBalancer, CloudError> {
        let response = self.client.send(requests::balancer(id)).await?;
        field(&response, "load_balancer")
    }

    pub(crate) async fn balancer_types(&self) -> Result<Vec<BalancerType>, CloudError> {
        let request = requests::list("/load_balancer_types");
        let key = |kind: &BalancerType| kind.id;
        self.list(request, "load_balancer_types", key).await
    }

    pub(crate) async fn certificates(
        &self,
        priority: Priority,
    ) -> Result<Vec<Certificate>, CloudError> {
        self.list_certificates(requests::list("/certificates").priority(priority))
            .await
    }

    pub(crate) async fn certificates_named(
        &self,
        name: &str,
    ) -> Result<Vec<Certificate>, CloudError> {
        self.list_certificates(requests::named("/certificates", name))
            .await
    }

    pub(crate) async fn certificates_with(
        &self,
        label: &str,
        value: &str,
    ) -> Result<Vec<Certificate>, CloudError> {
        self.list_certificates(requests::labelled("/certificates", label, value))
            .await
    }

    async fn list_certificates(&self, request: Request) -> Result<Vec<Certificate>, CloudError> {
        let key = |certificate: &Certificate| certificate.id;
        self.list(request, "certificates", key).await
    }

    pub(crate) async fn create_certificate(&self, body: Value) -> Result<(), CloudError> {
        let request = requests::create("/certificates", body);
        self.client.send(request).await.map(drop)
    }

    /// Makes a balancer. Returns it as the answer shows it.
    pub(crate) async fn create_balancer(
        &self,
        body: Value,
    ) -> Result<(Ended, LoadBalancer), CloudError> {
        let request = requests::create("/load_balancers", body);
        let response = self.client.send(request).await?;
        let made: LoadBalancer = field(&response, "load_balancer")?;
        let ended = self.wait_for_answer(response.json()?).await?;
        Ok((ended, made))
    }

    pub(crate) async fn update_balancer(&self, id: u64, body: Value) -> Result<(), CloudError> {
        let request = requests::update_balancer(id, body);
        self.client.send(request).await.map(drop)
    }

    pub(crate) async fn change_balancer(
        &self,
        id: u64,
        verb: &str,
        body: Option<Value>,
    ) -> Result<Ended, CloudError> {
        self.act(requests::balancer_action(id, verb, body)).await
    }

    pub(crate) async fn delete_balancer(&self, id: u64) -> Result<(), CloudError> {
        let request = requests::delete_balancer(id);
        self.client.send(request).await.map(drop)
    }

    pub(crate) async fn add_route(&self, network: u64, route: &Route) -> Result<Ended, CloudError> {
        self.act(requests::route_action(network, "add_route", route))
            .await
    }

    pub(crate) async fn delete_route(
        &self,
        network: u64,
        route: &Route,
    ) -> Result<Ended, CloudError> {
        self.act(requests::route_action(network, "delete_route", route))
            .await
    }

    /// Starts some work, and waits for it for a while.
    async fn act(&self, request: Request) -> Result<Ended, CloudError> {
        let answer: ActionAnswer = self.client.fetch(request).await?;
        self.wait_for_answer(answer).await
    }

    async fn wait_for_answer(&self, answer: ActionAnswer) -> Result<Ended, CloudError> {
        match answer.action {
            Some(action) => self.wait_for(action).await,
            None => Ok(Ended::Done),
        }
    }

    async fn wait_for(&self, action: Action) -> Result<Ended, CloudError> {
        if let Progress::Done(()) = progress(&action)? {
            return Ok(Ended::Done);
        }
        let pause = Duration::from_millis(500);
        let schedule = PollSchedule::every(pause)
            .starting_after(pause)
            .growing_to(Duration::from_secs(2))
            .within(PATIENCE);
        let id = action.id;
        let looked = self
            .client
            .poll_until(requests::action(id), schedule, |answer| {
                let answered: ActionsAnswer = answer.json()?;
                let mut actions = answered.actions.iter();
                match actions.find(|action| action.id == id) {
                    Some(action) => progress(action),
                    None => Err(answer.malformed(&format!("it does not show action {id}"))),
                }
            });
        match looked.await {
            Ok(()) => Ok(Ended::Done),
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(Ended::StillRunning),
            Err(error) => Err(error),
        }
    }

    /// Reads all pages of a list. Complete, or an error.
    async fn list<T: DeserializeOwned>(
        &self,
        request: Request,
        name: &'static str,
        key: impl Fn(&T) -> u64,
    ) -> Result<Vec<T>, CloudError> {
        let read = |response: &cloudkeel_http::Response| {
            let mut list: List = response.json()?;
            let items = list.items(name).map_err(|why| response.malformed(&why))?;
            let pagination = list.meta.map(|meta| meta.pagination);
            Ok(Page {
                items,
                next: Next::page(pagination.and_then(|pagination| pagination.next_page)),
                total: pagination.and_then(|pagination| pagination.total_entries),
            })
        };
        Ok(self.client.pages(request).collect(key, read).await?.items)
    }
}

/// How far an action is; its failure is an error of the kind that its code says.
fn progress(action: &Action) -> Result<Progress<()>, CloudError> {
    match (action.status.as_str(), &action.error) {
        ("success", _) => Ok(Progress::Done(())),
        ("running", _) => Ok(Progress::Pending(action.status.clone())),
        (status, trouble) => {
            let code = trouble.as_ref().map(|trouble| trouble.code.as_str());
            let kind = match code.and_then(meaning) {
                // Not a wait that took too long: the work itself is over.
                Some((ErrorKind::Timeout, _)) => ErrorKind::Unavailable,
                Some((kind, _)) => kind,
                None => ErrorKind::Other,
            };
            let why = trouble.as_ref().map(crate::wire::Trouble::text);
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

/// The one thing of an answer.
fn field<T: DeserializeOwned>(
    response: &cloudkeel_http::Response,
    name: &'static str,
) -> Result<T, CloudError> {
    let mut answer: serde_json::Map<String, Value> = response.json()?;
    let value = answer.remove(name);
    let value = value.ok_or_else(|| response.malformed(&format!("it has no {name:?}")))?;
    serde_json::from_value(value).map_err(|error| response.malformed(&format!("{name}: {error}")))
}

#[cfg(test)]
mod tests;
