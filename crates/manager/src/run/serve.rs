//! Opens the ports.

use std::sync::Arc;

use cloudkeel_api::{Clock, Webhook};
use cloudkeel_controllers::{check_webhooks, is_selected};
use cloudkeel_page::Source;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::manager::RunError;
use crate::client::{ConnectError, connect_settings};
use crate::health::Health;
use crate::logging::LogControl;
use crate::metrics::{BuildInfo, Metrics};
use crate::options::{ApiServerOptions, Options};
use crate::page::Board;
use crate::serving::{
    Authenticator, Authorizer, ClientCertificates, Endpoints, Gate, LogLevel, SecureServer,
    ServerNames, webhook_router,
};

/// What the ports are served with.
pub(super) struct ServeParts<'a> {
    pub(super) options: &'a Options,
    pub(super) metrics: &'a Metrics,
    pub(super) health: &'a Arc<Health>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) configz: serde_json::Value,
    pub(super) log: LogControl,
}

/// The names in a self-made certificate: what a probe on the same host uses, and the host's own.
fn own_names() -> ServerNames {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let host = hostname::get()
        .ok()
        .and_then(|name| name.into_string().ok());
    names.extend(host.filter(|name| !name.is_empty()));
    ServerNames {
        pair_name: "cloud-controller-manager".to_owned(),
        names,
    }
}

/// Serves the secure port until `stop`. `None` if it is switched off.
pub(super) async fn serve_endpoints(
    parts: ServeParts<'_>,
    stop: &CancellationToken,
) -> Result<Option<JoinHandle<()>>, RunError> {
    let Options {
        serving,
        authentication,
        authorization,
        generic,
        ..
    } = parts.options;
    let clock = Arc::clone(&parts.clock);
    let Some(server) = SecureServer::bind(
        serving,
        &own_names(),
        ClientCertificates::Welcome,
        Arc::clone(&clock),
    )
    .await?
    else {
        return Ok(None);
    };
    let reviewer = reviews_client(authentication.kubeconfig.as_ref(), &parts).await?;
    let authenticator = Authenticator::delegated(authentication, reviewer, clock, stop).await?;
    let reviewer = reviews_client(authorization.kubeconfig.as_ref(), &parts).await?;
    let authorizer = Authorizer::delegated(authorization, reviewer)?;
    let debug: Option<Arc<dyn LogLevel>> = if generic.profiling {
        Some(Arc::new(parts.log))
    } else {
        None
    };
    let page: Option<Arc<dyn Source>> = if generic.page {
        let (health, clouds) = (Arc::clone(parts.health), parts.metrics.clouds.clone());
        let clock = Arc::clone(&parts.clock);
        Some(Arc::new(Board::new(health, clouds, clock)))
    } else {
        None
    };
    let endpoints = Endpoints {
        health: Arc::clone(parts.health),
        metrics: parts.metrics.clone(),
        configz: parts.configz,
        build: BuildInfo::of_version(env!("CARGO_PKG_VERSION")),
        debug,
        page,
    };
    let router = Gate::new(authenticator, authorizer).guard(endpoints.router());
    if let Ok(address) = server.local_addr() {
        info!(%address, "serving HTTPS");
    }
    Ok(Some(tokio::spawn(server.run(router, stop.clone()))))
}

/// The client for reviews: of its own kubeconfig, else of the Pod's ServiceAccount, else none. As
/// upstream, the manager's own kubeconfig does not count: its role may not allow reviews.
async fn reviews_client(
    kubeconfig: Option<&std::path::PathBuf>,
    parts: &ServeParts<'_>,
) -> Result<Option<Client>, RunError> {
    let options = ApiServerOptions {
        master: None,
        kubeconfig: kubeconfig.cloned(),
        ..parts.options.api_server.clone()
    };
    let config = match connect_settings(&options).await {
        Ok(config) => config,
        Err(ConnectError::NotInCluster(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Client::try_from(config)
        .map(Some)
        .map_err(|error| ConnectError::Client(error).into())
}

/// Serves the webhooks that are asked for until `stop`. `None` if there are none.
pub(super) async fn serve_webhooks(
    options: &Options,
    provided: Vec<Arc<dyn Webhook>>,
    metrics: &Metrics,
    clock: Arc<dyn Clock>,
    stop: &CancellationToken,
) -> Result<Option<JoinHandle<()>>, RunError> {
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
    let clients = ClientCertificates::Ignored;
    let server = SecureServer::bind(listener, &own_names(), clients, clock).await?;
    Ok(server.map(|server| tokio::spawn(server.run(router, stop.clone()))))
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
