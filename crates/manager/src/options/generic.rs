//! Options of the cloud, the cluster, the controllers, and the access to the API server.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::Serialize;

use super::reader::OptionReader;
use crate::flags;

/// The Service through which the API server reaches the webhooks, and the Secret and the configuration of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookService {
    /// The namespace of the Service and the Secret.
    pub namespace: String,
    /// The name of all three.
    pub name: String,
}

/// The cloud, the cluster and which controllers run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenericOptions {
    /// `--cloud-provider`
    pub cloud_provider: Option<String>,
    /// `--cloud-config`
    pub cloud_config: Option<PathBuf>,
    /// `--cluster-name`
    pub cluster_name: String,
    /// `--cluster-cidr`
    pub cluster_cidrs: Vec<IpNet>,
    /// `--allow-untagged-cloud`
    pub allow_untagged_cloud: bool,
    /// `--controllers`
    pub controllers: Vec<String>,
    /// `--controller-start-interval`
    pub controller_start_interval: Duration,
    /// `--use-service-account-credentials`
    pub use_service_account_credentials: bool,
    /// `--profiling`
    pub profiling: bool,
    /// `--page`
    pub page: bool,
    /// `--dry-run`
    pub dry_run: bool,
    /// `--webhook-service`
    pub webhook_service: Option<WebhookService>,
    /// `--shutdown-grace-period`
    pub shutdown_grace_period: Duration,
    /// `--cloud-reload-period`
    pub cloud_reload_period: Duration,
}

#[expect(
    clippy::option_option,
    reason = "wrong and absent are different, and both go on"
)]
fn read_webhook_service(reader: &mut OptionReader<'_>) -> Option<Option<WebhookService>> {
    let Some(text) = reader.text(&flags::WEBHOOK_SERVICE)? else {
        return Some(None);
    };
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            Some(Some(WebhookService { namespace, name }))
        }
        _ => {
            let expected = "NAMESPACE/NAME, such as \"kube-system/cloudkeel-webhook\"";
            reader.refuse("--webhook-service", text, expected);
            None
        }
    }
}

impl GenericOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let cloud_provider = reader.text(&flags::CLOUD_PROVIDER);
        let cloud_config = reader.text(&flags::CLOUD_CONFIG);
        let cluster_name = reader.value(&flags::CLUSTER_NAME);
        let cluster_cidrs = cidrs(reader, &flags::CLUSTER_CIDR);
        let allow_untagged_cloud = reader.value(&flags::ALLOW_UNTAGGED_CLOUD);
        let controllers = reader.list(&flags::CONTROLLERS);
        let controller_start_interval = reader.value(&flags::CONTROLLER_START_INTERVAL);
        let use_service_account_credentials = reader.value(&flags::USE_SERVICE_ACCOUNT_CREDENTIALS);
        let profiling = reader.value(&flags::PROFILING);
        let page = reader.value(&flags::PAGE);
        let dry_run = reader.value(&flags::DRY_RUN);
        let webhook_service = read_webhook_service(reader);
        let shutdown_grace_period = reader.value(&flags::SHUTDOWN_GRACE_PERIOD);
        let cloud_reload_period = reader.value(&flags::CLOUD_RELOAD_PERIOD);
        Some(Self {
            cloud_provider: cloud_provider?,
            cloud_config: cloud_config?.map(PathBuf::from),
            cluster_name: cluster_name?,
            cluster_cidrs: cluster_cidrs?,
            allow_untagged_cloud: allow_untagged_cloud?,
            controllers: controllers?,
            controller_start_interval: controller_start_interval?,
            use_service_account_credentials: use_service_account_credentials?,
            profiling: profiling?,
            page: page?,
            dry_run: dry_run?,
            webhook_service: webhook_service?,
            shutdown_grace_period: shutdown_grace_period?,
            cloud_reload_period: cloud_reload_period?,
        })
    }
}

/// One CIDR, or one of each family.
pub(super) fn cidrs(
    reader: &mut OptionReader<'_>,
    key: &cloudkeel_api::FlagKey<String>,
) -> Option<Vec<IpNet>> {
    let text = reader.text(key)?.unwrap_or_default();
    let flag = format!("--{}", key.name());
    let mut networks: Vec<IpNet> = Vec::new();
    for item in text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        match item.parse::<IpNet>() {
            Ok(network) => networks.push(network.trunc()),
            Err(_) => reader.refuse(&flag, item, "a network such as `10.244.0.0/16`"),
        }
    }
    let v4 = networks
        .iter()
        .filter(|network| matches!(network, IpNet::V4(_)))
        .count();
    if v4 > 1 || networks.len() - v4 > 1 {
        reader.refuse(&flag, text, "at most one network of each IP family");
    }
    Some(networks)
}

/// How to reach the API server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerOptions {
    /// `--master`
    pub master: Option<String>,
    /// `--kubeconfig`
    pub kubeconfig: Option<PathBuf>,
    /// `--kube-api-qps`; no limit without it.
    pub qps: Option<f64>,
    /// `--kube-api-burst`
    pub burst: u32,
    /// `--kube-api-read-timeout`; `None` means no timeout.
    pub read_timeout: Option<Duration>,
}

impl ApiServerOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let master = reader.text(&flags::MASTER);
        let kubeconfig = reader.text(&flags::KUBECONFIG);
        let qps = reader.optional(&flags::KUBE_API_QPS);
        let burst = reader.value(&flags::KUBE_API_BURST);
        let read_timeout = reader.value(&flags::KUBE_API_READ_TIMEOUT);
        if reader.is_given(flags::KUBE_API_BURST.name())
            && !reader.is_given(flags::KUBE_API_QPS.name())
        {
            reader.warn(
                "--kube-api-burst has no effect without --kube-api-qps: there is no limit"
                    .to_owned(),
            );
        }
        Some(Self {
            master: master?,
            kubeconfig: kubeconfig?.map(PathBuf::from),
            // Go clients read zero and below as "no limit" too.
            qps: qps?.filter(|qps| *qps > 0.0),
            burst: burst?,
            read_timeout: Some(read_timeout?).filter(|timeout| !timeout.is_zero()),
        })
    }
}
