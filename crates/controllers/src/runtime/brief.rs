//! Errors of the Kubernetes client in one line: the client itself prints the whole Status, or nothing of
//! why there was no answer.

use std::fmt;

use kube::core::Status;
use kube::runtime::watcher;

/// An error, with code, reason and message of the API server and nothing else.
pub struct Brief<'a, E>(pub &'a E);

impl fmt::Display for Brief<'_, kube::Error> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            kube::Error::Api(status) => Brief(status.as_ref()).fmt(f),
            other => f.write_str(&with_causes(other)),
        }
    }
}

/// An error with what it came from, down to the word of the system, each once.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text.push_str(": ");
            text.push_str(&why);
        }
        cause = error.source();
    }
    text
}

impl fmt::Display for Brief<'_, Status> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status {
            code,
            reason,
            message,
            ..
        } = self.0;
        write!(f, "{code}")?;
        if !reason.is_empty() {
            write!(f, " {reason}")?;
        }
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Brief<'_, watcher::Error> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            watcher::Error::InitialListFailed(error) => write!(f, "not listed: {}", Brief(error)),
            watcher::Error::WatchStartFailed(error) => write!(f, "not watched: {}", Brief(error)),
            watcher::Error::WatchFailed(error) => write!(f, "watch ended: {}", Brief(error)),
            watcher::Error::WatchError(status) => {
                write!(f, "watch ended: {}", Brief(status.as_ref()))
            }
            other @ watcher::Error::NoResourceVersion => other.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no connection")]
    struct Lost(#[source] std::io::Error);

    #[test]
    fn code_reason_and_message_are_all_that_is_printed() {
        let status = |json: serde_json::Value| -> kube::Error {
            let status: Status = serde_json::from_value(json).unwrap();
            kube::Error::Api(Box::new(status))
        };
        let denied = status(serde_json::json!({
            "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "nodes is forbidden", "details": {"kind": "nodes"},
        }));
        assert_eq!(
            Brief(&denied).to_string(),
            "403 Forbidden: nodes is forbidden"
        );
        let bare = status(serde_json::json!({"code": 500}));
        assert_eq!(Brief(&bare).to_string(), "500");
        assert_eq!(
            Brief(&watcher::Error::InitialListFailed(denied)).to_string(),
            "not listed: 403 Forbidden: nodes is forbidden"
        );
        let other = kube::Error::TlsRequired;
        assert_eq!(Brief(&other).to_string(), other.to_string());
    }

    #[test]
    fn where_no_answer_came_the_cause_is_told_down_to_the_word_of_the_system() {
        let refused = std::io::Error::from_raw_os_error(111);
        let lost = std::io::Error::other(Lost(refused));
        assert_eq!(
            Brief(&kube::Error::Service(Box::new(lost))).to_string(),
            "ServiceError: no connection: Connection refused (os error 111)"
        );
    }
}
