//! The services of a project: how their resources are listed, read and changed.

mod keystone;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Priority, ProviderContext, ScopeFingerprint};
use cloudkeel_http::{
    Auth, Client, ClientBuilder, HttpSettings, Next, Request, Response, RetryPolicy, TlsSettings,
    TokenCache, TokenSource, set_secret_header,
};
use cloudkeel_toolkit::{Instruments, Resource, Wiring, json};
use http::HeaderName;
use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) use self::keystone::Login;
use self::keystone::{Endpoints, Keystone};
use crate::config::{AuthSettings, Config, Credential};
use crate::error::refusals;

const CONNECT: &str = "connect to OpenStack";

/// From this version on, servers show the name of their flavor.
const COMPUTE_VERSION: &str = "compute 2.47";

/// How much longer a call may take than one of its attempts.
const RETRY_TIME: Duration = Duration::from_secs(30);

/// A kind of resource, and where it is.
pub(crate) trait Served: Resource<Id = String> {
    /// The service that has it.
    const SERVICE: Service;
    /// Where all of them are.
    const PATH: &'static str;
    /// The end of the path of a list.
    const LIST: &'static str = "";
}

/// The services that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Compute,
    Network,
    Balancers,
    Keys,
    Volumes,
}

impl Service {
    const ALL: [Self; 5] = [
        Self::Compute,
        Self::Network,
        Self::Balancers,
        Self::Keys,
        Self::Volumes,
    ];

    /// Its types in the catalogue, its name for people, and the version in its paths.
    const fn facts(self) -> (&'static [&'static str], &'static str, &'static str) {
        match self {
            Self::Compute => (&["compute"], "compute (Nova)", ""),
            Self::Network => (&["network"], "network (Neutron)", "/v2.0"),
            Self::Balancers => (&["load-balancer"], "load-balancer (Octavia)", "/v2.0"),
            Self::Keys => (&["key-manager"], "key-manager (Barbican)", "/v1"),
            Self::Volumes => (&["block-storage", "volumev3"], "block-storage (Cinder)", ""),
        }
    }
}

/// The project, seen with one credential.
#[derive(Clone)]
pub(crate) struct Api {
    keystone: Arc<Keystone>,
    /// Those that the catalogue has.
    services: BTreeMap<Service, Client>,
    /// Octavia without a version in its path.
    balancer_root: Option<Client>,
    /// What scopes of this cloud begin with.
    place: String,
    project: String,
}

