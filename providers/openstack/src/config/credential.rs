//! Who logs in, and for which project: from settings to the body of a login. Pure.

use cloudkeel_api::{Problem, Problems, Secret};
use serde::{Serialize, Serializer};

use super::AuthSettings;

/// Everything that a login takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) url: String,
    pub(crate) identity: Identity,
    pub(crate) scope: Option<Scope>,
}

/// How a login proves who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Identity {
    Password { user: User },
    Token { id: Exposed },
    ApplicationCredential(AppCredential),
}

impl Identity {
    /// Its name in a login.
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Password { .. } => "password",
            Self::Token { .. } => "token",
            Self::ApplicationCredential(_) => "application_credential",
        }
    }
}

/// A user, by ID or by name and domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct User {
    id: Option<String>,
    name: Option<String>,
    domain: Option<Domain>,
    password: Option<Exposed>,
}

/// An application credential, by ID or by name and user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AppCredential {
    id: Option<String>,
    name: Option<String>,
    secret: Exposed,
    user: Option<User>,
}

/// A domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Domain {
    Id(String),
    Name(String),
}

/// What a token is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Project {
        id: Option<String>,
        name: Option<String>,
        domain: Option<Domain>,
    },
    Domain(Domain),
    #[serde(rename = "OS-TRUST:trust")]
    Trust {
        id: String,
    },
}

/// A secret that a body needs as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exposed(pub(crate) Secret);

impl Serialize for Exposed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl Credential {
    /// Which of the settings are used, as the Go CCM chooses them. Everything that is missing is reported.
    pub(crate) fn resolve(auth: &AuthSettings) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        let scope = scope(auth, &mut problems);
        let identity = identity(auth, &mut problems);
        let url = auth.url.clone().unwrap_or_default();
        let url = url.trim_end_matches('/');
        if url.is_empty() {
            problems.push(Problem::new("auth-url", "is required"));
        }
        if url.ends_with("/v2.0") {
            let expected =
                "an address that ends in `/v3`: OpenStack removed version 2.0 of Keystone in 2018";
            problems.push(Problem::unexpected("auth-url", url, expected));
        }
        problems.into_result()?;
        let base = url.trim_end_matches("/v3").trim_end_matches('/');
        Ok(Self {
            url: format!("{base}/v3"),
            identity,
            scope,
        })
    }
}

fn identity(auth: &AuthSettings, problems: &mut Problems) -> Identity {
    let secret = |secret: &Option<Secret>| Exposed(secret.clone().unwrap_or_default());
    if auth.token.is_some() {
        if auth.project_id.is_none() && auth.project_name.is_none() && auth.trust_id.is_none() {
            problems.push(Problem::new(
                "token",
                "needs a project: `tenant-id` or `tenant-name`",
            ));
        }
        return Identity::Token {
            id: secret(&auth.token),
        };
    }
    if has_app_credential(auth) {
        let user = auth.app_id.is_none().then(|| user(auth, None, problems));
        if auth.app_id.is_none() && auth.app_name.is_none() {
            let message = "needs `application-credential-id` or `application-credential-name`";
            problems.push(Problem::new("application-credential-secret", message));
        }
        return Identity::ApplicationCredential(AppCredential {
            id: auth.app_id.clone(),
            name: auth.app_name.clone().filter(|_| auth.app_id.is_none()),
            secret: secret(&auth.app_secret),
            user,
        });
    }
    let password = auth.trustee_password.as_ref().or(auth.password.as_ref());
    let Some(password) = password else {
        let message = "is required, or an application credential, or a token";
        problems.push(Problem::new("password", message));
        return Identity::Token { id: secret(&None) };
    };
    let user = match &auth.trustee_id {
        Some(trustee) => User {
            id: Some(trustee.clone()),
            name: None,
            domain: None,
            password: Some(Exposed(password.clone())),
        },
        None => user(auth, Some(password), problems),
    };
    Identity::Password { user }
}

/// A password wins over an application credential.
const fn has_app_credential(auth: &AuthSettings) -> bool {
    auth.password.is_none() && auth.trustee_password.is_none() && auth.app_secret.is_some()
}

fn user(auth: &AuthSettings, password: Option<&Secret>, problems: &mut Problems) -> User {
    let domain = domain(auth.user_domain_id.as_ref(), auth.user_domain_name.as_ref());
    let domain = domain.or_else(|| default_domain(auth));
    match (&auth.user_id, &auth.username) {
        (Some(_), Some(_)) => {
            problems.push(Problem::new(
                "user-id",
                "give either this or `username`, not both",
            ));
        }
        (None, None) => problems.push(Problem::new("username", "is required, or `user-id`")),
        (None, Some(_)) if domain.is_none() => {
            let message = "needs a domain: `user-domain-id`, `user-domain-name`, `domain-id` or `domain-name`";
            problems.push(Problem::new("username", message));
        }
        _ => {}
    }
    User {
        id: auth.user_id.clone(),
        name: auth.username.clone(),
        domain: domain.filter(|_| auth.user_id.is_none()),
        password: password.cloned().map(Exposed),
    }
}

fn scope(auth: &AuthSettings, problems: &mut Problems) -> Option<Scope> {
    if let Some(id) = &auth.trust_id {
        return Some(Scope::Trust { id: id.clone() });
    }
    if auth.token.is_none() && has_app_credential(auth) {
        return None;
    }
    if let Some(id) = &auth.project_id {
        return Some(Scope::Project {
            id: Some(id.clone()),
            name: None,
            domain: None,
        });
    }
    let Some(name) = &auth.project_name else {
        return default_domain(auth).map(Scope::Domain);
    };
    let domain = domain(
        auth.project_domain_id.as_ref(),
        auth.project_domain_name.as_ref(),
    );
    let domain = domain.or_else(|| default_domain(auth));
    if domain.is_none() {
        let message = "needs a domain: `tenant-domain-id`, `tenant-domain-name`, `domain-id` or `domain-name`";
        problems.push(Problem::new("tenant-name", message));
    }
    Some(Scope::Project {
        id: None,
        name: Some(name.clone()),
        domain,
    })
}

fn default_domain(auth: &AuthSettings) -> Option<Domain> {
    domain(auth.domain_id.as_ref(), auth.domain_name.as_ref())
}

/// An ID says more than a name.
fn domain(id: Option<&String>, name: Option<&String>) -> Option<Domain> {
    let id = id.cloned().map(Domain::Id);
    id.or_else(|| name.cloned().map(Domain::Name))
}
