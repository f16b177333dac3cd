//! A Node as the API server wrote it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Metadata and spec in protobuf, also what nobody here knows of, so that the Node can be written back whole.
/// Without what a write says anew, and without managed fields, which the API server keeps by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Original {
    /// `metadata`, without labels and resource version.
    pub(crate) metadata: Text,
    /// `spec`, without taints.
    pub(crate) spec: Text,
}

/// Bytes that are text in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}