impl Api {
    /// Logs in, and finds the services.
    pub(crate) async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        let credential = Credential::resolve(&config.auth)
            .map_err(|problems| CloudError::invalid(CONNECT, problems.to_string()))?;
        let retry = RetryPolicy {
            attempt: config.request_timeout,
            total: config.request_timeout + RETRY_TIME,
            ..RetryPolicy::default()
        };
        let http = http_settings(&config.auth)?;
        let builder = wiring
            .client(&credential.url, context, http, Instruments::default())?
            .error_map(refusals())
            .request_id_header("x-openstack-request-id")
            .request_id_header("x-compute-request-id")
            .retry(retry)
            .rebase_links(true)
            .user_agent(user_agent(&config.user_agents));
        let client = builder.clone().build()?;
        let place = credential.url.clone();
        let keystone = Arc::new(Keystone::new(client.clone(), credential));
        let source: Arc<dyn TokenSource<Login>> = Arc::<Keystone>::clone(&keystone);
        let tokens = Arc::new(TokenCache::new(source, Arc::clone(&context.clock)));
        let login = tokens.token().await?.value;
        let project = login.project().ok_or_else(|| {
            let message =
                "the credential is good for no project: give `tenant-id` or `tenant-name`";
            CloudError::invalid(CONNECT, message)
        })?;
        let endpoints = Endpoints {
            catalog: &login.catalog,
            region: config.auth.region.as_deref(),
            interface: config.auth.interface.unwrap_or_default(),
        };
        // All of them share connections, limits and the token.
        let builder = client.derive().authorizer(auth(&tokens));
        let mut services = BTreeMap::new();
        for service in Service::ALL {
            let client = build(&builder, &endpoints, service)?;
            services.extend(client.map(|client| (service, client)));
        }
        let root = endpoints.find(Service::Balancers.facts().0);
        let root = root.map(|url| builder.clone().base_url(unversioned(url)).build());
        Ok(Self {
            services,
            balancer_root: root.transpose()?,
            place: match &config.auth.region {
                Some(region) => format!("{place}/{region}"),
                None => place,
            },
            project: project.to_owned(),
            keystone,
        })
    }

    /// Whether the catalogue has a service.
    pub(crate) fn has(&self, service: Service) -> bool {
        self.services.contains_key(&service)
    }

    /// An error unless the catalogue has a service.
    pub(crate) fn require(&self, service: Service) -> Result<(), CloudError> {
        self.client(service).map(drop)
    }

    pub(crate) fn client(&self, service: Service) -> Result<&Client, CloudError> {
        self.services.get(&service).ok_or_else(|| {
            let (_, name, _) = service.facts();
            let message = format!(
                "the catalogue has no {name} in this region and for this interface: check `region` and \
                 `os-endpoint-type`"
            );
            CloudError::invalid(CONNECT, message)
        })
    }

    /// The project that the credential is good for.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    /// What is seen with a credential of a project.
    pub(crate) fn scope_of(&self, project: &str) -> ScopeFingerprint {
        ScopeFingerprint::new(format!("{}/{project}", self.place))
    }

    /// Proves that the credential is good, by a login of its own: the token in use may outlive it.
    pub(crate) async fn prove(&self) -> Result<ScopeFingerprint, CloudError> {
        let login = self.keystone.fetch().await?.value;
        Ok(self.scope_of(login.project().unwrap_or_default()))
    }

    /// All resources of a kind that these filters let through.
    pub(crate) async fn all<T: Served>(
        &self,
        filters: &[(&str, &str)],
    ) -> Result<Vec<T>, CloudError> {
        self.all_with::<T>(filters, Priority::Normal).await
    }

    /// The same with a priority.
    pub(crate) async fn all_with<T: Served>(
        &self,
        filters: &[(&str, &str)],
        priority: Priority,
    ) -> Result<Vec<T>, CloudError> {
        let request = Request::get(format!("{}{}", T::PATH, T::LIST)).priority(priority);
        let add = |request: Request, (name, value): &(&str, &str)| request.query(*name, value);
        let request = filters.iter().fold(request, add);
        json::all(self.client(T::SERVICE)?, request, next_page).await
    }

    /// One resource. Only [`NotFound`](cloudkeel_api::ErrorKind::NotFound) says that there is none.
    pub(crate) async fn get<T: Served>(
        &self,
        id: &str,
        priority: Priority,
    ) -> Result<T, CloudError> {
        let request = Request::get(path::<T>("{id}"))
            .param("id", id)
            .priority(priority);
        let response = self.client(T::SERVICE)?.send(request).await?;
        let found: T = json::one(&response)?;
        if found.id() != id {
            let why = format!("asked for {} {id}, got {}", T::ONE, found.id());
            return Err(response.malformed(&why));
        }
        Ok(found)
    }

    /// Sends a request whose answer does not matter.
    pub(crate) async fn send(&self, service: Service, request: Request) -> Result<(), CloudError> {
        self.client(service)?.send(request).await.map(drop)
    }

    /// Changes a resource, unless another client changed it since: that is a
    /// [`Conflict`](cloudkeel_api::ErrorKind::Conflict).
    pub(crate) async fn update<T: Served>(
        &self,
        id: &str,
        revision: Option<u64>,
        body: &impl Serialize,
    ) -> Result<(), CloudError> {
        let request = Request::put(path::<T>("{id}"))
            .param("id", id)
            .json(wrapped(T::ONE, body));
        self.send(T::SERVICE, if_revision(request, revision)).await
    }

    /// The versions that Octavia speaks, the newest last.
    pub(crate) async fn balancer_versions(&self) -> Result<Value, CloudError> {
        self.require(Service::Balancers)?;
        match &self.balancer_root {
            Some(root) => root.fetch(Request::get("/")).await,
            None => Ok(Value::Null),
        }
    }
}

fn path<T: Served>(end: impl Display) -> String {
    format!("{}/{end}", T::PATH)
}

/// A body under its name. `null` in it is sent: it takes a value away.
pub(crate) fn wrapped(name: &str, body: &impl Serialize) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), json::whole(body))]))
}

