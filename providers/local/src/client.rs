//! The cloud's API: one method per question, answers as wire types.

mod requests;

use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, ScopeFingerprint};
use cloudkeel_http::{
    Client, Dice, ErrorMap as _, HeaderAuth, Limiter, LimiterSettings, Next, Page, Refill, Request,
    Response, RetryPolicy, Transport,
};
use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::error::Refusals;
use crate::wire::{
    Balancer, BalancerAnswer, BalancerPatch, Cluster, List, Listener, ListenersChange, Machine,
    NewBalancer, PROJECT_HEADER, Route, RouteBatch, RouteBatchAnswer, Scope, TargetChange, Volume,
};

/// How many IDs one look-up asks for; their pages hold no more anyway.
const BATCH: usize = 50;

/// How the cloud is reached, where it is not by real connections and real chance.
#[derive(Clone, Default)]
pub struct Wiring {
    /// Another way of sending, such as straight into a simulated cloud.
    pub transport: Option<Arc<dyn Transport>>,
    /// Makes the pauses between retries repeatable.
    pub seed: Option<u64>,
}

/// An answer, and whose project it speaks of.
#[derive(Debug)]
pub(crate) struct Of<T> {
    pub(crate) project: String,
    pub(crate) value: T,
}

/// The cloud, seen with one credential.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    client: Client,
    home: Scope,
}

impl Api {
    /// Connects and learns which project the credential belongs to.
    pub(crate) async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<Self, CloudError> {
        let client = client(config, context, wiring)?;
        let home: Scope = client.fetch(requests::scope()).await?;
        match &config.project {
            Some(wanted) if *wanted != home.project => Err(CloudError::invalid(
                "GET /v1/scope",
                format!(
                    "the token belongs to project {:?}, but {wanted:?} is configured",
                    home.project
                ),
            )),
            _ => Ok(Self { client, home }),
        }
    }

    /// What the credential saw when the provider was built.
    pub(crate) const fn home(&self) -> &Scope {
        &self.home
    }

    /// The fingerprint of a project of this cloud.
    pub(crate) fn fingerprint(&self, project: &str) -> ScopeFingerprint {
        ScopeFingerprint::new(format!("{project} at {}", self.client.base_url()))
    }

    /// What the credential sees now.
    pub(crate) async fn scope(&self) -> Result<Scope, CloudError> {
        self.client.fetch(requests::scope()).await
    }

    /// All machines.
    pub(crate) async fn machines(&self) -> Result<Of<Vec<Machine>>, CloudError> {
        self.list(requests::machines(), |machine: &Machine| machine.id)
            .await
    }

    /// One machine, or `None` if the cloud says that there is no such machine in that project.
    pub(crate) async fn machine(
        &self,
        id: u64,
    ) -> Result<Of<Result<Machine, CloudError>>, CloudError> {
        let request = requests::machine(id).accept(StatusCode::NOT_FOUND);
        let response = self.client.send(request).await?;
        let value = if response.status() == StatusCode::NOT_FOUND {
            let refusal = Refusals.classify(response.status(), response.headers(), response.body());
            let message = refusal.message.unwrap_or_default();
            let error = response.error(refusal.kind, message);
            if !error.is_not_found() {
                return Err(error);
            }
            Err(error)
        } else {
            let machine: Machine = response.json()?;
            if machine.id != id {
                let why = format!("asked for machine {id}, got machine {}", machine.id);
                return Err(response.malformed(&why));
            }
            Ok(machine)
        };
        let project = self.project_of(&response)?;
        Ok(Of { project, value })
    }

    /// Those of these machines that the cloud shows, in as few calls as it allows.
    pub(crate) async fn machines_with_ids(
        &self,
        ids: &[u64],
        priority: Priority,
    ) -> Result<Of<Vec<Machine>>, CloudError> {
        let mut found = Vec::new();
        let mut projects = BTreeSet::new();
        for chunk in ids.chunks(BATCH) {
            let request = requests::machines_with_ids(chunk, priority);
            let part = self.list(request, |machine: &Machine| machine.id).await?;
            found.extend(part.value);
            projects.insert(part.project);
        }
        let project = self.one_project("GET /v1/machines", projects)?;
        let value = found;
        Ok(Of { project, value })
    }

