//! Errors as text: those of the Kubernetes client in one line, and those of a cloud for an Event and for a log.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Problems, format_go_duration, one_line};
use kube::core::Status;
use kube::runtime::watcher;

/// As many bytes as a message of a failure or an Event has at most. A condition may have eight times as many.
pub(super) const LONGEST_MESSAGE: usize = 4096;

/// An error of the Kubernetes client in one line: code, reason and message of the API server, or why there was no
/// answer. The client itself prints the whole Status, or nothing of the sources.
pub struct ErrorText<'a, E>(pub &'a E);

impl fmt::Display for ErrorText<'_, kube::Error> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            kube::Error::Api(status) => ErrorText(status.as_ref()).fmt(f),
            other => f.write_str(&with_causes(other)),
        }
    }
}

/// An error with its sources, down to that of the operating system, each once.
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

impl fmt::Display for ErrorText<'_, Status> {
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

impl fmt::Display for ErrorText<'_, watcher::Error> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            watcher::Error::InitialListFailed(error) => {
                write!(f, "failed to list: {}", ErrorText(error))
            }
            watcher::Error::WatchStartFailed(error) => {
                write!(f, "failed to watch: {}", ErrorText(error))
            }
            watcher::Error::WatchFailed(error) => write!(f, "watch ended: {}", ErrorText(error)),
            watcher::Error::WatchError(status) => {
                write!(f, "watch ended: {}", ErrorText(status.as_ref()))
            }
            other @ watcher::Error::NoResourceVersion => other.fmt(f),
        }
    }
}

/// Why something failed.
///
/// Printed as in an Event: the cause and what to do about it, in the same words as long as the cause is the same, so
/// that one outage is one Event. The log and `/status` show it [in full](Self::in_full), with what differs from one
/// attempt to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureMessage {
    text: String,
    /// The same with which request it was and how often it was sent.
    with_details: String,
    advice: Option<&'static str>,
    next_try: Option<Duration>,
}

impl FailureMessage {
    /// A cloud's error.
    pub fn from_cloud(error: &CloudError) -> Self {
        Self {
            text: shortened(error.cause()),
            with_details: shortened(error.to_string()),
            advice: error.kind().advice(),
            next_try: None,
        }
    }

    /// All problems of a Service in one line.
    pub fn from_problems(problems: &Problems) -> Self {
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        Self {
            advice: ErrorKind::Invalid.advice(),
            ..Self::from_text(texts.join("; "))
        }
    }

    /// Any other text, such as that of a refused write.
    pub fn from_text(text: impl fmt::Display) -> Self {
        let text = shortened(text.to_string());
        Self {
            with_details: text.clone(),
            text,
            advice: None,
            next_try: None,
        }
    }

    /// Names the cloud in which it went wrong.
    #[must_use]
    pub fn in_cloud(mut self, cloud: &str) -> Self {
        self.text = format!("cloud {cloud}: {}", self.text);
        self.with_details = format!("cloud {cloud}: {}", self.with_details);
        self
    }

    /// Says when it is tried again.
    #[must_use]
    pub const fn with_next_try(mut self, after: Duration) -> Self {
        self.next_try = Some(after);
        self
    }

    /// With everything that differs from one attempt to the next.
    pub fn in_full(&self) -> String {
        let mut text = self.with_details.clone();
        text.extend(self.advice.map(|advice| format!("; {advice}")));
        let next_try = self.next_try.map(whole_seconds);
        text.extend(next_try.map(|after| format!("; next try in {after}")));
        text
    }
}

impl fmt::Display for FailureMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// On one line, and not longer than logs, conditions and Events are: annotations and clouds may say more.
fn shortened(text: String) -> String {
    match one_line(&text, LONGEST_MESSAGE) {
        Cow::Owned(line) => line,
        Cow::Borrowed(_) => text,
    }
}

