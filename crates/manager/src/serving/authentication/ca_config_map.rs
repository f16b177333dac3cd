//! Client CAs from the `ConfigMap` that every API server publishes for extension API servers.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_controllers::runtime::ErrorText;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::Mutex;

use super::ca_source::{CaContent, CaSource};
use super::front_proxy::FrontProxy;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// The `ConfigMap` is read again after this long, even without a watch event.
const REREAD_PERIOD: Duration = Duration::from_mins(5);

type Events = Pin<Box<dyn Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Send>>;

/// Which CA of the `ConfigMap` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaKind {
    /// The CA of client certificates.
    Clients,
    /// The CA of front proxies, with their headers.
    FrontProxies,
}

/// The `ConfigMap`, read again when its watch reports a change.
pub(super) struct AuthenticationConfigMap {
    part: CaKind,
    api: Api<ConfigMap>,
    events: Mutex<Events>,
}

impl AuthenticationConfigMap {
    pub(super) fn new(client: Client, part: CaKind) -> Self {
        let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let only_ours = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let events = watcher(api.clone(), only_ours).default_backoff();
        Self {
            part,
            api,
            events: Mutex::new(Box::pin(events)),
        }
    }
}

#[async_trait]
impl CaSource for AuthenticationConfigMap {
    fn name(&self) -> String {
        format!("the ConfigMap {NAMESPACE}/{NAME}")
    }

    async fn read(&self) -> Result<Option<CaContent>, String> {
        let map = self.api.get_opt(NAME).await;
        match map.map_err(|error| ErrorText(&error).to_string())? {
            Some(map) => content(self.part, &map),
            None => Ok(None),
        }
    }

    async fn changed(&self) {
        let mut events = self.events.lock().await;
        let reported = async {
            loop {
                match events.next().await {
                    Some(Ok(watcher::Event::Init | watcher::Event::InitDone)) => {}
                    Some(Ok(_)) => return,
                    Some(Err(error)) => {
                        let error = ErrorText(&error);
                        tracing::debug!(err = %error, configmap = NAME, "watch failed, retrying");
                    }
                    None => std::future::pending().await,
                }
            }
        };
        // A role that may get but not watch it still sees changes.
        let _ = tokio::time::timeout(REREAD_PERIOD, reported).await;
    }
}

/// The requested part of the `ConfigMap`; `None` if it is not there.
fn content(part: CaKind, map: &ConfigMap) -> Result<Option<CaContent>, String> {
    let text = |key: &str| map.data.as_ref()?.get(key).filter(|text| !text.is_empty());
    let list = |key: &str| match text(key) {
        Some(json) => serde_json::from_str(json).map_err(|error| format!("{key}: {error}")),
        None => Ok(Vec::new()),
    };
    let bundle = match part {
        CaKind::Clients => text("client-ca-file"),
        CaKind::FrontProxies => text("requestheader-client-ca-file"),
    };
    let Some(bundle) = bundle else {
        return Ok(None);
    };
    let front_proxy = match part {
        CaKind::Clients => FrontProxy::default(),
        CaKind::FrontProxies => FrontProxy {
            allowed_names: list("requestheader-allowed-names")?,
            username_headers: list("requestheader-username-headers")?,
            uid_headers: list("requestheader-uid-headers")?,
            group_headers: list("requestheader-group-headers")?,
            extra_prefixes: list("requestheader-extra-headers-prefix")?,
        },
    };
    Ok(Some(CaContent {
        bundle: bundle.clone(),
        front_proxy,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(data: &[(&str, &str)]) -> ConfigMap {
        ConfigMap {
            data: Some(
                data.iter()
                    .map(|(k, v)| (k.to_string(), v.to_string()))
                    .collect(),
            ),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn each_part_has_its_own_bundle() {
        let map = map(&[
            ("client-ca-file", "clients"),
            ("requestheader-client-ca-file", "proxies"),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
            (
                "requestheader-extra-headers-prefix",
                r#"["X-Remote-Extra-"]"#,
            ),
        ]);
        let clients = content(CaKind::Clients, &map).unwrap().unwrap();
        assert_eq!(clients.bundle, "clients");
        assert_eq!(clients.front_proxy, FrontProxy::default());
        let proxies = content(CaKind::FrontProxies, &map).unwrap().unwrap();
        assert_eq!(proxies.bundle, "proxies");
        assert_eq!(proxies.front_proxy.allowed_names, ["front-proxy-client"]);
        assert_eq!(proxies.front_proxy.username_headers, ["X-Remote-User"]);
        assert!(proxies.front_proxy.uid_headers.is_empty());
    }

    #[test]
    fn an_empty_map_holds_nothing_and_a_broken_list_is_named() {
        assert_eq!(content(CaKind::Clients, &ConfigMap::default()), Ok(None));
        let broken = map(&[
            ("requestheader-client-ca-file", "proxies"),
            ("requestheader-allowed-names", "front-proxy-client"),
        ]);
        let error = content(CaKind::FrontProxies, &broken).unwrap_err();
        assert!(
            error.starts_with("requestheader-allowed-names: "),
            "{error}"
        );
    }
}