    /// Machines of our own project by `name`, `hostname` or `uuid`.
    pub(crate) async fn machines_with(
        &self,
        key: &'static str,
        value: &str,
    ) -> Result<Of<Vec<Machine>>, CloudError> {
        let request = requests::machines_with(key, value);
        let listed = self.list(request, |machine: &Machine| machine.id).await?;
        let project = self.home.project.clone();
        let value = self.own("GET /v1/machines", listed)?;
        Ok(Of { project, value })
    }

    /// All balancers.
    pub(crate) async fn balancers(&self, priority: Priority) -> Result<Vec<Balancer>, CloudError> {
        self.own_balancers(requests::balancers(priority)).await
    }

    pub(crate) async fn balancers_with_label(
        &self,
        key: &str,
        value: &str,
    ) -> Result<Vec<Balancer>, CloudError> {
        self.own_balancers(requests::balancers_with_label(key, value))
            .await
    }

    pub(crate) async fn balancers_named(&self, name: &str) -> Result<Vec<Balancer>, CloudError> {
        self.own_balancers(requests::balancers_named(name)).await
    }

    async fn own_balancers(&self, request: Request) -> Result<Vec<Balancer>, CloudError> {
        let listed = self
            .list(request, |balancer: &Balancer| balancer.id)
            .await?;
        self.own("GET /v1/balancers", listed)
    }

    /// A balancer by the ID that a person gave.
    pub(crate) async fn balancer(&self, id: &str) -> Result<Balancer, CloudError> {
        self.fetch(requests::balancer(id)).await
    }

    pub(crate) async fn create_balancer(
        &self,
        new: &NewBalancer,
    ) -> Result<BalancerAnswer, CloudError> {
        self.fetch(requests::create_balancer(new)).await
    }

    pub(crate) async fn change_balancer(
        &self,
        id: u64,
        version: u64,
        patch: &BalancerPatch,
    ) -> Result<BalancerAnswer, CloudError> {
        self.fetch(requests::change_balancer(id, version, patch))
            .await
    }

    pub(crate) async fn set_listeners(
        &self,
        id: u64,
        version: u64,
        listeners: &[Listener],
    ) -> Result<BalancerAnswer, CloudError> {
        let listeners = listeners.to_vec();
        let change = ListenersChange { listeners };
        self.fetch(requests::set_listeners(id, version, &change))
            .await
    }

    pub(crate) async fn change_targets(
        &self,
        id: u64,
        version: u64,
        change: &TargetChange,
    ) -> Result<BalancerAnswer, CloudError> {
        self.fetch(requests::change_targets(id, version, change))
            .await
    }

    pub(crate) async fn delete_balancer(
        &self,
        id: u64,
        version: u64,
    ) -> Result<BalancerAnswer, CloudError> {
        self.fetch(requests::delete_balancer(id, version)).await
    }

    pub(crate) async fn routes(&self) -> Result<Vec<Route>, CloudError> {
        let request = requests::list("/v1/routes");
        let listed = self.list(request, |route: &Route| route.id).await?;
        self.own("GET /v1/routes", listed)
    }

    pub(crate) async fn change_routes(
        &self,
        batch: &RouteBatch,
    ) -> Result<RouteBatchAnswer, CloudError> {
        self.fetch(requests::change_routes(batch)).await
    }

    pub(crate) async fn volume(&self, id: &str) -> Result<Volume, CloudError> {
        self.fetch(requests::volume(id)).await
    }

    pub(crate) async fn clusters(&self) -> Result<Vec<Cluster>, CloudError> {
        let request = requests::list("/v1/clusters");
        let name = |cluster: &Cluster| cluster.name.clone();
        self.own("GET /v1/clusters", self.list(request, name).await?)
    }

