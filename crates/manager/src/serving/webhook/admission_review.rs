//! `AdmissionReview` requests and responses.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cloudkeel_api::{Admission, AdmissionRequest, PatchOperation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    #[serde(default)]
    request: Option<Value>,
}

/// The request inside a review, or what is wrong with it.
pub(super) fn parse_review(body: &[u8]) -> Result<AdmissionRequest, String> {
    if body.is_empty() {
        return Err("admission request HTTP body is empty".to_owned());
    }
    let undecodable =
        |why: String| format!("could not deserialize incoming admission review: {why}");
    let review: Review =
        serde_json::from_slice(body).map_err(|error| undecodable(error.to_string()))?;
    let Review {
        api_version,
        kind,
        request,
    } = review;
    if api_version != API_VERSION || kind != KIND {
        let why = format!("it is a {kind} of {api_version}, not a {KIND} of {API_VERSION}");
        return Err(undecodable(why));
    }
    let request = request.ok_or("admission review can't be used: Request field is nil")?;
    serde_json::from_value(request).map_err(|error| undecodable(error.to_string()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionResponseReview {
    kind: &'static str,
    api_version: &'static str,
    response: Response,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Refusal>,
    /// Base64 of the operations as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Refusal {
    status: &'static str,
    message: String,
    reason: &'static str,
    code: u16,
}

/// The review that is sent as the response.
pub(super) fn answer(uid: String, admission: Admission) -> AdmissionResponseReview {
    let response = match admission {
        Admission::Allow { patch, warnings } => Response {
            allowed: true,
            patch: encoded(&patch),
            patch_type: (!patch.is_empty()).then_some("JSONPatch"),
            warnings,
            ..Response::default()
        },
        Admission::Deny { why } => Response {
            allowed: false,
            status: Some(Refusal {
                status: "Failure",
                message: why,
                reason: "Forbidden",
                code: 403,
            }),
            ..Response::default()
        },
    };
    AdmissionResponseReview {
        kind: KIND,
        api_version: API_VERSION,
        response: Response { uid, ..response },
    }
}

fn encoded(patch: &[PatchOperation]) -> Option<String> {
    let operations = json!(patch).to_string();
    (!patch.is_empty()).then(|| BASE64_STANDARD.encode(operations))
}
