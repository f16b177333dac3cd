//! Faults by script.

use std::fmt::{Debug, Display};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{ApiOperation, ListFault, go_duration};

/// A fault that every cloud can have, and the [`Interposer`](crate::interposer::Interposer) can play in front of any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum CommonFault {
    /// The cloud refuses with this status, and nothing happens.
    Status {
        /// The HTTP status.
        status: u16,
        /// The body; by default the one in which the cloud says this.
        #[serde(default)]
        body: Option<String>,
        /// Whole seconds for `Retry-After`.
        #[serde(default)]
        retry_after_seconds: Option<u64>,
    },
    /// There is no answer, and nothing happens.
    NoAnswer,
    /// The connection breaks, and nothing happens.
    BrokenBefore,
    /// It happens, and then the connection breaks: the answer is lost.
    BrokenAfter,
    /// A page has fewer items than its total announces.
    TruncatedPage,
    /// A page says that it is the last, while its total says otherwise.
    LostNextPage,
    /// A list is empty and says that there is nothing.
    EmptyList,
    /// The answer ends in the middle, with a length that says that it is complete.
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

impl CommonFault {
    /// A refusal with this status.
    pub const fn status(status: u16) -> Self {
        Self::Status {
            status,
            body: None,
            retry_after_seconds: None,
        }
    }

    /// Too many calls, with `Retry-After`.
    pub const fn throttled(retry_after_seconds: u64) -> Self {
        Self::Status {
            status: 429,
            body: None,
            retry_after_seconds: Some(retry_after_seconds),
        }
    }

    /// The fault if it is about lists.
    pub const fn list_fault(&self) -> Option<ListFault> {
        match self {
            Self::TruncatedPage => Some(ListFault::TruncatedPage),
            Self::LostNextPage => Some(ListFault::LostNextPage),
            Self::EmptyList => Some(ListFault::EmptyList),
            _ => None,
        }
    }
}

/// A fault of one cloud, written by [`faults!`](crate::faults).
pub trait ScriptedFault:
    Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// One that every cloud has. A refusal is that of the cloud's own form.
    fn from_common(fault: CommonFault) -> Self;

    /// The fault if it is one that every cloud has, else `None`: then the cloud knows what to do.
    fn common(&self) -> Option<CommonFault>;

    /// How much older than usual a read is.
    fn staler(&self) -> Duration {
        match self.common() {
            Some(CommonFault::Stale { by }) => by,
            _ => Duration::ZERO,
        }
    }

    /// The project that is seen in place of the caller's own.
    fn other_project(&self) -> Option<String> {
        match self.common() {
            Some(CommonFault::OtherProject { project }) => Some(project),
            _ => None,
        }
    }
}

