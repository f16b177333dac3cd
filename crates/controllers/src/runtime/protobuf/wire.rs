//! The fields of a Node that are read or written, by their numbers in the protobuf of Kubernetes and their names in its
//! JSON. The decoder skips all others.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use prost::Message;
use serde::{Serialize, Serializer};

use crate::view::Original;

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
}

/// A Node whose parts are not decoded yet, or are encoded already. The API server keeps a status that is not there.
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
    pub(super) original: Option<Original>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectMeta {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) uid: String,
    #[prost(string, tag = "6")]
    pub(super) resource_version: String,
    #[prost(message, optional, tag = "8")]
    pub(super) creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    pub(super) deletion_timestamp: Option<Time>,
    #[prost(btree_map = "string, string", tag = "11")]
    pub(super) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct NodeSpec {
    #[prost(string, tag = "3")]
    #[serde(rename = "providerID")]
    pub(super) provider_id: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) taints: Vec<Taint>,
    #[prost(string, repeated, tag = "7")]
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Taint {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    value: String,
    #[prost(string, tag = "3")]
    effect: String,
    #[prost(message, optional, tag = "4")]
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
    node_info: Option<NodeSystemInfo>,
}

impl From<&v1::Taint> for Taint {
    fn from(taint: &v1::Taint) -> Self {
        Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
            time_added: taint.time_added.as_ref().map(|time| Time::of(time.0)),
        }
    }
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeCondition {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(string, tag = "6")]
    message: String,
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
pub(super) struct Time {
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
}

/// Kubernetes writes no time at all as an empty one.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Self::default() {
            return serializer.serialize_none();
        }
        let time = Timestamp::new(self.seconds, self.nanos).map_err(serde::ser::Error::custom)?;
        serializer.collect_str(&time)
    }
}
