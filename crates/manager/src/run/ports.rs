//! Opens the secure port and the webhook port.

use std::sync::Arc;

use axum::Router;
use cloudkeel_api::{Clock, Webhook};
use cloudkeel_controllers::{check_webhooks, is_selected};
use cloudkeel_page::Source;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::manager::RunError;
use crate::client::{ClientFactory, ConnectError};
use crate::health::Health;
use crate::logging::LogControl;
use crate::metrics::{BuildInfo, Metrics};
use crate::options::{ApiServerOptions, Options};
use crate::page::ManagerPage;
use crate::serving::{
    AccessControl, Authenticator, Authorizer, ClientCertificates, CredentialSources, Endpoints,
    LogLevel, SecureServer, ServerNames, SharedKeyPair, startup_router, webhook_router,
};
use crate::webhook_certificate::follow_certificate;

/// What the ports are served with.
pub(super) struct ServeParts<'a> {
    pub(super) options: &'a Options,
    pub(super) metrics: &'a Metrics,
    pub(super) health: &'a Arc<Health>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) configz: serde_json::Value,
    pub(super) log: LogControl,
    /// Closes the ports.
    pub(super) stop: CancellationToken,
}

/// The names in a self-signed certificate: those that a probe on the same host uses, and the host's own.
fn own_names() -> ServerNames {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let host = hostname::get()
        .ok()
        .and_then(|name| name.into_string().ok());
    names.extend(host.filter(|name| !name.is_empty()));
    ServerNames {
        pair_name: "cloud-controller-manager".to_owned(),
        names,
        provided: None,
    }
}

/// The secure port. Before the API server has answered, it serves always-allowed paths such as `/livez`: a manager
/// that waits must not be restarted.
pub(super) struct SecurePort<'a> {
    pub(super) parts: ServeParts<'a>,
    /// `None` if the port is disabled.
    open: Option<OpenPort>,
}

struct OpenPort {
    endpoints: Router,
    /// The router with access control, once it is available.
    guarded: watch::Sender<Option<Router>>,
    running: JoinHandle<()>,
}

impl<'a> SecurePort<'a> {
    /// Opens the port and serves always-allowed paths on it, until `parts.stop`.
    pub(super) async fn open(parts: ServeParts<'a>) -> Result<Self, RunError> {
        let (serving, clock) = (&parts.options.serving, Arc::clone(&parts.clock));
        let clients = ClientCertificates::Requested;
        let server = SecureServer::bind(serving, &own_names(), clients, clock).await?;
        let Some(server) = server else {
            return Ok(Self { parts, open: None });
        };
        if let Ok(address) = server.local_addr() {
            info!(%address, "serving securely");
        }
        let endpoints = parts.endpoints().router();
        let open = parts
            .anonymous_access_control()
            .await?
            .protect(endpoints.clone());
        let (guarded, later) = watch::channel(None);
        let paths = &parts.options.authorization.always_allow_paths;
        let router = startup_router(paths, open, later)?;
        let open = Some(OpenPort {
            endpoints,
            guarded,
            running: tokio::spawn(server.run(router, parts.stop.clone())),
        });
        Ok(Self { parts, open })
    }

    /// Serves everything from now on, to authorized clients. Returns the task that serves the port.
    pub(super) async fn enable_delegated_auth(self) -> Result<Option<JoinHandle<()>>, RunError> {
        let Self { parts, open } = self;
        let Some(open) = open else {
            return Ok(None);
        };
        let access_control = parts.access_control().await?;
        open.guarded
            .send_replace(Some(access_control.protect(open.endpoints)));
        Ok(Some(open.running))
    }
}

