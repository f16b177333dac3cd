//! Faults by script.

use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::HetznerCloud;
use super::operation::Operation;
use crate::simulated_cloud::go_duration;

/// Something that goes wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Fault {
    /// The cloud refuses, and nothing happens.
    Refused {
        /// The code in the body.
        code: String,
        /// The HTTP status; by default the one that goes with the code.
        #[serde(default)]
        status: Option<u16>,
    },
    /// Something before the cloud answers with this status and a page of HTML; nothing happens.
    Bare {
        /// The HTTP status.
        status: u16,
    },
    /// It is accepted, and then its action ends in this error without any effect.
    ActionFails {
        /// The code of the action's error.
        code: String,
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
    LostNextPage,
    /// A list is empty and says that there is nothing.
    EmptyList,
    /// The answer is JSON that ends in the middle.
    MalformedJson,
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
    /// A refusal with this code and the status that goes with it.
    pub fn code(code: impl Into<String>) -> Self {
        Self::Refused {
            code: code.into(),
            status: None,
        }
    }

    /// A refusal with this status and the code that usually goes with it.
    pub fn status(status: u16) -> Self {
        Self::Refused {
            code: super::refusal::code_of(status).to_owned(),
            status: Some(status),
        }
    }

    /// An action that ends in this error.
    pub fn action_fails(code: impl Into<String>) -> Self {
        Self::ActionFails { code: code.into() }
    }
}

/// Which calls meet a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultMatch {
    operation: Option<Operation>,
    token: Option<String>,
    resource: Option<String>,
    /// The number of the page that is asked for.
    page: Option<u64>,
    /// Only calls that could change something.
    mutating: bool,
}

impl FaultMatch {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only calls with this token, or by this Robot user.
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

    /// Only calls for this page of a list.
    #[must_use]
    pub const fn for_page(mut self, page: u64) -> Self {
        self.page = Some(page);
        self
    }

    /// Only calls that could change something.
    #[must_use]
    pub const fn mutating(mut self) -> Self {
        self.mutating = true;
        self
    }

    fn fits(&self, call: &Suspect<'_>) -> bool {
        (!self.mutating || call.operation.is_mutating())
            && self.operation.is_none_or(|wanted| wanted == call.operation)
            && self
                .token
                .as_deref()
                .is_none_or(|wanted| wanted == call.token)
            && (self.resource.is_none() || self.resource.as_deref() == call.resource)
            && self.page.is_none_or(|wanted| wanted == call.page)
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

/// A call that may meet a fault.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspect<'a> {
    pub(super) operation: Operation,
    pub(super) token: &'a str,
    pub(super) resource: Option<&'a str>,
    pub(super) page: u64,
}

/// The script: the first line that fits a call is its fault.
#[derive(Debug, Default)]
pub(super) struct FaultScript(Vec<FaultRule>);

impl FaultScript {
    /// The fault that a call meets, if any. It is used up.
    pub(super) fn meet(&mut self, call: &Suspect<'_>) -> Option<Fault> {
        let rule = self
            .0
            .iter_mut()
            .filter(|rule| rule.times != Some(0))
            .find(|rule| rule.on.fits(call))?;
        rule.times = rule.times.map(|times| times - 1);
        let fault = rule.fault.clone();
        self.0.retain(|rule| rule.times != Some(0));
        Some(fault)
    }
}

/// The script of faults of an emulator. The first line that fits a call is its fault.
#[derive(Debug)]
pub struct Faults<'a> {
    pub(super) cloud: &'a HetznerCloud,
}

impl Faults<'_> {
    /// The next such call goes wrong.
    pub fn once(&self, on: impl Into<FaultMatch>, fault: Fault) -> &Self {
        self.times(on, 1, fault)
    }

    /// The next `times` such calls go wrong.
    pub fn times(&self, on: impl Into<FaultMatch>, times: u64, fault: Fault) -> &Self {
        self.add(FaultRule {
            on: on.into(),
            times: Some(times),
            fault,
        })
    }

    /// Every such call goes wrong.
    pub fn always(&self, on: impl Into<FaultMatch>, fault: Fault) -> &Self {
        self.add(FaultRule {
            on: on.into(),
            times: None,
            fault,
        })
    }

    /// Adds a line.
    pub fn add(&self, rule: FaultRule) -> &Self {
        self.cloud.with(|world, _| world.faults.0.push(rule));
        self
    }

    /// What is left of the script.
    pub fn rules(&self) -> Vec<FaultRule> {
        self.cloud.with(|world, _| world.faults.0.clone())
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.cloud.with(|world, _| world.faults.0.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_used_up_in_order_and_only_by_calls_that_fit() {
        let rule = |on: FaultMatch, times, code: &str| FaultRule {
            on,
            times,
            fault: Fault::code(code),
        };
        let mut script = FaultScript(vec![
            rule(Operation::GetServer.into(), Some(1), "first"),
            rule(FaultMatch::any().about(7), Some(1), "about 7"),
            rule(
                FaultMatch::from(Operation::ListServers).for_page(2),
                None,
                "page 2",
            ),
            rule(FaultMatch::any().mutating(), Some(1), "a change"),
            rule(FaultMatch::any().with_token("t2"), None, "t2"),
        ]);
        for (case, operation, token, resource, page, expected) in [
            ("another page", Operation::ListServers, "t1", None, 1, None),
            (
                "that page",
                Operation::ListServers,
                "t1",
                None,
                2,
                Some("page 2"),
            ),
            (
                "once",
                Operation::GetServer,
                "t1",
                Some("7"),
                1,
                Some("first"),
            ),
            (
                "by resource",
                Operation::GetServer,
                "t1",
                Some("7"),
                1,
                Some("about 7"),
            ),
            ("used up", Operation::GetServer, "t1", Some("7"), 1, None),
            (
                "a change",
                Operation::UpdateServer,
                "t1",
                Some("7"),
                1,
                Some("a change"),
            ),
            ("by token", Operation::GetServer, "t2", None, 1, Some("t2")),
        ] {
            let met = script.meet(&Suspect {
                operation,
                token,
                resource,
                page,
            });
            assert_eq!(met, expected.map(Fault::code), "{case}");
        }
        assert_eq!(script.0.len(), 2);
    }
}
