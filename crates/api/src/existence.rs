//! Does this machine exist? Three answers, and only one of them may lead to a deletion.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::{CloudError, Instance, ProviderId};

/// What a credential can see: account, project, region, endpoint. Never the credential itself.
///
/// Two answers with the same fingerprint come from the same world. When it changes, deletions
/// wait until a known machine of the cluster has been seen again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ScopeFingerprint(String);

impl ScopeFingerprint {
    /// A fingerprint from what tells one scope from another, such as `project-1/eu-central`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, as it is shown to operators.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScopeFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// That a credential saw a machine of its scope: evidence that its eyes are open.
///
/// Comes from a [`Sweep`](crate::Sweep) or from a look-up that found its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sighting {
    machine: ProviderId,
    scope: ScopeFingerprint,
    at: Timestamp,
}

impl Sighting {
    /// How long a sighting vouches for the scope of a credential.
    pub const FRESH_FOR: Duration = Duration::from_mins(5);

    /// This machine was seen in this scope at this moment.
    pub fn of(instance: &Instance, scope: &ScopeFingerprint, at: Timestamp) -> Self {
        Self {
            machine: instance.id.clone(),
            scope: scope.clone(),
            at,
        }
    }

    /// The machine that was seen.
    pub const fn machine(&self) -> &ProviderId {
        &self.machine
    }

    /// Where it was seen.
    pub const fn scope(&self) -> &ScopeFingerprint {
        &self.scope
    }

    /// When it was seen.
    pub const fn at(&self) -> Timestamp {
        self.at
    }
}

/// The cloud's own words that a machine, asked for **by its ID**, does not exist.
///
/// It can only be made from an answer. A timeout, a 401, a 403, a 429, a 5xx or an answer that
/// could not be parsed gives a [`Doubt`] instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absence {
    operation: String,
    request_id: Option<String>,
    scope: ScopeFingerprint,
    at: Timestamp,
}

impl Absence {
    /// From the error of a look-up by ID. Anything but
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) is a doubt.
    pub fn from_error(
        error: CloudError,
        scope: &ScopeFingerprint,
        at: Timestamp,
    ) -> Result<Self, Doubt> {
        if !error.is_not_found() {
            return Err(Doubt::NoAnswer(error));
        }
        Ok(Self {
            operation: error.operation().to_owned(),
            request_id: error.request_id().map(str::to_owned),
            scope: scope.clone(),
            at,
        })
    }

    /// For clouds whose look-up by ID succeeds with nothing in it. The caller vouches that the
    /// answer was a success, complete, and to a question for this very ID.
    pub fn from_empty_answer(
        operation: impl Into<String>,
        scope: &ScopeFingerprint,
        at: Timestamp,
    ) -> Self {
        Self {
            operation: operation.into(),
            request_id: None,
            scope: scope.clone(),
            at,
        }
    }
}

/// Proof that a machine is gone: who said so, when, and why that word can be trusted.
///
/// There is no way to build one without either the cloud's answer for that ID *and* a fresh
/// sighting of another machine by the same credential, or the machine itself shown as terminated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoneProof {
    machine: ProviderId,
    scope: ScopeFingerprint,
    at: Timestamp,
    evidence: Evidence,
}

/// What a [`GoneProof`] rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// "No such machine", by a credential that still sees another one.
    NoSuchMachine {
        /// The call that said so.
        operation: String,
        /// The cloud's ID of that call.
        request_id: Option<String>,
        /// The other machine.
        witness: ProviderId,
    },
    /// The cloud still shows the machine, in a state from which there is no return.
    Terminated {
        /// The call that said so.
        operation: String,
        /// The cloud's word for the state.
        state: String,
    },
}

impl GoneProof {
    /// Weighs the cloud's answer with a sighting of another machine.
    ///
    /// Doubt remains if the sighting is missing, older than [`Sighting::FRESH_FOR`], from another
    /// scope, or of this very machine.
    pub fn weigh(
        machine: ProviderId,
        absence: Absence,
        sighting: Option<&Sighting>,
    ) -> Result<Self, Doubt> {
        let Some(sighting) = sighting else {
            return Err(Doubt::NothingElseSeen {
                scope: absence.scope,
            });
        };
        if sighting.scope != absence.scope {
            return Err(Doubt::ScopeChanged {
                was: sighting.scope.clone(),
                now: absence.scope,
            });
        }
        if sighting.machine == machine {
            return Err(Doubt::SeenMomentsAgo { at: sighting.at });
        }
        let age = absence.at.duration_since(sighting.at).abs();
        if age > SignedDuration::try_from(Sighting::FRESH_FOR).unwrap_or(SignedDuration::MAX) {
            return Err(Doubt::NothingElseSeen {
                scope: absence.scope,
            });
        }
        Ok(Self {
            machine,
            scope: absence.scope,
            at: absence.at,
            evidence: Evidence::NoSuchMachine {
                operation: absence.operation,
                request_id: absence.request_id,
                witness: sighting.machine.clone(),
            },
        })
    }

