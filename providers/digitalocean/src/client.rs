//! The API: how resources are listed, read and changed.

use std::hash::Hash;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, ScopeFingerprint};
use cloudkeel_http::{
    Backoff, Client, HeaderAuth, HttpSettings, Limiter, LimiterSettings, Next, Refill, Request,
    RequestRate, Response, RetryPolicy,
};
use cloudkeel_toolkit::{ApiMetrics, Instruments, Resource, Wiring, json};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::error::refusals;
use crate::id::SCHEME;
use crate::wire::{Account, Droplet, Region, Tag};

/// How long an answer may take.
const ATTEMPT: Duration = Duration::from_secs(15);
/// How long the metadata service may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// As much as the API gives on one page.
pub(crate) const PER_PAGE: usize = 200;

/// The account, seen with one token.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    client: Client,
}

/// All resources of a kind.
pub(crate) fn list<T: Resource>() -> Request {
    Request::get(format!("/v2/{}", T::MANY))
        .query("page", 1)
        .query("per_page", PER_PAGE)
}

fn one<T: Resource>(request: Request, id: &T::Id) -> Request
where
    T::Id: std::fmt::Display,
{
    request.param("id", id)
}

fn path<T: Resource>() -> String {
    format!("/v2/{}/{{id}}", T::MANY)
}

impl Api {
    pub(crate) fn new(
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
        metrics: Option<&ApiMetrics>,
    ) -> Result<Self, CloudError> {
        let rate = config.rate_limit_qps.map(|rate| RequestRate {
            interval: Duration::from_secs_f64(1.0 / rate),
            burst: 1,
        });
        let limiter = Limiter::new(LimiterSettings {
            rate,
            refill: Refill::Gradual,
            reserve_percent: config.reserve_percent,
        });
        let retry = RetryPolicy {
            attempts: 5,
            backoff: Backoff {
                first: Duration::from_secs(1),
                longest: Duration::from_secs(20),
            },
            attempt: ATTEMPT,
            ..RetryPolicy::default()
        };
        let instruments = Instruments {
            dump: false,
            metrics,
        };
        let endpoint = config.endpoint.trim_end_matches('/');
        let client = wiring
            .client(endpoint, context, HttpSettings::from_env()?, instruments)?
            .authorizer(HeaderAuth::bearer(config.token.clone()))
            .error_map(refusals())
            .request_id_header("X-Request-Id")
            .limiter(limiter)
            .retry(retry)
            .build()?;
        Ok(Self { client })
    }

    /// Proves that the token is good, and says whose it is. A token that may not read its account may still be good for
    /// droplets; then only the address of the API tells scopes apart.
    pub(crate) async fn scope(&self) -> Result<ScopeFingerprint, CloudError> {
        let endpoint = self.client.base_url();
        let owner = match self.account().await {
            Ok(account) => account.team.map_or(account.uuid, |team| team.uuid),
            Err(error) if error.kind() == ErrorKind::Denied => {
                let droplets = list::<Droplet>().set_query("per_page", 1);
                self.send(droplets).await?;
                "unknown".to_owned()
            }
            Err(error) => return Err(error),
        };
        Ok(ScopeFingerprint::new(format!(
            "{SCHEME} {endpoint} {owner}"
        )))
    }

    pub(crate) async fn account(&self) -> Result<Account, CloudError> {
        let response = self.client.send(Request::get("/v2/account")).await?;
        json::field(&response, "account")
    }

    /// The region of new load balancers: the configured one, which has to exist, else that of this machine.
    pub(crate) async fn region(
        &self,
        config: &Config,
        wiring: &Wiring,
    ) -> Result<String, CloudError> {
        const OPERATION: &str = "find region";
        if let Some(wanted) = &config.region {
            let regions: Vec<Region> = self.all(list::<Region>()).await?;
            if regions.iter().any(|region| region.slug == *wanted) {
                return Ok(wanted.clone());
            }
            let known: Vec<_> = regions.into_iter().map(|region| region.slug).collect();
            let message = format!("REGION: {wanted:?}: expected one of {}", known.join(", "));
            return Err(CloudError::invalid(OPERATION, message));
        }
        let metadata = wiring.metadata(&config.metadata_endpoint, METADATA_TIMEOUT)?;
        let answer = metadata.send(Request::get("/region")).await;
        let answer = answer.map_err(|error| {
            let message = format!(
                "the metadata service does not say where this machine is: {error}; set REGION (or `region`)"
            );
            CloudError::new(OPERATION, error.kind(), message).with_source(error)
        })?;
        let region = String::from_utf8_lossy(answer.body());
        Ok(region.trim().to_owned())
    }

