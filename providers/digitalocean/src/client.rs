//! The API: how resources are listed, read and changed.

use std::ops::Deref;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, ScopeFingerprint};
use cloudkeel_http::{Request, RequestRate};
use cloudkeel_toolkit::{ApiMetrics, Instruments, Paging, RestApi, TagApi, TokenApi, Wiring, json};
use serde_json::{Value, json};

use crate::config::Config;
use crate::error::refusals;
use crate::id::SCHEME;
use crate::wire::{Account, Droplet, LoadBalancer, Region, Tag};

/// As much as the API gives on one page.
const PER_PAGE: usize = 200;
/// Each of them shows all its droplets, and the API fails on pages that become too large.
const BALANCERS_PER_PAGE: usize = 50;
/// Where a list says how it goes on.
const PAGING: Paging = Paging {
    next: "/links/pages/next",
    total: "/meta/total",
};

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
        let api = TokenApi {
            endpoint: &config.endpoint,
            token: &config.token,
            refusals: refusals(),
            request_id_header: "X-Request-Id",
            attempts: 5,
            rate: config.rate_limit_qps.map(RequestRate::per_second),
            reserve_percent: config.reserve_percent,
            instruments: Instruments {
                dump: false,
                metrics,
            },
        };
        let client = wiring.token_client(context, api)?;
        let api = RestApi::new(client, "/v2", PER_PAGE, PAGING);
        Ok(Self(api.with_pages::<LoadBalancer>(BALANCERS_PER_PAGE)))
    }

    /// Proves that the token is good, and says whose it is. A token that may not read its account may still be good for
    /// droplets; then only the address of the API tells scopes apart.
    pub(crate) async fn scope(&self) -> Result<ScopeFingerprint, CloudError> {
        let endpoint = self.client().base_url();
        let account = self.client().send(Request::get("/v2/account")).await;
        let account = account.and_then(|answer| json::field::<Account>(&answer, "account"));
        let owner = match account {
            Ok(account) => account.team.map_or(account.uuid, |team| team.uuid),
            Err(error) if error.kind() == ErrorKind::Denied => {
                let droplets = self.list::<Droplet>().set_query("per_page", 1);
                self.send(droplets).await?;
                "unknown".to_owned()
            }
            Err(error) => return Err(error),
        };
        let scope = format!("{SCHEME} {endpoint} {owner}");
        Ok(ScopeFingerprint::new(scope))
    }

    /// The region of new load balancers: the configured one, which has to exist, else that of this machine.
    pub(crate) async fn region(
        &self,
        config: &Config,
        wiring: &Wiring,
    ) -> Result<String, CloudError> {
        let Some(wanted) = &config.region else {
            let what = "the metadata service does not say where this machine is";
            let hint = "set REGION (or `region`)";
            let url = &config.metadata_endpoint;
            let region = wiring.ask_machine(url, "/region", what, hint).await?;
            return Ok(region.trim().to_owned());
        };
        let regions: Vec<Region> = self.every(Priority::Normal).await?;
        let known: Vec<_> = regions.iter().map(|region| region.slug.as_str()).collect();
        if known.contains(&wanted.as_str()) {
            return Ok(wanted.clone());
        }
        let message = format!("REGION: {wanted:?}: expected one of {}", known.join(", "));
        Err(CloudError::invalid("find region", message))
    }
}

#[async_trait]
impl TagApi for Api {
    const SYNC: &'static str = "digitalocean-tag-sync";

    async fn tag(&self, tag: &str, balancers: &[String]) -> Result<(), CloudError> {
        let put = || {
            let request = Request::post("/v2/tags/{tag}/resources").param("tag", tag);
            let tagged = tagged(balancers.iter().map(String::as_str));
            self.send(request.json(tagged).idempotent(true))
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

    async fn untag(&self, tag: &str, balancer: &str) -> Result<(), CloudError> {
        let request = Request::delete("/v2/tags/{tag}/resources").param("tag", tag);
        self.send(request.json(tagged([balancer]))).await
    }

    async fn delete_tag(&self, tag: &str) -> Result<(), CloudError> {
        self.delete::<Tag>(&tag.to_owned()).await
    }

    async fn is_left(&self, tag: &str) -> Result<bool, CloudError> {
        let tag: Option<Tag> = self.find(&tag.to_owned(), Priority::Normal).await?;
        Ok(tag.is_some_and(|tag| tag.resources.count == 0))
    }
}

fn tagged<'a>(balancers: impl IntoIterator<Item = &'a str>) -> Value {
    let all = balancers.into_iter();
    let all = all.map(|id| json!({"resource_id": id, "resource_type": "load_balancer"}));
    json!({"resources": all.collect::<Vec<_>>()})
}
