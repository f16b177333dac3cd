//! The webhook that labels PersistentVolumes: a new one that names a disk of a cloud gets the zone and the region of the
//! disk, as labels and as node affinity, so that its Pods are scheduled where it can be attached.
//!
//! Whatever a cloud does, a volume is never kept from being created because labels are missing: they are left out, with
//! a warning for the client. Only a volume whose disk does not exist is denied.

mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Admission, AdmissionRequest, CloudError, CloudProvider, ErrorKind, VolumePlace, VolumeRef,
    Webhook,
};
use cloudkeel_controllers::clouds::Cloud;
use futures::future::join_all;
use tracing::warn;

use crate::log_messages::VOLUME_NOT_LABELLED;

/// Its name, as in `--webhooks`: that of the controller that upstream had for it.
const NAME: &str = "pvlabel";
const PATH: &str = "/pvlabel";

/// How long a cloud may take. The API server waits for longer, and would learn nothing from its own timeout.
const CLOUD_TIMEOUT: Duration = Duration::from_secs(4);

/// The webhook.
pub(crate) struct VolumeLabels(Vec<Arc<Cloud>>);

/// A cloud that recognizes the disk of a volume.
struct Candidate {
    cloud: Arc<Cloud>,
    provider: Arc<dyn CloudProvider>,
    volume: VolumeRef,
}

impl VolumeLabels {
    /// For the disks of these clouds.
    pub(crate) fn of(clouds: &[Arc<Cloud>]) -> Arc<dyn Webhook> {
        Arc::new(Self(clouds.to_vec()))
    }

    fn candidates(&self, request: &AdmissionRequest) -> Vec<Candidate> {
        let Some(spec) = request.object.get("spec").and_then(|spec| spec.as_object()) else {
            return Vec::new();
        };
        let mut candidates = Vec::new();
        for cloud in &self.0 {
            let provider = cloud.provider();
            let recognized = spec.iter().find_map(|(source, content)| {
                provider
                    .volumes()?
                    .recognize(&request.name, source, content)
            });
            if let Some(volume) = recognized {
                candidates.push(Candidate {
                    cloud: Arc::clone(cloud),
                    provider,
                    volume,
                });
            }
        }
        candidates
    }

    /// Why a cloud that may have the disk cannot be asked.
    fn unavailable(&self) -> Option<String> {
        self.0.iter().find_map(|cloud| {
            let why = cloud.availability.check().err()?;
            Some(format!("cloud {} did not answer: {why}", cloud.name))
        })
    }
}

impl Candidate {
    async fn place(&self) -> Result<VolumePlace, CloudError> {
        let Some(volumes) = self.provider.volumes() else {
            let why = "this cloud has no volumes";
            return Err(CloudError::new("find volume", ErrorKind::Unsupported, why));
        };
        let placed = tokio::time::timeout(CLOUD_TIMEOUT, volumes.place(&self.volume)).await;
        placed.unwrap_or_else(|_| {
            let why = format!("no response within {} s", CLOUD_TIMEOUT.as_secs());
            Err(CloudError::new("find volume", ErrorKind::Timeout, why))
        })
    }
}

#[async_trait]
impl Webhook for VolumeLabels {
    fn name(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &'static str {
        PATH
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        if request.operation != "CREATE" || plan::is_complete(&request.object) {
            return Ok(allowed(Vec::new()));
        }
        let candidates = self.candidates(request);
        if candidates.is_empty() {
            let is_of_a_cloud = plan::may_be_of_a_cloud(&request.object);
            let warning = self.unavailable().filter(|_| is_of_a_cloud);
            return Ok(allowed(warning.into_iter().collect()));
        }
        // Where disks of two accounts look alike, the one that has it answers.
        let places = join_all(candidates.iter().map(Candidate::place)).await;
        if let Some(place) = places.iter().find_map(|place| place.as_ref().ok()) {
            let patch = plan::patch(&request.object, place);
            return Ok(Admission::Allow {
                patch,
                warnings: Vec::new(),
            });
        }
        let failures = candidates.iter().zip(&places);
        let failures = failures.filter_map(|(candidate, place)| {
            let error = place.as_ref().err()?;
            let (cloud, disk) = (&candidate.cloud.name, &candidate.volume.disk);
            Some(format!("cloud {cloud}, disk {disk}: {error}"))
        });
        let why = failures.collect::<Vec<_>>().join("; ");
        let is_missing =
            |place: &Result<_, CloudError>| place.as_ref().is_err_and(CloudError::is_not_found);
        let is_proven = places.iter().all(is_missing) && self.unavailable().is_none();
        // A provisioner has just made its disk: the cloud may not show it yet.
        if is_proven && !plan::is_provisioned(&request.object) {
            let why = format!("the disk of this PersistentVolume does not exist: {why}");
            return Ok(Admission::Deny { why });
        }
        warn!(volume = request.name, err = why, "{VOLUME_NOT_LABELLED}");
        Ok(allowed(vec![format!("no zone and region labels: {why}")]))
    }
}

const fn allowed(warnings: Vec<String>) -> Admission {
    Admission::Allow {
        patch: Vec::new(),
        warnings,
    }
}
