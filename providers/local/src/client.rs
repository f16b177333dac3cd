//! The cloud's API: how answers are read, and whose project they are about.

pub(crate) mod requests;

use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, ScopeFingerprint};
use cloudkeel_http::{
    Client, ErrorMap as _, HeaderAuth, HttpSettings, Limiter, LimiterSettings, Next, Page, Refill,
    Request, Response, RetryPolicy,
};
use cloudkeel_toolkit::{HasId, Instruments, LookupError, Session, Wiring};
use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::error::refusals;
use crate::wire::{List, Machine, PROJECT_HEADER, Scope};

/// How many IDs one look-up asks for; pages hold no more anyway.
pub(crate) const BATCH: usize = 50;

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
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        let retry = RetryPolicy {
            attempt: config.timeout,
            total: config.timeout * 4,
            ..RetryPolicy::default()
        };
        let http = HttpSettings::from_env()?;
        let client = wiring
            .client(&config.endpoint, context, http, Instruments::default())?
            .authorizer(HeaderAuth::bearer(config.token.clone()))
            .error_map(refusals())
            .limiter(Limiter::new(LimiterSettings {
                refill: Refill::Gradual,
                ..LimiterSettings::default()
            }))
            .retry(retry)
            .build()?;
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

    /// One machine. `NotFound` only if the cloud says that our project has no such machine.
    pub(crate) async fn machine(&self, id: u64) -> Result<Machine, LookupError> {
        let request = requests::machine(id).accept(StatusCode::NOT_FOUND);
        let response = self.client.send(request).await?;
        if response.status() == StatusCode::NOT_FOUND {
            let (status, headers) = (response.status(), response.headers());
            let refusal = refusals().classify(status, headers, response.body());
            let error = response.error(refusal.kind, refusal.message.unwrap_or_default());
            if error.is_not_found() {
                self.check_home(&self.project_of(&response)?)?;
            }
            return Err(error.into());
        }
        let machine: Machine = response.json()?;
        if machine.id != id {
            let why = format!("asked for machine {id}, got machine {}", machine.id);
            return Err(response.malformed(&why).into());
        }
        self.check_home(&self.project_of(&response)?)?;
        Ok(machine)
    }

    /// Those of these machines that the cloud shows, in as few calls as it allows.
    pub(crate) async fn machines(
        &self,
        ids: &[u64],
        priority: Priority,
    ) -> Result<Vec<Machine>, LookupError> {
        let mut found = Vec::new();
        for chunk in ids.chunks(BATCH) {
            let part = self
                .list(requests::machines_with_ids(chunk, priority))
                .await?;
            self.check_home(&part.project)?;
            found.extend(part.value);
        }
        Ok(found)
    }

    /// Machines of our own project by `name`, `hostname` or `uuid`.
    pub(crate) async fn machines_with(
        &self,
        key: &'static str,
        value: &str,
    ) -> Result<Vec<Machine>, CloudError> {
        self.list_own(requests::machines_with(key, value)).await
    }

    fn check_home(&self, project: &str) -> Result<(), LookupError> {
        if project == self.home.project {
            return Ok(());
        }
        Err(LookupError::OtherScope(self.fingerprint(project)))
    }

    /// Sends a request and reads an answer that must come from our own project.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<T, CloudError> {
        let operation = request.operation().to_owned();
        let response = self.client.send(request).await?;
        let project = self.project_of(&response)?;
        let value = response.json()?;
        self.own(&operation, Of { project, value })
    }

    /// Reads all pages of a list of our own project. Complete, or an error.
    pub(crate) async fn list_own<T>(&self, request: Request) -> Result<Vec<T>, CloudError>
    where
        T: DeserializeOwned + HasId,
        T::Id: Hash,
    {
        let operation = request.operation().to_owned();
        self.own(&operation, self.list(request).await?)
    }

    /// The same of whichever project answers.
    pub(crate) async fn list<T>(&self, request: Request) -> Result<Of<Vec<T>>, CloudError>
    where
        T: DeserializeOwned + HasId,
        T::Id: Hash,
    {
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
        let listing = self.client.pages(request).collect(HasId::id, read).await?;
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

#[async_trait]
impl Session for Api {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        let scope: Scope = self.client.fetch(requests::scope()).await?;
        Ok(self.fingerprint(&scope.project))
    }
}
