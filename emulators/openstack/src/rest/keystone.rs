//! Logins, and the catalogue.

use cloudkeel_emulation::{Answer, Call, InProcess};
use http::{HeaderName, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::body;
use crate::OpenStackCloud;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::State;

/// Checks a password, a secret or a token, and gives out a token for the project that is asked for.
pub(crate) fn login(
    state: &mut State,
    call: &Call<Operation>,
    other: Option<&str>,
    now: Instant,
) -> Result<Answer, Refusal> {
    let auth = body(call, "auth")?;
    let text = |place: &str| {
        auth.pointer(place)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let good = [
        text("/identity/password/user/password"),
        text("/identity/application_credential/secret"),
        text("/identity/token/id"),
    ];
    if !good.contains(&OpenStackCloud::PASSWORD) {
        return Err(Refusal::new(
            401,
            "",
            "The request you have made requires authentication.",
        ));
    }
    let project = match (other, text("/scope/project/id")) {
        (Some(other), _) => other,
        (None, "") => OpenStackCloud::PROJECT,
        (None, asked) => asked,
    };
    if !state.projects.contains_key(project) {
        return Err(Refusal::new(401, "", "The project is not known."));
    }
    let token = format!("token-{}", state.ids.uuid());
    let end = now + state.settings.token_lifetime;
    state
        .sessions
        .insert(token.clone(), (project.to_owned(), end));
    let base = call.headers.get("host").and_then(|host| host.to_str().ok());
    let base = base.map_or_else(
        || InProcess::URL.to_owned(),
        |host| format!("http://{host}"),
    );
    let service = |kind: &str, path: &str| {
        let url = format!("{base}{path}");
        let region = OpenStackCloud::REGION;
        let endpoint =
            json!({"interface": "public", "region": region, "region_id": region, "url": url});
        json!({"type": kind, "name": kind, "id": kind, "endpoints": [endpoint]})
    };
    let catalog = [
        service("compute", "/compute/v2.1"),
        service("network", "/network"),
        service("load-balancer", "/load-balancer"),
        service("block-storage", "/volume/v3"),
        service("key-manager", "/key-manager"),
    ];
    let answer = json!({"token": {
        "expires_at": state.clock.time_at(end).to_string(),
        "project": {"id": project, "name": "demo"},
        "catalog": catalog,
    }});
    let header = HeaderName::from_static("x-subject-token");
    Ok(Answer::json(StatusCode::CREATED, &answer).with_header(header, &token))
}