/// Writes the enum of a cloud's faults: its own ones, which are mostly its ways of refusing, and those
/// that every cloud has.
///
/// ```
/// use std::time::Duration;
/// use cloudkeel_emulation::{CommonFault, ScriptedFault as _};
///
/// cloudkeel_emulation::faults! {
///     /// Something that goes wrong with a call.
///     pub enum Fault {
///         /// The cloud refuses, and nothing happens.
///         Refused {
///             /// The HTTP status.
///             status: u16,
///         },
///     }
/// }
///
/// impl Fault {
///     /// A refusal with this status.
///     pub const fn status(status: u16) -> Self {
///         Self::Refused { status }
///     }
/// }
///
/// let by = Duration::from_secs(2);
/// assert_eq!(Fault::Stale { by }.staler(), by);
/// assert_eq!(Fault::from_common(CommonFault::NoAnswer), Fault::NoAnswer);
/// assert_eq!(Fault::from_common(CommonFault::status(500)).common(), None);
/// ```
///
/// The enum needs a function `status` as above, and its crate `serde`.
#[macro_export]
macro_rules! faults {
    (
        $(#[$outer:meta])*
        $vis:vis enum $Fault:ident {
            $($own:tt)*
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(rename_all = "kebab-case", tag = "kind")]
        $vis enum $Fault {
            $($own)*
            /// There is no answer, and nothing happens.
            NoAnswer,
            /// The connection breaks, and nothing happens.
            BrokenBefore,
            /// It happens, and then the connection breaks: the answer is lost.
            BrokenAfter,
            /// A page has fewer items than its total announces.
            TruncatedPage,
            /// A page says that it is the last, while its total says otherwise.
            LostNextPage,
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
                #[serde(with = "::cloudkeel_emulation::go_duration")]
                by: ::std::time::Duration,
            },
            /// The answer takes this much longer.
            Slow {
                /// How much.
                #[serde(with = "::cloudkeel_emulation::go_duration")]
                by: ::std::time::Duration,
            },
            /// The answer is that of another project.
            OtherProject {
                /// Which.
                project: String,
            },
        }

        impl $crate::ScriptedFault for $Fault {
            fn from_common(fault: $crate::CommonFault) -> Self {
                use $crate::CommonFault;
                match fault {
                    CommonFault::Status { status, .. } => Self::status(status),
                    CommonFault::NoAnswer => Self::NoAnswer,
                    CommonFault::BrokenBefore => Self::BrokenBefore,
                    CommonFault::BrokenAfter => Self::BrokenAfter,
                    CommonFault::TruncatedPage => Self::TruncatedPage,
                    CommonFault::LostNextPage => Self::LostNextPage,
                    CommonFault::EmptyList => Self::EmptyList,
                    CommonFault::MalformedJson => Self::MalformedJson,
                    CommonFault::Html => Self::Html,
                    CommonFault::EmptyBody => Self::EmptyBody,
                    CommonFault::Stale { by } => Self::Stale { by },
                    CommonFault::Slow { by } => Self::Slow { by },
                    CommonFault::OtherProject { project } => Self::OtherProject { project },
                }
            }

            fn common(&self) -> Option<$crate::CommonFault> {
                use $crate::CommonFault;
                Some(match self {
                    Self::NoAnswer => CommonFault::NoAnswer,
                    Self::BrokenBefore => CommonFault::BrokenBefore,
                    Self::BrokenAfter => CommonFault::BrokenAfter,
                    Self::TruncatedPage => CommonFault::TruncatedPage,
                    Self::LostNextPage => CommonFault::LostNextPage,
                    Self::EmptyList => CommonFault::EmptyList,
                    Self::MalformedJson => CommonFault::MalformedJson,
                    Self::Html => CommonFault::Html,
                    Self::EmptyBody => CommonFault::EmptyBody,
                    Self::Stale { by } => CommonFault::Stale { by: *by },
                    Self::Slow { by } => CommonFault::Slow { by: *by },
                    Self::OtherProject { project } => CommonFault::OtherProject {
                        project: project.clone(),
                    },
                    _ => return None,
                })
            }
        }
    };
}

/// Which calls meet a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    bound(serialize = "O: Serialize", deserialize = "O: DeserializeOwned")
)]
pub struct FaultMatch<O> {
    operation: Option<O>,
    token: Option<String>,
    resource: Option<String>,
    /// The number of the page that is asked for.
    page: Option<u64>,
    /// Only calls that could change something.
    mutating: bool,
}

/// What a script knows of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallAttributes<'a, O> {
    pub(super) operation: &'a O,
    pub(super) token: &'a str,
    pub(super) resource: Option<&'a str>,
    pub(super) page: u64,
    pub(super) mutating: bool,
}

impl<O> Default for FaultMatch<O> {
    fn default() -> Self {
        Self {
            operation: None,
            token: None,
            resource: None,
            page: None,
            mutating: false,
        }
    }
}

impl<O> FaultMatch<O> {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Calls of this operation.
    pub fn operation(operation: impl Into<O>) -> Self {
        Self {
            operation: Some(operation.into()),
            ..Self::default()
        }
    }

