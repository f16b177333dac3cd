//! A Node as the API server wrote it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Metadata and spec in protobuf, with fields that cloudkeel does not know, so that the Node can be written by PUT.
/// Without what a PUT sets, and without managed fields, which the API server keeps by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Original {
    /// `metadata`, without labels and resource version.
    pub(crate) metadata: Base64,
    /// `spec`, without taints.
    pub(crate) spec: Base64,
}

/// Bytes that are base64 in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Base64(pub(crate) Bytes);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes.into()))
    }
}
