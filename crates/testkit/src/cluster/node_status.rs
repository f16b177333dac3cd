//! What a kubelet reports about its machine.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ContainerImage, DaemonEndpoint, NodeDaemonEndpoints, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::control_plane::KUBERNETES_VERSION;

/// The processors of every machine.
pub(super) const ARCHITECTURE: &str = "amd64";

/// The default `--node-status-max-images` of a kubelet.
const IMAGES: u64 = 50;

/// Capacity and allocatable resources of a machine with 4 cores and 16 GiB.
pub(super) fn resources() -> (BTreeMap<String, Quantity>, BTreeMap<String, Quantity>) {
    let list = |cpu: &str, storage: &str, memory: &str| {
        [
            ("cpu", cpu),
            ("ephemeral-storage", storage),
            ("hugepages-1Gi", "0"),
            ("hugepages-2Mi", "0"),
            ("memory", memory),
            ("pods", "110"),
        ]
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
        .into()
    };
    let capacity = list("4", "81106868Ki", "16393244Ki");
    let allocatable = list("3920m", "74748089426", "16290844Ki");
    (capacity, allocatable)
}

/// The identity and software of the machine of this Node.
pub(super) fn node_info(node: &str) -> NodeSystemInfo {
    let system_uuid = uuid_of(node);
    NodeSystemInfo {
        architecture: ARCHITECTURE.to_owned(),
        boot_id: uuid_of(&format!("boot of {system_uuid}")),
        container_runtime_version: "containerd://2.1.4".to_owned(),
        kernel_version: "6.8.0-85-generic".to_owned(),
        // Deprecated upstream, but a required field; kubelets leave it empty since v1.33.
        kube_proxy_version: String::new(),
        kubelet_version: KUBERNETES_VERSION.to_owned(),
        machine_id: system_uuid.replace('-', ""),
        operating_system: "linux".to_owned(),
        os_image: "Ubuntu 24.04.3 LTS".to_owned(),
        system_uuid,
        ..NodeSystemInfo::default()
    }
}

/// As many images as a kubelet lists at most, the largest first: the bulk of a real Node object.
pub(super) fn images() -> Vec<ContainerImage> {
    (0..IMAGES)
        .map(|number| {
            let repository = format!("registry.example.com/platform/service-{number:02}");
            let digest = format!("{:064x}", (number + 1) * 0x9e37_79b9_7f4a);
            ContainerImage {
                names: Some(vec![
                    format!("{repository}@sha256:{digest}"),
                    format!("{repository}:v1.{number}.0"),
                ]),
                size_bytes: i64::try_from((IMAGES - number) * 17_301_504).ok(),
            }
        })
        .collect()
}

/// Where the kubelet itself serves.
pub(super) fn daemon_endpoints() -> NodeDaemonEndpoints {
    NodeDaemonEndpoints {
        kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
    }
}

/// A UUID that depends on nothing but the name, so that a run can be repeated.
fn uuid_of(name: &str) -> String {
    let digest = name.bytes().fold(
        0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
        |digest, byte| {
            (digest ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        },
    );
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        digest >> 96,
        (digest >> 80) & 0xffff,
        (digest >> 64) & 0xffff,
        (digest >> 48) & 0xffff,
        digest & 0xffff_ffff_ffff,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_lists_fifty_different_images_the_largest_first() {
        let images = images();
        let mut names: Vec<_> = images
            .iter()
            .flat_map(|image| image.names.clone().unwrap())
            .collect();
        names.sort();
        names.dedup();
        assert_eq!((images.len(), names.len()), (50, 100));
        assert!(images.is_sorted_by_key(|image| -image.size_bytes.unwrap()));
    }

    #[test]
    fn a_machine_is_known_by_a_uuid_that_depends_on_its_name_alone() {
        assert_eq!(uuid_of("n1"), uuid_of("n1"));
        assert_ne!(uuid_of("n1"), uuid_of("n2"));
        let lengths: Vec<_> = uuid_of("n1").split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
