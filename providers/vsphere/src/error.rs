//! What the refusals of vCenter mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{CodeTable, Refusal};
use cloudkeel_toolkit::xml::Element;

/// The name of a fault and its message.
fn read_fault(body: &[u8]) -> Option<Refusal> {
    let envelope = Element::parse(body).ok()?;
    let fault = envelope.at("Body/Fault")?;
    let detail = fault.at("detail").and_then(|it| it.children.first());
    let code = detail.map(|detail| match detail.attributes.get("type") {
        Some(name) => name.clone(),
        None => detail.name.trim_end_matches("Fault").to_owned(),
    });
    Some(Refusal {
        // A fault without a name, such as one of the SOAP layer itself, is one all the same.
        code: Some(code.unwrap_or_else(|| "Fault".to_owned())),
        message: fault.text_at("faultstring").map(str::to_owned),
        request_id: None,
    })
}

/// Without a session, vCenter may answer with objects that lack every property.
fn read_missing_session(body: &[u8]) -> Option<Refusal> {
    const FAULT: &[u8] = b"NotAuthenticated";
    if !body.windows(FAULT.len()).any(|window| window == FAULT) {
        return None;
    }
    let envelope = Element::parse(body).ok()?;
    let answer = envelope.at("Body")?.children.first()?;
    let mut missing = answer.all_at("returnval/objects/missingSet/fault/fault");
    let is_fault = |fault: &Element| {
        let name = fault.attributes.get("type");
        name.is_some_and(|name| name == "NotAuthenticated")
    };
    missing.any(is_fault).then(|| Refusal {
        code: Some("NotAuthenticated".to_owned()),
        message: Some("the session is not authenticated".to_owned()),
        request_id: None,
    })
}

/// The table of the SOAP API.
pub(crate) fn soap_refusals() -> CodeTable {
    CodeTable::read_by(read_fault)
        .in_success(read_missing_session)
        .all(
            &["NotAuthenticated", "InvalidLogin"],
            ErrorKind::Unauthenticated,
        )
        .all(
            &["NoPermission", "PasswordExpired", "RestrictedVersion"],
            ErrorKind::Denied,
        )
        // About an object by its reference. That a UUID has no machine is an empty answer.
        .on("ManagedObjectNotFound", ErrorKind::Incomplete)
        .all(
            &[
                "InvalidArgument",
                "InvalidProperty",
                "InvalidRequest",
                "InvalidType",
                "MethodNotFound",
                "NotSupported",
            ],
            ErrorKind::Invalid,
        )
}

/// The code and the first message.
fn read_rest_error(body: &[u8]) -> Option<Refusal> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let code = body.get("type")?.as_str()?.to_owned();
    let message = body.pointer("/value/messages/0/default_message");
    Some(Refusal {
        code: Some(code),
        message: message.and_then(|text| text.as_str()).map(str::to_owned),
        request_id: None,
    })
}

/// The table of the REST API, which serves tags. A tag that is gone proves nothing about a machine.
pub(crate) fn rest_refusals() -> CodeTable {
    CodeTable::read_by(read_rest_error)
        .on(
            "com.vmware.vapi.std.errors.unauthenticated",
            ErrorKind::Unauthenticated,
        )
        .on("com.vmware.vapi.std.errors.unauthorized", ErrorKind::Denied)
        .on(
            "com.vmware.vapi.std.errors.not_found",
            ErrorKind::Incomplete,
        )
        .on(
            "com.vmware.vapi.std.errors.service_unavailable",
            ErrorKind::Unavailable,
        )
}

#[cfg(test)]
mod tests;
