//! What is read of a Pod. The whole type, with everything that a volume or a probe can be, would be a large part of the
//! program.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Pod, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// A Pod, as far as it says which manager it runs and how that is.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SlimPod {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Option<PodSpec>,
    pub(super) status: Option<PodStatus>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodSpec {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) containers: Vec<Container>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tolerations: Vec<Toleration>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) host_network: bool,
    pub(super) service_account_name: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Container {
    pub(super) image: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) command: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) args: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub(super) phase: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) conditions: Vec<PodCondition>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PodCondition {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) restart_count: i32,
    pub(super) state: Option<ContainerState>,
    pub(super) last_state: Option<ContainerState>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ContainerState {
    pub(super) waiting: Option<Waiting>,
    pub(super) terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Waiting {
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Terminated {
    pub(super) reason: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) exit_code: i32,
}

/// Go writes an empty list as `null`.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// To the API server it is a Pod like any other.
impl Resource for SlimPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(dynamic: &()) -> Cow<'_, str> {
        Pod::kind(dynamic)
    }
    fn group(dynamic: &()) -> Cow<'_, str> {
        Pod::group(dynamic)
    }
    fn version(dynamic: &()) -> Cow<'_, str> {
        Pod::version(dynamic)
    }
    fn plural(dynamic: &()) -> Cow<'_, str> {
        Pod::plural(dynamic)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_go_writes_as_null_is_empty() {
        let pod: SlimPod = serde_json::from_value(json!({
            "metadata": {},
            "spec": {"containers": null, "tolerations": null, "hostNetwork": null},
            "status": {"conditions": null, "containerStatuses": null},
        }))
        .unwrap();
        let (spec, status) = (pod.spec.unwrap(), pod.status.unwrap());
        assert!(spec.containers.is_empty() && spec.tolerations.is_empty() && !spec.host_network);
        assert!(status.conditions.is_empty() && status.container_statuses.is_empty());
    }
}