    /// For clouds that keep showing a terminated machine for a while: the machine itself is the
    /// evidence, so no other has to be seen.
    pub fn terminated(
        machine: ProviderId,
        operation: impl Into<String>,
        state: impl Into<String>,
        scope: &ScopeFingerprint,
        at: Timestamp,
    ) -> Self {
        Self {
            machine,
            scope: scope.clone(),
            at,
            evidence: Evidence::Terminated {
                operation: operation.into(),
                state: state.into(),
            },
        }
    }

    /// The machine that is gone.
    pub const fn machine(&self) -> &ProviderId {
        &self.machine
    }

    /// The scope in which it is gone.
    pub const fn scope(&self) -> &ScopeFingerprint {
        &self.scope
    }

    /// When the cloud said so.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// What the proof rests on.
    pub const fn evidence(&self) -> &Evidence {
        &self.evidence
    }
}

impl fmt::Display for GoneProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            machine, scope, at, ..
        } = self;
        match &self.evidence {
            Evidence::NoSuchMachine {
                operation,
                request_id,
                witness,
            } => {
                write!(
                    f,
                    "{operation} answered that {machine} does not exist in {scope} at {at}"
                )?;
                if let Some(id) = request_id {
                    write!(f, " (request {id})")?;
                }
                write!(f, ", while {witness} was seen there")
            }
            Evidence::Terminated { operation, state } => {
                write!(
                    f,
                    "{operation} showed {machine} as {state} in {scope} at {at}"
                )
            }
        }
    }
}

/// Why it is not known whether a machine exists. Printed in Events, so it is written for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// The cloud gave no usable answer.
    #[error("the cloud gave no usable answer: {0}")]
    NoAnswer(#[source] CloudError),
    /// The Node has no provider ID yet and no machine matches its name.
    #[error("no machine matches {looked_for}")]
    NoMatch {
        /// What was looked for, such as `the name "node-1"`.
        looked_for: String,
    },
    /// More than one machine could be this Node.
    #[error("{} machines match {looked_for}: {}", candidates.len(), join(candidates))]
    Ambiguous {
        /// What was looked for.
        looked_for: String,
        /// All that matched.
        candidates: Vec<ProviderId>,
    },
    /// The machine is not there, but neither is any other: the credential may be blind.
    #[error("the machine was not found, but no other machine was seen in {scope} lately either")]
    NothingElseSeen {
        /// Where.
        scope: ScopeFingerprint,
    },
    /// The machine was not found by a credential of another scope than before.
    #[error("the machine was not found in {now}, but machines were last seen in {was}")]
    ScopeChanged {
        /// Where machines were seen.
        was: ScopeFingerprint,
        /// Where this one was not found.
        now: ScopeFingerprint,
    },
    /// One call shows the machine and another does not: the cloud has not made up its mind.
    #[error("the machine was not found, but had been seen at {at}")]
    SeenMomentsAgo {
        /// When it was seen.
        at: Timestamp,
    },
    /// The provider ID belongs to another cloud or account.
    #[error("{id} is not a machine of this cloud: {why}")]
    NotOurs {
        /// The ID.
        id: ProviderId,
        /// What gave it away.
        why: String,
    },
}

fn join(ids: &[ProviderId]) -> String {
    ids.iter()
        .map(ProviderId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The answer to "does the machine of this Node exist?".
#[derive(Debug)]
pub enum Existence {
    /// It does, and this is what it looks like now. Stopped machines exist.
    Present(Box<Instance>),
    /// It does not. This alone may lead to the deletion of a Node.
    Gone(GoneProof),
    /// Nobody can tell. Nothing may be deleted.
    Unknown(Doubt),
}

impl Existence {
    /// The machine is there.
    pub fn present(instance: Instance) -> Self {
        Self::Present(Box::new(instance))
    }

    /// Weighs the failure of a look-up **by ID**: gone with proof, or unknown. This is the one line
    /// a provider writes for its error path.
    pub fn weigh_error(
        machine: ProviderId,
        error: CloudError,
        scope: &ScopeFingerprint,
        sighting: Option<&Sighting>,
        at: Timestamp,
    ) -> Self {
        match Absence::from_error(error, scope, at) {
            Ok(absence) => Self::weigh_absence(machine, absence, sighting),
            Err(doubt) => Self::Unknown(doubt),
        }
    }

    /// Weighs an answer that says "no such machine".
    pub fn weigh_absence(
        machine: ProviderId,
        absence: Absence,
        sighting: Option<&Sighting>,
    ) -> Self {
        match GoneProof::weigh(machine, absence, sighting) {
            Ok(proof) => Self::Gone(proof),
            Err(doubt) => Self::Unknown(doubt),
        }
    }

    /// The machine, if it is known to exist.
    pub fn instance(&self) -> Option<&Instance> {
        match self {
            Self::Present(instance) => Some(instance),
            Self::Gone(_) | Self::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
