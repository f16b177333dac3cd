//! `/configz`, in the form of upstream's component configuration.

use cloudkeel_api::format_go_duration;
use serde_json::{Value, json};

use crate::config::Setup;
use crate::options::Options;

/// The configuration in use. It contains no secrets: the clouds' settings are left out.
pub(super) fn configz(options: &Options, setup: &Setup) -> Value {
    let Options {
        generic,
        election,
        node,
        service,
        route,
        ..
    } = options;
    json!({
        "apiVersion": "cloudcontrollermanager.config.k8s.io/v1alpha1",
        "kind": "CloudControllerManagerConfiguration",
        "Generic": {
            "Port": options.serving.port,
            "Address": options.serving.address,
            "Controllers": generic.controllers,
            "ControllerStartInterval": format_go_duration(generic.controller_start_interval),
            "LeaderElection": {
                "LeaderElect": election.enabled,
                "LeaseDuration": format_go_duration(election.lease_duration),
                "RenewDeadline": format_go_duration(election.renew_deadline),
                "RetryPeriod": format_go_duration(election.retry_period),
                "ResourceLock": "leases",
                "ResourceName": election.name,
                "ResourceNamespace": election.namespace,
            },
            "Debugging": {"EnableProfiling": generic.profiling},
            "LeaderMigrationEnabled": election.migration,
        },
        "KubeCloudShared": {
            "CloudProvider": {
                "Name": generic.cloud_provider,
                "CloudConfigFile": generic.cloud_config,
            },
            "ClusterName": generic.cluster_name,
            "ClusterCIDR": generic.cluster_cidrs.iter().map(ToString::to_string)
                .collect::<Vec<_>>().join(","),
            "AllocateNodeCIDRs": options.ipam.enabled,
            "ConfigureCloudRoutes": route.enabled,
            "RouteReconciliationPeriod": format_go_duration(route.period),
            "NodeMonitorPeriod": format_go_duration(node.monitor_period),
            "UseServiceAccountCredentials": generic.use_service_account_credentials,
            "AllowUntaggedCloud": generic.allow_untagged_cloud,
        },
        "ServiceController": {"ConcurrentServiceSyncs": service.concurrent_syncs},
        "NodeController": {
            "ConcurrentNodeSyncs": node.concurrent_syncs,
            "ConcurrentNodeStatusUpdates": node.concurrent_status_updates,
        },
        "NodeStatusUpdateFrequency": format_go_duration(node.list_period),
        "Webhook": {"Webhooks": options.webhooks},
        "Clouds": setup.clouds,
    })
}