    /// Only calls with this token, or by this user.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Only calls about the resource of this ID.
    #[must_use]
    pub fn about(mut self, resource: impl Display) -> Self {
        self.resource = Some(resource.to_string());
        self
    }

    /// Only calls for this page of a list.
    #[must_use]
    pub fn for_page(mut self, page: u64) -> Self {
        self.page = Some(page);
        self
    }

    /// Only calls that could change something.
    #[must_use]
    pub fn mutating(mut self) -> Self {
        self.mutating = true;
        self
    }
}

impl<O: PartialEq> FaultMatch<O> {
    fn matches(&self, call: &CallAttributes<'_, O>) -> bool {
        let is =
            |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        let operation = self.operation.as_ref();
        (call.mutating || !self.mutating)
            && operation.is_none_or(|wanted| wanted == call.operation)
            && is(&self.token, Some(call.token))
            && is(&self.resource, call.resource)
            && self.page.is_none_or(|wanted| wanted == call.page)
    }
}

impl<O: ApiOperation> From<O> for FaultMatch<O> {
    fn from(operation: O) -> Self {
        Self::operation(operation)
    }
}

/// One line of the script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(
        serialize = "O: Serialize, F: Serialize",
        deserialize = "O: DeserializeOwned, F: DeserializeOwned"
    )
)]
pub struct FaultRule<O, F> {
    /// Which calls.
    #[serde(default)]
    pub on: FaultMatch<O>,
    /// How many of them; `None` is all.
    #[serde(default)]
    pub times: Option<u64>,
    /// What goes wrong.
    pub fault: F,
}

/// The script: the first line that fits a call is its fault.
#[derive(Debug)]
pub struct FaultScript<O, F>(Vec<FaultRule<O, F>>);

impl<O, F> Default for FaultScript<O, F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<O: PartialEq, F: Clone> FaultScript<O, F> {
    /// Adds a line.
    pub fn add(&mut self, rule: FaultRule<O, F>) {
        self.0.push(rule);
    }

    /// Nothing goes wrong any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What is left.
    pub fn rules(&self) -> &[FaultRule<O, F>] {
        &self.0
    }

    /// The fault that a call meets, if any. It is used up.
    pub(super) fn take_for(&mut self, call: &CallAttributes<'_, O>) -> Option<F> {
        let rule = self
            .0
            .iter_mut()
            .filter(|rule| rule.times != Some(0))
            .find(|rule| rule.on.matches(call))?;
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
        let on = |operation: &'static str| FaultMatch::operation(operation);
        let rule = |on: FaultMatch<&'static str>, times, fault: &'static str| FaultRule {
            on,
            times,
            fault,
        };
        let mut script = FaultScript::default();
        script.add(rule(on("get"), Some(1), "first"));
        script.add(rule(FaultMatch::any().about(7), Some(1), "about 7"));
        script.add(rule(on("list").for_page(2), None, "page 2"));
        script.add(rule(FaultMatch::any().mutating(), Some(1), "a change"));
        script.add(rule(FaultMatch::any().with_token("t2"), None, "t2"));
        for (case, operation, token, resource, page, expected) in [
            ("another page", "list", "t1", None, 1, None),
            ("that page", "list", "t1", None, 2, Some("page 2")),
            ("once", "get", "t1", Some("7"), 1, Some("first")),
            ("by resource", "get", "t1", Some("7"), 1, Some("about 7")),
            ("used up", "get", "t1", Some("7"), 1, None),
            ("a change", "put", "t1", Some("7"), 1, Some("a change")),
            ("by token", "get", "t2", None, 1, Some("t2")),
            ("always", "list", "t2", None, 1, Some("t2")),
        ] {
            let met = script.take_for(&CallAttributes {
                operation: &operation,
                token,
                resource,
                page,
                mutating: operation == "put",
            });
            assert_eq!(met, expected, "{case}");
        }
        assert_eq!(script.rules().len(), 2);
    }
}
