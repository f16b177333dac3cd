//! The client library of the example's cloud: what a vendor's SDK is elsewhere.
//!
//! If your cloud has none, or one that is too heavy, this is how to write it: requests are values, and the
//! engine in `crates/http` sends them, tries again, keeps the budget and reads lists to the last page. The
//! cloud is the simulated one, of which this library shows a small part: machines, TCP balancers, routes.

mod types;

use std::sync::Arc;

use cloudkeel_api::{CloudError, ErrorKind, ProviderContext, ScopeFingerprint, Secret};
use cloudkeel_http::{
    Client, ClientBuilder, CodeTable, HeaderAuth, Limiter, Next, Page, Request, Response, Transport,
};
pub use cloudkeel_provider_local::wire::{
    AddressScope, Hop, Machine, MachineState, NewRoute, Route,
};
use cloudkeel_provider_local::wire::{List, Scope};
use cloudkeel_toolkit::json;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::types::Balancer;
use self::types::{LabelChange, ListenerChange};

/// The cloud, seen with one credential.
#[derive(Debug, Clone)]
pub struct Cloud(Client);

impl Cloud {
    /// Prepares a client. Nothing is sent yet.
    pub fn new(
        endpoint: String,
        token: Secret,
        context: &ProviderContext,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Self, CloudError> {
        let refusals = CodeTable::new("/error/code", "/error/message")
            .on("not_found", ErrorKind::NotFound)
            .on("locked", ErrorKind::Busy)
            .on("already_exists", ErrorKind::Conflict)
            .on("limit_exceeded", ErrorKind::LimitExceeded);
        let client = Client::builder(endpoint)
            .authorizer(HeaderAuth::bearer(token))
            .error_map(refusals)
            .limiter(Limiter::default())
            .observer(Arc::clone(&context.observer));
        let client = transport.into_iter().fold(client, ClientBuilder::transport);
        Ok(Self(client.build()?))
    }

    /// Which project the credential belongs to.
    pub async fn scope(&self) -> Result<ScopeFingerprint, CloudError> {
        let scope: Scope = self.0.fetch(Request::get("/v1/scope")).await?;
        Ok(ScopeFingerprint::new(scope.project))
    }

    /// All machines.
    pub async fn machines(&self) -> Result<Vec<Machine>, CloudError> {
        self.list("/v1/machines", |machine: &Machine| machine.id)
            .await
    }

    /// One machine, or `NotFound`.
    pub async fn machine(&self, id: u64) -> Result<Machine, CloudError> {
        let request = Request::get("/v1/machines/{id}").param("id", id);
        self.0.fetch(request).await
    }

    /// All balancers.
    pub async fn balancers(&self) -> Result<Vec<Balancer>, CloudError> {
        let all = self.list("/v1/balancers", types::id).await?;
        Ok(all.into_iter().map(Balancer::from).collect())
    }

    /// Makes a balancer. Names are unique: a second one of a name is a `Conflict`.
    pub async fn create_balancer(&self, new: &Balancer) -> Result<(), CloudError> {
        self.change(Request::post("/v1/balancers"), &new.as_new())
            .await
    }

    /// Changes what differs between the balancer as it is and as it should be.
    pub async fn update_balancer(
        &self,
        have: &Balancer,
        want: &Balancer,
    ) -> Result<(), CloudError> {
        let request = |request: Request| request.param("id", have.id);
        if have.labels != want.labels {
            let patch = request(Request::patch("/v1/balancers/{id}"));
            let labels = &want.labels;
            self.change(patch, &LabelChange { labels }).await?;
        }
        if have.ports != want.ports {
            let put = request(Request::put("/v1/balancers/{id}/listeners"));
            let listeners = want.listeners();
            self.change(put, &ListenerChange { listeners }).await?;
        }
        if have.targets != want.targets {
            let post = request(Request::post("/v1/balancers/{id}/targets"));
            self.change(post, &have.target_change(want)).await?;
        }
        Ok(())
    }

    /// Takes a balancer down. One that is not there is `NotFound`.
    pub async fn delete_balancer(&self, id: u64) -> Result<(), CloudError> {
        let request = Request::delete("/v1/balancers/{id}").param("id", id);
        self.0.send(request).await.map(|_| ())
    }

    /// All routes.
    pub async fn routes(&self) -> Result<Vec<Route>, CloudError> {
        self.list("/v1/routes", |route: &Route| route.id).await
    }

    /// Makes a route. Destinations are unique: a second one is a `Conflict`.
    pub async fn create_route(&self, new: &NewRoute) -> Result<(), CloudError> {
        self.change(Request::post("/v1/routes"), new).await
    }

    /// Removes a route. One that is not there is no error.
    pub async fn delete_route(&self, id: &str) -> Result<(), CloudError> {
        let request = Request::delete("/v1/routes/{id}").param("id", id);
        match self.0.send(request).await {
            Err(error) if error.is_not_found() => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    async fn change<B: Serialize>(&self, request: Request, body: &B) -> Result<(), CloudError> {
        let request = request.json(json::body(body));
        self.0.send(request).await.map(|_| ())
    }

    /// Everything on a list: complete, or an error.
    async fn list<T: DeserializeOwned>(
        &self,
        path: &'static str,
        id: fn(&T) -> u64,
    ) -> Result<Vec<T>, CloudError> {
        let first = Request::get(path).query("page", 1);
        let pages = self.0.pages(first);
        let read = |response: &Response| {
            let List { items, page } = response.json()?;
            Ok(Page {
                items,
                next: Next::page(page.next.map(|_| page.number.saturating_add(1))),
                total: Some(page.total),
            })
        };
        Ok(pages.collect(id, read).await?.items)
    }
}
