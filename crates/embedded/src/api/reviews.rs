//! Token reviews, access reviews and token requests, which are answered and not stored.

use std::time::Duration;

use serde_json::{Value, json};

use super::EmbeddedApi;
use super::answer::Answer;
use super::state::{Token, wire_time};
use crate::access::{Attributes, Identity, new_token};
use crate::object::{at, put, text, texts};
use crate::refusal::Refusal;
use crate::request::{Incoming, Target};

const TOKEN_SECONDS: i64 = 3600;

impl EmbeddedApi {
    pub(super) fn review(
        &self,
        who: &Identity,
        group: &str,
        plural: &str,
        mut body: Value,
    ) -> Result<Answer, Refusal> {
        let status = match (group, plural) {
            ("authentication.k8s.io", "tokenreviews") => self.review_token(&body),
            ("authentication.k8s.io", "selfsubjectreviews") => json!({"userInfo": who.user_info()}),
            ("authorization.k8s.io", "selfsubjectaccessreviews") => self.review_access(who, &body),
            ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
                let subject = Identity {
                    name: text(&body, &["spec", "user"]).to_owned(),
                    groups: texts(&body, &["spec", "groups"]),
                };
                self.review_access(&subject, &body)
            }
            ("authorization.k8s.io", "selfsubjectrulesreviews") => json!({
                "incomplete": true,
                "resourceRules": [],
                "nonResourceRules": [],
            }),
            _ => return Err(Refusal::no_such_path()),
        };
        put(&mut body, &["status"], status);
        Ok(Answer::with(201, body))
    }

    fn review_token(&self, body: &Value) -> Value {
        match self.identify(text(body, &["spec", "token"])) {
            Some(identity) => json!({"authenticated": true, "user": identity.user_info()}),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        }
    }

    fn review_access(&self, who: &Identity, body: &Value) -> Value {
        let attributes = Attributes::of_review(at(body, &["spec", "resourceAttributes"]));
        let allowed = self.authorizer().allows(who, &attributes);
        json!({"allowed": allowed})
    }

    /// A token for a service account that exists.
    pub(super) fn create_token(
        &self,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let mut body = request.json()?;
        let mut state = self.state();
        let account = state.store.get(target.kind.storage, &target.key());
        account.ok_or_else(|| Refusal::not_found(target.kind, target.name()))?;
        let seconds = token_seconds(&body)?;
        let expires = self.now() + Duration::from_secs(seconds);
        let identity = Identity::service_account(target.namespace(), target.name());
        let token = new_token();
        let known = Token {
            identity,
            expires: Some(expires),
        };
        state.tokens.insert(token.clone(), known);
        let status = json!({"token": token, "expirationTimestamp": wire_time(expires)});
        put(&mut body, &["kind"], "TokenRequest");
        put(&mut body, &["apiVersion"], "authentication.k8s.io/v1");
        put(&mut body, &["spec", "expirationSeconds"], seconds);
        put(&mut body, &["status"], status);
        Ok(Answer::with(201, body))
    }
}

/// How long a token is to last, within what the API allows.
fn token_seconds(request: &Value) -> Result<u64, Refusal> {
    let path = ["spec", "expirationSeconds"];
    let asked = at(request, &path).as_i64();
    let seconds = u64::try_from(asked.unwrap_or(TOKEN_SECONDS)).unwrap_or_default();
    let why = match seconds {
        ..600 => "may not specify a duration less than 10 minutes",
        4_294_967_297.. => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(seconds),
    };
    let field = path.join(".");
    let message = format!(
        "TokenRequest.authentication.k8s.io \"\" is invalid: {field}: Invalid value: {}: {why}",
        at(request, &path)
    );
    Err(Refusal::invalid_request(message, &field))
}