/// Refused if another client changed the resource since it had this revision.
pub(crate) fn if_revision(request: Request, revision: Option<u64>) -> Request {
    match revision {
        Some(revision) => request.if_match(format!("revision_number={revision}")),
        None => request,
    }
}

/// `{"servers": […], "servers_links": [{"rel": "next", "href": …}]}`
#[expect(
    clippy::unnecessary_wraps,
    reason = "other clouds' pages can be unreadable"
)]
fn next_page(_: &Response, rest: &Map<String, Value>) -> Result<(Next, Option<u64>), CloudError> {
    let links = rest.iter().find(|(name, _)| name.ends_with("_links"));
    let links = links.and_then(|(_, links)| links.as_array());
    let mut links = links.into_iter().flatten();
    let next = links.find(|link| link.get("rel").and_then(Value::as_str) == Some("next"));
    let next = next.and_then(|link| link.get("href")?.as_str());
    Ok((Next::link(next.map(str::to_owned)), None))
}

fn auth(tokens: &Arc<TokenCache<Login>>) -> Auth<Login> {
    let header = HeaderName::from_static("x-auth-token");
    Auth::renewed(Arc::clone(tokens), move |login: &Login, request| {
        set_secret_header(request, &header, login.token.expose())
    })
}

fn build(
    builder: &ClientBuilder,
    endpoints: &Endpoints<'_>,
    service: Service,
) -> Result<Option<Client>, CloudError> {
    let (types, _, version) = service.facts();
    let Some(url) = endpoints.find(types) else {
        return Ok(None);
    };
    let builder = builder.clone();
    let builder = match service {
        Service::Compute => {
            let number = COMPUTE_VERSION.trim_start_matches("compute ");
            // The first of both is the older spelling.
            let builder = builder.header("X-OpenStack-Nova-API-Version", number);
            let builder = builder.header("OpenStack-API-Version", COMPUTE_VERSION);
            builder.base_url(url)
        }
        Service::Volumes => builder.base_url(url),
        _ => builder.base_url(format!("{}{version}", unversioned(url))),
    };
    builder.build().map(Some)
}

/// An address without the version at its end, which catalogues have or have not.
fn unversioned(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    let Some((front, last)) = url.rsplit_once('/') else {
        return url;
    };
    let digits = last.strip_prefix('v').unwrap_or_default();
    let is_version = digits.starts_with(|c: char| c.is_ascii_digit());
    if is_version { front } else { url }
}

fn user_agent(given: &[String]) -> String {
    let ours = concat!("cloudkeel/", env!("CARGO_PKG_VERSION"));
    // As in the Go CCM, each stands before those that were given earlier.
    let given = given.iter().rev().map(String::as_str);
    given.chain([ours]).collect::<Vec<_>>().join(" ")
}

fn http_settings(auth: &AuthSettings) -> Result<HttpSettings, CloudError> {
    let read = |path: &String| {
        std::fs::read(path)
            .map_err(|error| CloudError::invalid(CONNECT, format!("{path}: {error}")))
    };
    let mut tls = TlsSettings::default().insecure(auth.insecure);
    if let Some(path) = &auth.ca_file {
        tls = tls.trust(read(path)?);
    }
    if let (Some(certificate), Some(key)) = (&auth.cert_file, &auth.key_file) {
        let key = String::from_utf8_lossy(&read(key)?).into_owned();
        tls = tls.present(read(certificate)?, key.into());
    }
    Ok(HttpSettings {
        tls,
        ..HttpSettings::from_env()?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_catalogues_lose_their_version() {
        for (url, expected) in [
            ("http://lb:9876", "http://lb:9876"),
            ("http://lb:9876/", "http://lb:9876"),
            (
                "https://cloud/load-balancer/v2.0/",
                "https://cloud/load-balancer",
            ),
            ("https://cloud/load-balancer", "https://cloud/load-balancer"),
            ("https://cloud/v2", "https://cloud"),
        ] {
            assert_eq!(unversioned(url), expected);
        }
    }

    #[test]
    fn user_agents_stand_before_ours() {
        let agent = user_agent(&["a".to_owned(), "b".to_owned()]);
        assert!(agent.starts_with("b a cloudkeel/"), "{agent}");
    }
}
