//! EBS volumes: the zone of each.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, Priority, VolumePlace, VolumeRef, Volumes};
use cloudkeel_toolkit::has_id;
use cloudkeel_toolkit::xml::Element;
use serde_json::Value;

use crate::account::Account;
use crate::client::{Call, FromXml};

has_id!(Volume.id: String);

const IN_TREE: &str = "awsElasticBlockStore";
const DRIVER: &str = "ebs.csi.aws.com";

/// The volumes of the account.
pub(crate) struct AwsVolumes(pub(crate) Arc<Account>);

struct Volume {
    id: String,
    zone: String,
}

impl FromXml for Volume {
    fn from_xml(element: &Element) -> Result<Self, String> {
        Ok(Self {
            id: element.value_at("volumeId")?,
            zone: element.value_at("availabilityZone")?,
        })
    }
}

#[async_trait]
impl Volumes for AwsVolumes {
    /// In the tree the ID is a URL such as `aws://us-east-1a/vol-1`, or bare.
    fn recognize(&self, name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        let handle = match source {
            IN_TREE => text("volumeID"),
            "csi" if text("driver") == Some(DRIVER) => text("volumeHandle"),
            _ => None,
        };
        let disk = handle?
            .rsplit('/')
            .next()
            .filter(|id| id.starts_with("vol-"))?;
        Some(VolumeRef {
            name: name.to_owned(),
            disk: disk.to_owned(),
        })
    }

    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError> {
        let call = Call::ec2("DescribeVolumes").list("VolumeId", [&volume.disk]);
        let found = self
            .0
            .api
            .all::<Volume>(&call, "volumeSet/item", Priority::Urgent);
        let found = found
            .await?
            .into_iter()
            .find(|found| found.id == volume.disk);
        let found = found.ok_or_else(|| {
            let message = format!("the answer does not show {}", volume.disk);
            CloudError::new(call.action, ErrorKind::Incomplete, message)
        })?;
        Ok(VolumePlace {
            zones: vec![found.zone],
            region: Some(self.0.region.clone()),
        })
    }
}
