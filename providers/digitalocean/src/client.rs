//! The API: how resources are listed, read and changed.

use std::ops::Deref;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, ProviderContext, ScopeFingerprint};
use cloudkeel_http::{
    Backoff, HeaderAuth, HttpSettings, Limiter, LimiterSettings, Next, Refill, Request,
    RequestRate, Response, RetryPolicy,
};
use cloudkeel_toolkit::{ApiMetrics, Instruments, RestApi, Wiring, json};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::error::refusals;
use crate::id::SCHEME;
use crate::wire::{Account, BalancerRequest, Droplet, LoadBalancer, Region, Tag};

/// How long an answer may take.
const ATTEMPT: Duration = Duration::from_secs(15);
/// How long the metadata service may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// As much as the API gives on one page.
const PER_PAGE: usize = 200;

/// The account, seen with one token.
#[derive(Debug, Clone)]
pub(crate) struct Api(RestApi);

impl Deref for Api {
    type Target = RestApi;

    fn deref(&self) -> &RestApi {
        &self.0
    }
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
        Ok(Self(RestApi::new(client, "/v2", PER_PAGE, next_page)))
    }

    /// Proves that the token is good, and says whose it is. A token that may not read its account may still be good for
    /// droplets; then only the address of the API tells scopes apart.
    pub(crate) async fn scope(&self) -> Result<ScopeFingerprint, CloudError> {
        let endpoint = self.client().base_url();
        let owner = match self.account().await {
            Ok(account) => account.team.map_or(account.uuid, |team| team.uuid),
            Err(error) if error.kind() == ErrorKind::Denied => {
                let droplets = self.list::<Droplet>().set_query("per_page", 1);
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
        let response = self.client().send(Request::get("/v2/account")).await?;
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
            let regions: Vec<Region> = self.all(self.list::<Region>()).await?;
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

    /// Asks whether a load balancer could be created, or changed to one like this.
    pub(crate) async fn validate(
        &self,
        id: Option<&String>,
        body: &BalancerRequest,
        within: Duration,
    ) -> Result<(), CloudError> {
        let request = match id {
            Some(id) => self.replace_request::<LoadBalancer>(id, body),
            None => self.create_request::<LoadBalancer>(body),
        };
        self.send(request.read_only().within(within)).await
    }

    /// Whether a tag is there and on nothing.
    pub(crate) async fn is_unused_tag(&self, tag: &str) -> Result<bool, CloudError> {
        let request = Request::get("/v2/tags/{tag}").param("tag", tag);
        match self.client().send(request).await {
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
    let links = rest.get("links");
    let next = links.and_then(|links| links.pointer("/pages/next"));
    let total = rest.get("meta").and_then(|meta| meta.get("total"));
    let next = json::page_of_link(response, next)?;
    Ok((next, total.and_then(Value::as_u64)))
}
