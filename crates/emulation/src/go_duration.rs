//! Durations as people write them in settings and scripts: `1m30s`.

use std::time::Duration;

use cloudkeel_api::{format_go_duration, parse_go_duration};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes it.
pub fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format_go_duration(*value))
}

/// Reads it.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_go_duration(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "{text:?}: expected a duration such as `10s` or `500ms`"
        ))
    })
}
