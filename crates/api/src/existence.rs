//! Does this instance exist? There are three answers, and only one of them may lead to a deletion.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::{CloudError, Instance, ProviderId};

/// What a credential can see: account, project, region, endpoint. Never the credential itself.
///
/// Two answers with the same fingerprint come from the same scope. When it changes, deletions wait until a known
/// instance of the cluster has been seen again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ScopeFingerprint(String);

impl ScopeFingerprint {
    /// A fingerprint from what distinguishes scopes, such as `project-1/eu-central`.
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

/// An instance that a credential saw in its scope: evidence that the credential works.
///
/// Comes from an [`InstanceList`](crate::InstanceList) or from a lookup that found its instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownInstance {
    machine: ProviderId,
    scope: ScopeFingerprint,
    at: Timestamp,
}

impl KnownInstance {
    /// How long a known instance confirms the scope of a credential.
    pub const FRESH_FOR: Duration = Duration::from_mins(5);

    /// This instance was seen in this scope at this time.
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

/// The cloud's answer that an instance, looked up **by its ID**, does not exist.
///
/// It can only be built from a response. A timeout, a 401, a 403, a 429, a 5xx or a response that could not be
/// parsed gives a [`Doubt`] instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absence {
    operation: String,
    request_id: Option<String>,
    scope: ScopeFingerprint,
    at: Timestamp,
}

impl Absence {
    /// From the error of a lookup by ID. Anything but [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) is a
    /// doubt.
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

    /// For clouds whose lookup by ID succeeds with an empty result. The caller guarantees that the response was
    /// successful, complete, and about this very ID.
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

/// Proof that an instance is gone: which call showed it, when, and why it can be trusted.
///
/// It can only be built from the cloud's answer for that ID *and* a recent known instance of the same credential, or
/// from the instance itself shown as terminated.
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
    /// "No such instance", from a credential that still sees another one.
    NoSuchMachine {
        /// The call that returned it.
        operation: String,
        /// The cloud's ID of that call.
        request_id: Option<String>,
        /// The other instance.
        known_instance: ProviderId,
    },
    /// The cloud still shows the instance, in a final state.
    Terminated {
        /// The call that returned it.
        operation: String,
        /// The cloud's name of the state.
        state: String,
    },
}

impl GoneProof {
    /// Combines the cloud's answer with a known instance.
    ///
    /// Doubt remains if the known instance is missing, older than [`KnownInstance::FRESH_FOR`], from another scope,
    /// or the same instance.
    pub fn from_absence(
        machine: ProviderId,
        absence: Absence,
        known_instance: Option<&KnownInstance>,
    ) -> Result<Self, Doubt> {
        let Some(known_instance) = known_instance else {
            return Err(Doubt::NothingElseSeen {
                scope: absence.scope,
            });
        };
        if known_instance.scope != absence.scope {
            return Err(Doubt::ScopeChanged {
                was: known_instance.scope.clone(),
                now: absence.scope,
            });
        }
        if known_instance.machine == machine {
            return Err(Doubt::SeenMomentsAgo {
                at: known_instance.at,
            });
        }
        let age = absence.at.duration_since(known_instance.at).abs();
        if age > SignedDuration::try_from(KnownInstance::FRESH_FOR).unwrap_or(SignedDuration::MAX) {
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
                known_instance: known_instance.machine.clone(),
            },
        })
    }

    /// For clouds that keep showing a terminated instance for a while: the instance itself is the evidence, so no
    /// other has to be seen.
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
                known_instance,
            } => {
                write!(
                    f,
                    "{operation} answered that {machine} does not exist in {scope} at {at}"
                )?;
                if let Some(id) = request_id {
                    write!(f, " (request {id})")?;
                }
                write!(f, ", while {known_instance} was seen there")
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

/// Why it is not known whether an instance exists. Shown in Events, so it is written for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// The cloud gave no usable response.
    #[error("the cloud gave no usable answer: {0}")]
    NoAnswer(#[source] CloudError),
    /// The Node has no provider ID yet and no instance matches its name.
    #[error("no machine matches {looked_for}")]
    NoMatch {
        /// What was looked for, such as `the name "node-1"`.
        looked_for: String,
    },
    /// More than one instance could be this Node.
    #[error("{} machines match {looked_for}: {}", candidates.len(), join(candidates))]
    Ambiguous {
        /// What was looked for.
        looked_for: String,
        /// All that matched.
        candidates: Vec<ProviderId>,
    },
    /// The instance is not there, but neither is any other: the credential may not see the scope.
    #[error("the machine was not found, but no other machine was seen in {scope} recently either")]
    NothingElseSeen {
        /// Where.
        scope: ScopeFingerprint,
    },
    /// The instance was not found by a credential of another scope than before.
    #[error("the machine was not found in {now}, but machines were last seen in {was}")]
    ScopeChanged {
        /// Where instances were seen.
        was: ScopeFingerprint,
        /// Where this one was not found.
        now: ScopeFingerprint,
    },
    /// One call shows the instance and another does not: the cloud is not consistent yet.
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

/// The answer to "does the instance of this Node exist?".
#[derive(Debug)]
pub enum Existence {
    /// It exists, and this is its current state. Stopped instances exist.
    Present(Box<Instance>),
    /// It does not exist. This alone may lead to the deletion of a Node.
    Gone(GoneProof),
    /// Unknown. Nothing may be deleted.
    Unknown(Doubt),
}

impl Existence {
    /// The machine is there.
    pub fn present(instance: Instance) -> Self {
        Self::Present(Box::new(instance))
    }

    /// Evaluates the failure of a lookup **by ID**: gone with proof, or unknown. This is the one line a provider
    /// writes for its error path.
    pub fn from_lookup_error(
        machine: ProviderId,
        error: CloudError,
        scope: &ScopeFingerprint,
        known_instance: Option<&KnownInstance>,
        at: Timestamp,
    ) -> Self {
        match Absence::from_error(error, scope, at) {
            Ok(absence) => Self::from_absence(machine, absence, known_instance),
            Err(doubt) => Self::Unknown(doubt),
        }
    }

    /// Evaluates the answer "no such instance".
    pub fn from_absence(
        machine: ProviderId,
        absence: Absence,
        known_instance: Option<&KnownInstance>,
    ) -> Self {
        match GoneProof::from_absence(machine, absence, known_instance) {
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