    /// All resources that a request asks for.
    pub(crate) async fn all<T: Resource>(&self, request: Request) -> Result<Vec<T>, CloudError>
    where
        T::Id: Hash,
    {
        json::all(&self.client, request, next_page).await
    }

    /// One resource. Only [`ErrorKind::NotFound`] says that there is none.
    pub(crate) async fn get<T: Resource>(
        &self,
        id: &T::Id,
        priority: Priority,
    ) -> Result<T, CloudError>
    where
        T::Id: std::fmt::Display,
    {
        let request = one::<T>(Request::get(path::<T>()), id).priority(priority);
        let response = self.client.send(request).await?;
        let found: T = json::one(&response)?;
        if found.id() != *id {
            let (name, other) = (T::ONE, found.id());
            let why = format!("asked for {name} {id}, got {name} {other}");
            return Err(response.malformed(&why));
        }
        Ok(found)
    }

    /// Creates a resource and returns it as the answer shows it. Not repeated after a lost answer: the next
    /// observation shows whether it is there.
    pub(crate) async fn create<T: Resource>(&self, body: &impl Serialize) -> Result<T, CloudError> {
        let request = Request::post(format!("/v2/{}", T::MANY)).json(json::body(body));
        let response = self.client.send(request.priority(Priority::Urgent)).await?;
        json::one(&response)
    }

    /// Replaces a resource and returns it as the answer shows it.
    pub(crate) async fn replace<T: Resource<Id = String>>(
        &self,
        id: &String,
        body: &impl Serialize,
    ) -> Result<T, CloudError> {
        let request = one::<T>(Request::put(path::<T>()), id).json(json::body(body));
        json::one(&self.client.send(request).await?)
    }

    /// Asks whether a resource could be created, or replaced by one like this.
    pub(crate) async fn validate<T: Resource<Id = String>>(
        &self,
        id: Option<&String>,
        body: &impl Serialize,
        within: Duration,
    ) -> Result<(), CloudError> {
        let request = match id {
            Some(id) => one::<T>(Request::put(path::<T>()), id),
            None => Request::post(format!("/v2/{}", T::MANY)),
        };
        let request = request.json(json::body(body)).read_only();
        self.send(request.within(within)).await
    }

    pub(crate) async fn delete<T: Resource<Id = String>>(
        &self,
        id: &String,
    ) -> Result<(), CloudError> {
        self.send(one::<T>(Request::delete(path::<T>()), id)).await
    }

    /// Whether a tag is there and on nothing.
    pub(crate) async fn is_unused_tag(&self, tag: &str) -> Result<bool, CloudError> {
        let request = Request::get("/v2/tags/{tag}").param("tag", tag);
        match self.client.send(request).await {
            Ok(response) => {
                let tag: Tag = json::field(&response, "tag")?;
                Ok(tag.resources.count == 0)
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts a tag on load balancers, and creates it if it is not there.
    pub(crate) async fn tag(&self, tag: &str, balancers: &[String]) -> Result<(), CloudError> {
        let put = || {
            let request = Request::post("/v2/tags/{tag}/resources").param("tag", tag);
            self.send(request.json(tagged(balancers)).idempotent(true))
        };
        match put().await {
            Err(error) if error.is_not_found() => {
                let new = Request::post("/v2/tags").json(json!({"name": tag}));
                self.send(new.idempotent(true)).await?;
                put().await
            }
            put => put,
        }
    }

    pub(crate) async fn delete_tag(&self, tag: &str) -> Result<(), CloudError> {
        self.send(Request::delete("/v2/tags/{tag}").param("tag", tag))
            .await
    }

    async fn send(&self, request: Request) -> Result<(), CloudError> {
        self.client.send(request).await.map(drop)
    }
}

fn tagged(balancers: &[String]) -> Value {
    let resources = balancers.iter();
    let resources =
        resources.map(|id| json!({"resource_id": id, "resource_type": "load_balancer"}));
    json!({"resources": resources.collect::<Vec<_>>()})
}

/// A list goes on behind `links.pages.next`, which is absent on the last page.
fn next_page(
    response: &Response,
    rest: &Map<String, Value>,
) -> Result<(Next, Option<u64>), CloudError> {
    let next = rest
        .get("links")
        .and_then(|links| links.pointer("/pages/next"));
    let next = match next.and_then(Value::as_str) {
        None | Some("") => None,
        Some(link) => {
            let query = link.split_once('?').map_or("", |(_, query)| query);
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let mut pages = pairs.filter(|(name, _)| *name == "page");
            let page = pages.next().and_then(|(_, page)| page.parse().ok());
            let why = || response.malformed(&format!("the next page has no number: {link:?}"));
            Some(page.ok_or_else(why)?)
        }
    };
    let total = rest.get("meta").and_then(|meta| meta.get("total"));
    Ok((Next::page(next), total.and_then(Value::as_u64)))
}
