//! Faults by script.

use std::fmt::Display;
use std::time::Duration;

use cloudkeel_provider_local::wire::ErrorCode;
use serde::{Deserialize, Serialize};

use super::go_duration;
use super::operation::Operation;

/// Something that goes wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Fault {
    /// The cloud refuses with this status, and nothing happens.
    Status {
        /// The HTTP status.
        status: u16,
        /// The code in the body; by default the one that goes with the status.
        #[serde(default)]
        code: Option<ErrorCode>,
        /// Whole seconds for `Retry-After`.
        #[serde(default)]
        retry_after_seconds: Option<u64>,
    },
    /// Nobody answers, and nothing happens.
    NoAnswer,
    /// The connection breaks, and nothing happens.
    BrokenBefore,
    /// It happens, and then the connection breaks: the answer is lost.
    BrokenAfter,
    /// A page has fewer things than its total announces.
    TruncatedPage,
    /// A page says that it is the last, while its total says otherwise.
    LostNextLink,
    /// A list is empty and says that there is nothing.
    EmptyList,
    /// The answer is JSON that ends in the middle.
    MalformedJson,
    /// The answer is a page of HTML with status 200.
    Html,
    /// The answer is empty, with status 200.
    EmptyBody,
    /// A read shows what was this long ago.
    Stale {
        /// How long.
        #[serde(with = "go_duration")]
        by: Duration,
    },
    /// The answer takes this much longer.
    Slow {
        /// How much.
        #[serde(with = "go_duration")]
        by: Duration,
    },
    /// The answer is that of another project.
    OtherProject {
        /// Which.
        project: String,
    },
}

impl Fault {
    /// A refusal with this status and the code that goes with it.
    pub const fn status(status: u16) -> Self {
        Self::Status {
            status,
            code: None,
            retry_after_seconds: None,
        }
    }

    /// A refusal because of too many calls.
    pub const fn too_many_calls(retry_after_seconds: Option<u64>) -> Self {
        Self::Status {
            status: 429,
            code: None,
            retry_after_seconds,
        }
    }
}

/// The code that goes with a status.
pub(super) const fn code_of(status: u16) -> ErrorCode {
    match status {
        401 => ErrorCode::Unauthorized,
        403 => ErrorCode::Forbidden,
        404 => ErrorCode::NotFound,
        409 | 412 => ErrorCode::Conflict,
        423 => ErrorCode::Locked,
        429 => ErrorCode::RateLimited,
        400..=499 => ErrorCode::Invalid,
        _ => ErrorCode::Unavailable,
    }
}

/// Which calls meet a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultMatch {
    operation: Option<Operation>,
    token: Option<String>,
    resource: Option<String>,
    /// Only calls that could change something.
    mutating: bool,
}

impl FaultMatch {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only calls with this token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Only calls about the thing of this ID.
    #[must_use]
    pub fn about(mut self, resource: impl Display) -> Self {
        self.resource = Some(resource.to_string());
        self
    }

    /// Only calls that could change something.
    #[must_use]
    pub const fn mutating(mut self) -> Self {
        self.mutating = true;
        self
    }

    fn fits(&self, operation: Operation, token: &str, resource: Option<&str>) -> bool {
        (!self.mutating || operation.is_mutating())
            && self.operation.is_none_or(|wanted| wanted == operation)
            && self.token.as_deref().is_none_or(|wanted| wanted == token)
            && (self.resource.is_none() || self.resource.as_deref() == resource)
    }
}

impl From<Operation> for FaultMatch {
    fn from(operation: Operation) -> Self {
        Self {
            operation: Some(operation),
            ..Self::default()
        }
    }
}

/// One line of the script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Which calls.
    #[serde(default)]
    pub on: FaultMatch,
    /// How many of them; `None` is all.
    #[serde(default)]
    pub times: Option<u64>,
    /// What goes wrong.
    pub fault: Fault,
}

/// The script: the first line that fits a call is its fault.
#[derive(Debug, Default)]
pub(super) struct FaultScript(Vec<FaultRule>);

impl FaultScript {
    pub(super) fn add(&mut self, rule: FaultRule) {
        self.0.push(rule);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn rules(&self) -> &[FaultRule] {
        &self.0
    }

    /// The fault that a call meets, if any. It is used up.
    pub(super) fn meet(
        &mut self,
        operation: Operation,
        token: &str,
        resource: Option<&str>,
    ) -> Option<Fault> {
        let rule = self
            .0
            .iter_mut()
            .filter(|rule| rule.times != Some(0))
            .find(|rule| rule.on.fits(operation, token, resource))?;
        rule.times = rule.times.map(|times| times - 1);
        let fault = rule.fault.clone();
        self.0.retain(|rule| rule.times != Some(0));
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_used_up_in_order_and_only_by_calls_that_fit() {
        let mut script = FaultScript::default();
        let rule = |on: FaultMatch, times, status| FaultRule {
            on,
            times,
            fault: Fault::status(status),
        };
        script.add(rule(Operation::GetMachine.into(), Some(1), 500));
        script.add(rule(FaultMatch::any().about(7), Some(1), 501));
        script.add(rule(FaultMatch::any().mutating(), Some(1), 503));
        script.add(rule(FaultMatch::any().with_token("t2"), None, 502));
        for (case, operation, token, resource, expected) in [
            (
                "another operation",
                Operation::ListMachines,
                "t1",
                None,
                None,
            ),
            ("once", Operation::GetMachine, "t1", Some("7"), Some(500)),
            (
                "by resource",
                Operation::GetMachine,
                "t1",
                Some("7"),
                Some(501),
            ),
            ("used up", Operation::GetMachine, "t1", Some("7"), None),
            ("a change", Operation::PowerOff, "t1", Some("7"), Some(503)),
            ("always", Operation::GetMachine, "t2", None, Some(502)),
            ("again", Operation::ListRoutes, "t2", None, Some(502)),
        ] {
            let met = script.meet(operation, token, resource);
            assert_eq!(met, expected.map(Fault::status), "{case}");
        }
        assert_eq!(script.rules().len(), 1);
    }
}
