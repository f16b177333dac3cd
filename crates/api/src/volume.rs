//! Disks and their topology labels.

use async_trait::async_trait;
use serde::Serialize;

use crate::CloudError;

/// A disk that a PersistentVolume names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRef {
    /// The PersistentVolume's name.
    pub name: String,
    /// The cloud's ID or name of the disk, from the volume source.
    pub disk: String,
}

/// The location of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumePlace {
    /// The zones it can be attached in; several for a replicated disk.
    pub zones: Vec<String>,
    /// Its region.
    pub region: Option<String>,
}

impl VolumePlace {
    /// The value of the zone label: zones of a replicated disk are joined with `__`, as upstream
    /// does it.
    pub fn zone_label(&self) -> Option<String> {
        let mut zones = self.zones.clone();
        zones.sort();
        zones.dedup();
        (!zones.is_empty()).then(|| zones.join("__"))
    }
}

/// The disks of a cloud, for the admission webhook that labels PersistentVolumes.
#[async_trait]
pub trait Volumes: Send + Sync {
    /// Whether a volume source of this kind is a disk of this cloud, and which. Pure.
    ///
    /// `source` is the name of the field in the PersistentVolume's spec, such as
    /// `awsElasticBlockStore`, with its content.
    fn recognize(&self, name: &str, source: &str, content: &serde_json::Value)
    -> Option<VolumeRef>;

    /// The location of the disk. Only reads. `NotFound` if there is no such disk: the PersistentVolume is then
    /// rejected, because it could never be attached.
    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_a_replicated_disk_are_joined_in_order_and_once() {
        let place = |zones: &[&str]| VolumePlace {
            zones: zones.iter().map(ToString::to_string).collect(),
            region: None,
        };
        assert_eq!(place(&[]).zone_label(), None);
        assert_eq!(place(&["b"]).zone_label().as_deref(), Some("b"));
        assert_eq!(
            place(&["b", "a", "b"]).zone_label().as_deref(),
            Some("a__b")
        );
    }
}
