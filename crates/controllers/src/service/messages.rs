//! What is told about a Service: upstream's reasons and messages to the letter, and a few of ours.
//! Pure.

use std::fmt::{self, Write as _};

use cloudkeel_api::{Event, Ingress, LoadBalancerStatus, ServiceRef};

use super::spec::Warning;
use super::targets::shown_names;
use crate::runtime::Cause;
use crate::wellknown::CLEANUP_FINALIZER;

/// The stable words that alerts and scripts match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Work on the balancer begins.
    Ensuring,
    /// The balancer is as wished.
    Ensured,
    /// The balancer has new targets.
    Updated,
    /// The balancer is being removed.
    Deleting,
    /// The balancer is gone.
    Deleted,
    /// The balancer could not be made as wished, or not be removed.
    SyncFailed,
    /// The balancer of a Service that is gone could not be removed.
    DeleteFailed,
    /// The targets could not be changed.
    UpdateFailed,
    /// There is no Node to send traffic to.
    Unavailable,
    /// The cloud is still at it. Ours.
    Pending,
    /// The finalizer is left to whoever put it there. Ours.
    FinalizerLeft,
}

impl Reason {
    /// As it stands in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ensuring => "EnsuringLoadBalancer",
            Self::Ensured => "EnsuredLoadBalancer",
            Self::Updated => "UpdatedLoadBalancer",
            Self::Deleting => "DeletingLoadBalancer",
            Self::Deleted => "DeletedLoadBalancer",
            Self::SyncFailed => "SyncLoadBalancerFailed",
            Self::DeleteFailed => "DeleteLoadBalancerFailed",
            Self::UpdateFailed => "UpdateLoadBalancerFailed",
            Self::Unavailable => "UnAvailableLoadBalancer",
            Self::Pending => "PendingLoadBalancer",
            Self::FinalizerLeft => "LoadBalancerFinalizerLeft",
        }
    }
}

/// What was being done when it failed. The words are upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Making the balancer as wished.
    Ensure,
    /// Removing it.
    Delete,
    /// Writing the status.
    WriteStatus,
    /// Writing the finalizer.
    AddFinalizer,
    /// Taking the finalizer away.
    RemoveFinalizer,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ensure => "failed to ensure load balancer",
            Self::Delete => "failed to delete load balancer",
            Self::WriteStatus => "failed to update load balancer status",
            Self::AddFinalizer => "failed to add load balancer cleanup finalizer",
            Self::RemoveFinalizer => "failed to remove load balancer cleanup finalizer",
        })
    }
}

/// Work on the balancer begins.
pub fn ensuring(service: &ServiceRef) -> Event {
    normal(service, Reason::Ensuring, "Ensuring load balancer")
}

/// The balancer is as wished: which one it is, and where it is reached. Upstream's words come first.
pub fn ensured(service: &ServiceRef, balancer: &LoadBalancerStatus) -> Event {
    let mut message = "Ensured load balancer".to_owned();
    if let Some(id) = &balancer.id {
        let _ = write!(message, " {id}");
    }
    let addresses: Vec<_> = balancer.ingress.iter().map(Ingress::place).collect();
    if !addresses.is_empty() {
        let _ = write!(message, " at {}", addresses.join(", "));
    }
    normal(service, Reason::Ensured, message)
}

/// The balancer has new targets.
pub fn updated(service: &ServiceRef) -> Event {
    let message = "Updated load balancer with new hosts";
    normal(service, Reason::Updated, message)
}

/// The balancer is being removed.
pub fn deleting(service: &ServiceRef) -> Event {
    normal(service, Reason::Deleting, "Deleting load balancer")
}

/// The balancer is gone.
pub fn deleted(service: &ServiceRef) -> Event {
    normal(service, Reason::Deleted, "Deleted load balancer")
}

/// The cloud is still at it.
pub fn pending(service: &ServiceRef, why: &str) -> Event {
    let message = format!("Waiting for load balancer: {why}");
    normal(service, Reason::Pending, message)
}

/// A Service of a class that nobody here serves waits for the one who does.
pub fn finalizer_left(service: &ServiceRef, class: Option<&str>) -> Event {
    let whose = match class {
        Some(class) => format!("of class {class:?}"),
        None => "without a class".to_owned(),
    };
    let message = format!(
        "No cloud here serves Services {whose} or had a load balancer of this one, so the finalizer \
         {CLEANUP_FINALIZER} is left to whoever put it there"
    );
    warning(service, Reason::FinalizerLeft, message)
}

/// There is no Node to send traffic to.
pub fn unavailable(service: &ServiceRef) -> Event {
    let message = "There are no available nodes for LoadBalancer";
    warning(service, Reason::Unavailable, message)
}

/// The balancer could not be made as wished, or not be removed.
pub fn sync_failed(service: &ServiceRef, stage: Stage, cause: &Cause) -> Event {
    let message = format!("Error syncing load balancer: {stage}: {cause}");
    warning(service, Reason::SyncFailed, message)
}

/// The balancer of a Service that is gone could not be removed.
pub fn delete_failed(service: &ServiceRef, cause: &Cause) -> Event {
    let message = format!("Error deleting load balancer: {cause}");
    warning(service, Reason::DeleteFailed, message)
}

/// The targets could not be changed.
pub fn update_failed<'a>(
    service: &ServiceRef,
    nodes: impl ExactSizeIterator<Item = &'a str>,
    cause: &Cause,
) -> Event {
    let total = nodes.len();
    let names = shown_names(nodes);
    let message = format!(
        "Error updating load balancer with new hosts {names} [node names limited, total number of \
         nodes: {total}], error: {cause}"
    );
    warning(service, Reason::UpdateFailed, message)
}

/// Something that the owner of the Service should know.
pub fn advice(service: &ServiceRef, about: &Warning) -> Event {
    Event {
        severity: about.severity(),
        ..Event::normal(service, about.reason(), about.to_string())
    }
}

fn normal(service: &ServiceRef, reason: Reason, message: impl Into<String>) -> Event {
    Event::normal(service, reason.as_str(), message)
}

fn warning(service: &ServiceRef, reason: Reason, message: impl Into<String>) -> Event {
    Event::warning(service, reason.as_str(), message)
}

#[cfg(test)]
mod tests;