    /// Sends a request and reads an answer that must come from our own project.
    async fn fetch<T: DeserializeOwned>(&self, request: Request) -> Result<T, CloudError> {
        let operation = request.operation().to_owned();
        let response = self.client.send(request).await?;
        let project = self.project_of(&response)?;
        let value = response.json()?;
        self.own(&operation, Of { project, value })
    }

    /// Reads all pages of a list. Complete, or an error.
    async fn list<T: DeserializeOwned, K: Hash + Eq>(
        &self,
        request: Request,
        key: impl Fn(&T) -> K,
    ) -> Result<Of<Vec<T>>, CloudError> {
        let operation = request.operation().to_owned();
        let projects = Mutex::new(BTreeSet::new());
        let read = |response: &Response| {
            let project = self.project_of(response)?;
            let mut projects = projects.lock().unwrap_or_else(PoisonError::into_inner);
            projects.insert(project);
            let list: List<T> = response.json()?;
            // Numbers, not links: the pager then notices when things slip between pages.
            let after = list.page.number.checked_add(1);
            let next = match list.page.next {
                Some(_) => Some(after.ok_or_else(|| response.malformed("no page can follow"))?),
                None => None,
            };
            Ok(Page {
                items: list.items,
                next: Next::page(next),
                total: Some(list.page.total),
            })
        };
        let listing = self.client.pages(request).collect(key, read).await?;
        let projects = projects
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(Of {
            project: self.one_project(&operation, projects)?,
            value: listing.items,
        })
    }

    /// Whose project an answer speaks of.
    fn project_of(&self, response: &Response) -> Result<String, CloudError> {
        if !self.home.features.tells_project {
            return Ok(self.home.project.clone());
        }
        response
            .header(PROJECT_HEADER)
            .map(str::to_owned)
            .ok_or_else(|| response.malformed("it does not say whose project it speaks of"))
    }

    /// Pages of several projects are no list of anything.
    fn one_project(
        &self,
        operation: &str,
        projects: BTreeSet<String>,
    ) -> Result<String, CloudError> {
        let mut projects = projects.into_iter();
        match (projects.next(), projects.next()) {
            (Some(project), None) => Ok(project),
            (None, _) => Ok(self.home.project.clone()),
            (Some(one), Some(other)) => Err(CloudError::new(
                operation.to_owned(),
                ErrorKind::Incomplete,
                format!("its pages come from different projects, {one:?} and {other:?}"),
            )),
        }
    }

    /// Refuses answers about another project than the one that the provider was built for: what is
    /// missing there says nothing about what is missing here.
    fn own<T>(&self, operation: &str, answer: Of<T>) -> Result<T, CloudError> {
        let home = &self.home.project;
        if answer.project == *home {
            return Ok(answer.value);
        }
        let message = format!(
            "the answer is about project {:?}: the token belonged to {home:?} before",
            answer.project
        );
        let operation = operation.to_owned();
        Err(CloudError::new(operation, ErrorKind::Denied, message))
    }
}

fn client(
    config: &Config,
    context: &ProviderContext,
    wiring: Wiring,
) -> Result<Client, CloudError> {
    let limiter = Limiter::new(LimiterSettings {
        refill: Refill::Gradual,
        ..LimiterSettings::default()
    });
    let retry = RetryPolicy {
        attempt: config.timeout,
        total: config.timeout * 4,
        ..RetryPolicy::default()
    };
    let mut builder = Client::builder(config.endpoint.clone())
        .authorizer(HeaderAuth::bearer(config.token.clone()))
        .error_map(Refusals)
        .limiter(limiter)
        .retry(retry)
        .observer(Arc::clone(&context.observer))
        .clock(Arc::clone(&context.clock));
    if let Some(transport) = wiring.transport {
        builder = builder.transport(transport);
    }
    if let Some(seed) = wiring.seed {
        builder = builder.dice(Dice::seeded(seed));
    }
    builder.build()
}
