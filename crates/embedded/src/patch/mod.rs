//! Patches: JSON patch, merge patch and strategic merge patch.

mod keys;
mod merge;
mod order;
mod strategic;

use json_patch::PatchErrorKind;
use serde_json::Value;

use crate::kinds::Kind;
use crate::refusal::{Fault, Refusal};

/// The languages of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Merge,
    Strategic,
}

impl Language {
    /// The language that a content type stands for.
    pub(crate) fn of(content_type: &str) -> Result<Self, Refusal> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            other => Err(Refusal::unsupported_media_type(format!(
                "the body of the request was in an unknown format ({other}) - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json"
            ))),
        }
    }
}

/// The object after a patch.
pub(crate) fn apply(
    kind: &Kind,
    language: Language,
    object: &Value,
    patch: Value,
) -> Result<Value, Refusal> {
    match language {
        Language::Json => apply_json(kind, object, patch),
        Language::Merge if !patch.is_object() => Err(Refusal::bad_request(
            "error decoding patch: a merge patch is an object",
        )),
        Language::Merge => {
            let mut object = object.clone();
            merge::merge(&mut object, &patch);
            Ok(object)
        }
        Language::Strategic => strategic::merge(kind.kind, object, &patch),
    }
}

fn apply_json(kind: &Kind, object: &Value, patch: Value) -> Result<Value, Refusal> {
    let patch: json_patch::Patch = serde_json::from_value(patch)
        .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).map_err(|error| {
        let why = match error.kind {
            PatchErrorKind::TestFailed => format!("testing value {} failed", error.path),
            _ => error.to_string(),
        };
        let name = crate::object::name(&object).to_owned();
        let refusal = Refusal::invalid(kind, &name, &[Fault::invalid("patch", &Value::Null, &why)]);
        Refusal {
            message: format!(
                "the server rejected our request due to an error in our request: {why}"
            ),
            ..refusal
        }
    })?;
    Ok(object)
}

#[cfg(test)]
mod tests;
