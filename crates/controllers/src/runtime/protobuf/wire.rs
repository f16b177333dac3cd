//! The fields that are read of a Node, by their numbers in the protobuf of Kubernetes and by their names
//! in its JSON. All others are skipped while it is decoded. And those that are written.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use prost::Message;
use serde::{Serialize, Serializer};

use crate::view::{self, Original};

/// What is around every object.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Envelope {
    #[prost(message, required, tag = "1")]
    pub(super) kind: TypeMeta,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) raw: Bytes,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TypeMeta {
    #[prost(string, tag = "1")]
    pub(super) api_version: String,
    #[prost(string, tag = "2")]
    pub(super) kind: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchEvent {
    #[prost(string, tag = "1")]
    pub(super) kind: String,
    #[prost(message, required, tag = "2")]
    pub(super) object: RawExtension,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RawExtension {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) raw: Bytes,
}

impl TypeMeta {
    pub(super) fn node() -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct NodeList {
    #[prost(message, required, tag = "1")]
    pub(super) metadata: ListMeta,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(super) items: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    r#continue: String,
    #[prost(int64, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_item_count: Option<i64>,
}

/// A Node whose parts are not decoded yet.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RawNode {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) metadata: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) spec: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) status: Bytes,
}

#[derive(Clone, PartialEq, Serialize)]
pub(super) struct Node {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: NodeSpec,
    pub(super) status: NodeStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) original: Option<Original>,
}

/// A Node as it is written back. The API server keeps the status that is not there.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WrittenNode {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) metadata: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) spec: Vec<u8>,
}

/// What is written anew of the metadata.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ChangedMetadata {
    #[prost(string, tag = "6")]
    pub(super) resource_version: String,
    #[prost(btree_map = "string, string", tag = "11")]
    pub(super) labels: BTreeMap<String, String>,
}

/// What is written anew of the spec.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ChangedSpec {
    #[prost(string, tag = "3")]
    pub(super) provider_id: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) taints: Vec<Taint>,
}

/// An object of any kind, of which only the metadata was asked for; of them, the version is read.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
pub(super) struct PartialObjectMetadata {
    #[prost(message, required, tag = "1")]
    metadata: VersionMeta,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionMeta {
    #[prost(string, tag = "6")]
    resource_version: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Time::is_zero")]
    creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Time::is_zero")]
    deletion_timestamp: Option<Time>,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct NodeSpec {
    #[prost(string, tag = "1")]
    #[serde(rename = "podCIDR", skip_serializing_if = "String::is_empty")]
    pod_cidr: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "providerID", skip_serializing_if = "String::is_empty")]
    provider_id: String,
    #[prost(bool, tag = "4")]
    unschedulable: bool,
    #[prost(message, repeated, tag = "5")]
    taints: Vec<Taint>,
    #[prost(string, repeated, tag = "7")]
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Taint {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    value: String,
    #[prost(string, tag = "3")]
    effect: String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Time::is_zero")]
    time_added: Option<Time>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeStatus {
    #[prost(message, repeated, tag = "4")]
    conditions: Vec<NodeCondition>,
    #[prost(message, repeated, tag = "5")]
    addresses: Vec<NodeAddress>,
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    node_info: Option<NodeSystemInfo>,
}

impl NodeSpec {
    pub(super) fn has_taint(&self, key: &str) -> bool {
        self.taints.iter().any(|taint| taint.key == key)
    }
}

impl Taint {
    /// Nothing if its time is none that can be written.
    pub(super) fn of(taint: &view::Taint) -> Option<Self> {
        let time_added = match &taint.time_added {
            Some(text) => Some(Time::of(text.parse().ok()?)),
            None => None,
        };
        Some(Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
            time_added,
        })
    }
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeCondition {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Time::is_zero")]
    last_transition_time: Option<Time>,
    #[prost(string, tag = "5")]
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
struct NodeAddress {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    address: String,
}

#[derive(Clone, PartialEq, Eq, Message, Serialize)]
struct NodeSystemInfo {
    #[prost(string, tag = "2")]
    #[serde(rename = "systemUUID")]
    system_uuid: String,
}

/// What the API server says instead of an object.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    #[serde(rename = "status")]
    outcome: String,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(int32, tag = "6")]
    code: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl Time {
    fn of(time: Timestamp) -> Self {
        Self {
            seconds: time.as_second(),
            nanos: time.subsec_nanosecond(),
        }
    }

    /// Kubernetes writes no time at all as an empty one.
    #[expect(clippy::ref_option, reason = "serde asks it so")]
    fn is_zero(time: &Option<Self>) -> bool {
        time.is_none_or(|time| time.seconds == 0 && time.nanos == 0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = Timestamp::new(self.seconds, self.nanos).map_err(serde::ser::Error::custom)?;
        serializer.collect_str(&time)
    }
}