/// Rounded up.
fn whole_seconds(duration: Duration) -> String {
    let up = u64::from(duration.subsec_nanos() > 0);
    format_go_duration(Duration::from_secs(duration.as_secs().saturating_add(up)))
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::Problem;

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
            ErrorText(&denied).to_string(),
            "403 Forbidden: nodes is forbidden"
        );
        let bare = status(serde_json::json!({"code": 500}));
        assert_eq!(ErrorText(&bare).to_string(), "500");
        assert_eq!(
            ErrorText(&watcher::Error::InitialListFailed(denied)).to_string(),
            "failed to list: 403 Forbidden: nodes is forbidden"
        );
        let other = kube::Error::TlsRequired;
        assert_eq!(ErrorText(&other).to_string(), other.to_string());
    }

    #[test]
    fn without_an_answer_the_sources_are_printed_down_to_the_operating_system() {
        let refused = std::io::Error::from_raw_os_error(111);
        let lost = std::io::Error::other(Lost(refused));
        assert_eq!(
            ErrorText(&kube::Error::Service(Box::new(lost))).to_string(),
            "ServiceError: no connection: Connection refused (os error 111)"
        );
    }

    /// The same outage, with attempts that differ in all that can differ.
    fn outage(attempts: u32) -> FailureMessage {
        let error = CloudError::new(
            "list servers",
            ErrorKind::Unavailable,
            "out of order (HTTP 503)",
        )
        .with_details(format!(
            "GET /servers, {attempts} attempts in {attempts}.0s"
        ))
        .with_request_id(format!("r-{attempts}"));
        FailureMessage::from_cloud(&error)
            .in_cloud("fsn")
            .with_next_try(Duration::from_millis(9_500 * u64::from(attempts)))
    }

    #[test]
    fn one_outage_has_one_text_and_the_log_has_all_of_it() {
        assert_eq!(outage(1).to_string(), outage(4).to_string());
        assert_eq!(
            outage(1).to_string(),
            "cloud fsn: list servers: out of order (HTTP 503)"
        );
        assert_eq!(
            outage(4).in_full(),
            "cloud fsn: list servers: out of order (HTTP 503) (GET /servers, 4 attempts in 4.0s) \
             (request r-4); next try in 38s"
        );
    }

    #[test]
    fn the_advice_is_in_both() {
        for (kind, advice) in [
            (
                ErrorKind::Unauthenticated,
                Some("check the cloud's credential"),
            ),
            (
                ErrorKind::Denied,
                Some("give the cloud's credential this permission"),
            ),
            (
                ErrorKind::LimitExceeded,
                Some("raise the limit in the cloud, or delete unused resources"),
            ),
            (
                ErrorKind::Invalid,
                Some("needs a change of the Service or the configuration"),
            ),
            (ErrorKind::Unavailable, None),
            (ErrorKind::Timeout, None),
        ] {
            let cause = FailureMessage::from_cloud(&CloudError::new("create", kind, "no"));
            let expected = match advice {
                Some(advice) => format!("create: no; {advice}"),
                None => "create: no".to_owned(),
            };
            assert_eq!(cause.to_string(), expected, "{kind}");
            assert_eq!(cause.in_full(), expected, "{kind}");
        }
    }

    #[test]
    fn what_annotations_and_clouds_say_is_shortened_and_on_one_line() {
        let long = format!("a\nE1119 forged line\u{1b}[2J{}", "x".repeat(300_000));
        let of_cloud = CloudError::invalid("create", long.clone());
        for message in [
            FailureMessage::from_cloud(&of_cloud),
            FailureMessage::from_text(&long),
        ] {
            for shown in [message.to_string(), message.in_full()] {
                assert!(
                    shown.contains(r"a\nE1119 forged line\u{1b}[2Jxxx"),
                    "{shown}"
                );
                assert!(shown.len() < LONGEST_MESSAGE + 200, "{}", shown.len());
            }
        }
    }

    #[test]
    fn all_problems_are_on_one_line() {
        let mut problems = Problems::new();
        problems.push(Problem::new("a", "is missing"));
        problems.push(Problem::new("b", "is missing"));
        assert_eq!(
            FailureMessage::from_problems(&problems).to_string(),
            "a: is missing; b: is missing; needs a change of the Service or the configuration"
        );
    }
}
