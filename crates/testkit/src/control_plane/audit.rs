//! Writes by user, from the audit log of the API server.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{ControlPlane, ControlPlaneError};

/// Every request that could change something, once it was answered.
const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "None", "verbs": ["get", "list", "watch"]},
    {"level": "Metadata"}
  ]
}"#;

const LOG: &str = "audit.log";

/// A request that could change something, whether or not it was allowed to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Write {
    /// `create`, `update`, `patch` or `delete`.
    pub verb: String,
    /// Of what, such as `services/status`.
    pub resource: String,
    /// Where; empty for what is in no namespace.
    pub namespace: String,
    /// Of which one; empty where the API server is to choose.
    pub name: String,
    /// What the API server answered.
    pub code: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    object_ref: Option<Object>,
    response_status: Option<Status>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Object {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct Status {
    code: u16,
}

/// Writes the policy into the directory of kube-apiserver, and returns the flags for it.
pub(super) fn flags(dir: &Path) -> io::Result<[String; 2]> {
    let policy = dir.join("audit-policy.json");
    std::fs::write(&policy, POLICY)?;
    Ok([
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log_in(dir).display()),
    ])
}

fn log_in(dir: &Path) -> PathBuf {
    dir.join(LOG)
}

impl ControlPlane {
    /// Everything that this user has written since the start, in order. A service account is the user
    /// `system:serviceaccount:<namespace>:<name>`.
    ///
    /// It needs a control plane that was [started with a log](Self::start_audited).
    pub fn writes_of(&self, user: &str) -> Result<Vec<Write>, ControlPlaneError> {
        let log = log_in(&self.run_dir().join(super::Tool::KubeApiserver.name()));
        let text = std::fs::read_to_string(log).map_err(ControlPlaneError::io(
            "read the audit log, which only a control plane of `start_audited` has",
        ))?;
        Ok(writes(&text, user))
    }
}

/// The last line may be on its way to the file still; it is read the next time.
fn writes(log: &str, user: &str) -> Vec<Write> {
    let entries = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let own = entries.filter(|entry: &Entry| entry.user.username == user);
    own.map(|entry| {
        let object = entry.object_ref.unwrap_or_default();
        let resource = match object.subresource.as_str() {
            "" => object.resource,
            part => format!("{}/{part}", object.resource),
        };
        Write {
            verb: entry.verb,
            resource,
            namespace: object.namespace,
            name: object.name,
            code: entry.response_status.map_or(0, |status| status.code),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_listed_by_user_and_by_subresource() {
        let log = [
            r#"{"verb":"patch","user":{"username":"a"},"objectRef":{"resource":"nodes","name":"n","subresource":"status"},"responseStatus":{"code":200}}"#,
            r#"{"verb":"delete","user":{"username":"b"},"objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":200}}"#,
            r#"{"verb":"create","user":{"username":"a"},"objectRef":{"resource":"events","namespace":"default"},"responseStatus":{"code":403}}"#,
            r#"{"verb":"create","user":{"user"#,
        ]
        .join("\n");
        let write = |verb: &str, resource: &str, namespace: &str, name: &str, code| Write {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            code,
        };
        let found = writes(&log, "a");
        assert_eq!(
            found,
            [
                write("patch", "nodes/status", "", "n", 200),
                write("create", "events", "default", "", 403),
            ]
        );
    }
}