impl ServeParts<'_> {
    fn endpoints(&self) -> Endpoints {
        let generic = &self.options.generic;
        let debug: Option<Arc<dyn LogLevel>> = if generic.profiling {
            Some(Arc::new(self.log.clone()))
        } else {
            None
        };
        let page: Option<Arc<dyn Source>> = if generic.page {
            let (health, clouds) = (Arc::clone(self.health), self.metrics.clouds.clone());
            let clock = Arc::clone(&self.clock);
            Some(Arc::new(ManagerPage::new(health, clouds, clock)))
        } else {
            None
        };
        Endpoints {
            health: Arc::clone(self.health),
            metrics: self.metrics.clone(),
            configz: self.configz.clone(),
            build: BuildInfo::of_version(env!("CARGO_PKG_VERSION")),
            debug,
            page,
        }
    }

    /// Access control without the API server: every client is anonymous.
    async fn anonymous_access_control(&self) -> Result<AccessControl, RunError> {
        let (clock, options) = (Arc::clone(&self.clock), self.options);
        let ttl = options.authentication.token_cache_ttl;
        let no_credentials = CredentialSources::default();
        let authenticator = Authenticator::new(no_credentials, ttl, clock, &self.stop).await?;
        let authorizer = Authorizer::new(&options.authorization, None)?;
        Ok(AccessControl::new(authenticator, authorizer))
    }

    /// Access control that delegates to the API server.
    async fn access_control(&self) -> Result<AccessControl, RunError> {
        let Options {
            authentication,
            authorization,
            ..
        } = self.options;
        let clock = Arc::clone(&self.clock);
        let reviewer = review_client(authentication.kubeconfig.as_ref(), self).await?;
        let authenticator = Authenticator::delegated(authentication, reviewer, clock, &self.stop);
        let authenticator = authenticator.await?;
        let reviewer = review_client(authorization.kubeconfig.as_ref(), self).await?;
        let authorizer = Authorizer::delegated(authorization, reviewer)?;
        Ok(AccessControl::new(authenticator, authorizer))
    }
}

/// The client for reviews: from its own kubeconfig, else from the Pod's ServiceAccount, else none. As upstream, the
/// manager's own kubeconfig is not used: its role may not allow reviews.
async fn review_client(
    kubeconfig: Option<&std::path::PathBuf>,
    parts: &ServeParts<'_>,
) -> Result<Option<Client>, RunError> {
    let options = ApiServerOptions {
        master: None,
        kubeconfig: kubeconfig.cloned(),
        // The limit for the controllers' requests does not apply to reviews.
        qps: None,
        ..parts.options.api_server.clone()
    };
    match ClientFactory::new(&options, None, parts.metrics.clone()).await {
        Ok(factory) => Ok(Some(factory.unfenced("delegated-auth")?)),
        Err(ConnectError::NotInCluster(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Serves the enabled webhooks until `parts.stop`. `None` if there are none.
pub(super) async fn serve_webhooks(
    parts: &ServeParts<'_>,
    provided: Vec<Arc<dyn Webhook>>,
    client: Client,
) -> Result<Option<JoinHandle<()>>, RunError> {
    let (options, metrics) = (parts.options, parts.metrics);
    let known: Vec<_> = provided.iter().map(|webhook| webhook.name()).collect();
    check_webhooks(&options.webhooks, &known).map_err(RunError::Webhooks)?;
    let enabled: Vec<_> = provided
        .into_iter()
        .filter(|webhook| is_enabled(webhook.name(), &options.webhooks))
        .collect();
    if options.webhooks.is_empty() {
        return Ok(None);
    }
    let served = if options.gates.webhooks() {
        enabled
    } else {
        Vec::new()
    };
    let router = webhook_router(served, metrics.webhooks.clone())?;
    let listener = &options.webhook_serving;
    let clients = ClientCertificates::NotRequested;
    let clock = Arc::clone(&parts.clock);
    let mut names = own_names();
    let service = options.generic.webhook_service.clone();
    let kept = service.map(|service| (service, SharedKeyPair::default()));
    names.provided = kept.as_ref().map(|(_, served)| served.clone());
    let Some(server) = SecureServer::bind(listener, &names, clients, clock).await? else {
        return Ok(None);
    };
    let stop = parts.stop.clone();
    Ok(Some(tokio::spawn(async move {
        let serving = server.run(router, stop);
        match kept {
            None => serving.await,
            Some((service, served)) => tokio::select! {
                () = serving => {}
                () = follow_certificate(client, service, served) => {}
            },
        }
    })))
}

fn is_enabled(name: &str, items: &[String]) -> bool {
    is_selected(items, |item| item == name, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_are_off_unless_asked_for() {
        for (items, expected) in [
            (&[][..], false),
            (&["*"], true),
            (&["pv"], true),
            (&["*", "-pv"], false),
            (&["other"], false),
        ] {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            assert_eq!(is_enabled("pv", &items), expected, "{items:?}");
        }
    }
}
