//! Whether other clients have listeners and targets on a balancer too, and what follows from that. Pure.

use std::collections::BTreeSet;
use std::fmt::Display;

use cloudkeel_api::{BalancerRef, CloudError, Failures, LoadBalancerSpec, Report, names};

use super::parts::{Parts, SharedParts, forget_parts};
use super::{
    Classified, CloudBalancer, HasListenerKey, Labels, ListenerDiff, ListenerKey, diff_listeners,
};

/// The label of a balancer on which other clients have listeners and targets.
pub const SHARED_LABEL: &str = "cloudkeel.dev/shared";

/// The same where balancers have tags, which have no values and no slashes.
pub const SHARED_TAG: &str = "cloudkeel-shared";

/// A balancer of which listeners and targets may be another client's.
pub trait ShareableBalancer: CloudBalancer {
    /// What names a target.
    type Target: Display;

    /// Whether a label or tag says that it is shared.
    fn is_marked_shared(&self) -> bool;

    /// What its listeners listen on.
    fn listener_keys(&self) -> impl Iterator<Item = ListenerKey>;

    /// Where it sends traffic.
    fn targets(&self) -> impl Iterator<Item = Self::Target>;
}

/// Whose the listeners and targets of a balancer are: all the Service's, unless it is shared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sharing(Option<SharedParts>);

impl Sharing {
    /// Of a Service that asks for these listeners and targets.
    pub fn of<B: ShareableBalancer>(
        balancer_ref: &BalancerRef,
        found: &Classified<B>,
        listeners: impl IntoIterator<Item = ListenerKey>,
        targets: impl IntoIterator<Item: Display>,
    ) -> Result<Self, CloudError> {
        let is_adopted = found.ours.is_empty();
        match found.balancer() {
            Some(it) => Self::of_balancer(balancer_ref, it, is_adopted, listeners, targets),
            None => Ok(Self(None)),
        }
    }

    /// The same of one balancer, which is the Service's, or is about to be if it `is_adopted`.
    pub fn of_balancer<B: ShareableBalancer>(
        balancer_ref: &BalancerRef,
        balancer: &B,
        is_adopted: bool,
        listeners: impl IntoIterator<Item = ListenerKey>,
        targets: impl IntoIterator<Item: Display>,
    ) -> Result<Self, CloudError> {
        if !is_shared(balancer_ref, balancer.is_marked_shared()) {
            return Ok(Self(None));
        }
        let (want, have) = (Parts::of(listeners, targets), Parts::of_balancer(balancer));
        let parts = SharedParts::of(balancer_ref, &balancer.id(), is_adopted, &want, &have);
        parts.map(|parts| Self(Some(parts)))
    }

    /// Of a Service that goes.
    pub fn of_leaving<B: ShareableBalancer>(
        balancer_ref: &BalancerRef,
        found: &Classified<B>,
    ) -> Self {
        let balancer = found.balancer();
        balancer.map_or(Self(None), |it| Self::leaving(balancer_ref, it))
    }

    /// Of one balancer whose Service goes.
    pub fn leaving<B: ShareableBalancer>(balancer_ref: &BalancerRef, balancer: &B) -> Self {
        if !is_shared(balancer_ref, balancer.is_marked_shared()) {
            return Self(None);
        }
        let (id, have) = (balancer.id(), Parts::of_balancer(balancer));
        Self(Some(SharedParts::of_leaving(balancer_ref, &id, &have)))
    }

    /// Whether other clients may use the balancer too.
    pub const fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a listener is another client's.
    pub fn is_foreign_listener(&self, listener: &impl HasListenerKey) -> bool {
        let parts = self.0.as_ref();
        parts.is_some_and(|parts| parts.is_foreign_listener(listener.listener_key()))
    }

    /// Whether a target is another client's.
    pub fn is_foreign_target(&self, target: &impl Display) -> bool {
        let parts = self.0.as_ref();
        parts.is_some_and(|parts| parts.is_foreign_target(target))
    }

    /// What differs from the listeners that are there, as [`diff_listeners`] finds it, without those of other clients.
    pub fn diff_listeners<'p, D: HasListenerKey, P: HasListenerKey>(
        &self,
        desired: impl IntoIterator<Item = D>,
        present: &'p [P],
        limit: usize,
        keeps: impl Fn(&P) -> bool,
        is_met: impl Fn(&D, &P) -> bool,
    ) -> ListenerDiff<D, &'p P> {
        let keeps = |have: &P| keeps(have) || self.is_foreign_listener(have);
        let is_met = |want: &D, have: &P| is_met(want, have) || self.is_foreign_listener(have);
        diff_listeners(desired, present, limit, keeps, is_met)
    }

    /// All listeners that the balancer should have, where a change replaces all of them: those of other clients as they are,
    /// and these, except on ports where another client listens.
    pub fn with_foreign_listeners<L: HasListenerKey + Clone>(
        &self,
        desired: &[L],
        present: &[L],
    ) -> Vec<L> {
        let foreign = present.iter().filter(|it| self.is_foreign_listener(*it));
        let own = desired.iter().filter(|it| !self.is_foreign_listener(*it));
        foreign.chain(own).cloned().collect()
    }

    /// The same for targets.
    pub fn with_foreign_targets<T: Display + Ord + Clone>(
        &self,
        desired: &BTreeSet<T>,
        present: &BTreeSet<T>,
    ) -> BTreeSet<T> {
        let foreign = present.iter().filter(|it| self.is_foreign_target(*it));
        foreign.chain(desired).cloned().collect()
    }

    /// Whether the balancer stays when its Service goes: it was not made for it, or other clients have something on it.
    pub fn outlives_service(&self) -> bool {
        self.0.as_ref().is_some_and(|parts| !parts.is_deleted())
    }

    /// Labels with the one that says whether the balancer is shared: who adopts it has to know.
    pub fn labelled(&self, labels: Labels) -> Labels {
        labelled_as_shared(labels, self.is_shared())
    }

    /// Records which parts are the Service's, and waits for that before anything is added; takes the record off a Service
    /// whose balancer is its own as a whole.
    pub fn recording(&self, balancer_ref: &BalancerRef) -> Report {
        let mut report = Report::default();
        if let Some(parts) = &self.0 {
            report.busy = parts.busy();
            parts.record(&mut report.changes);
        } else {
            forget_parts(balancer_ref, &mut report.changes);
        }
        report
    }

    /// Ports of the Service on which another client listens.
    pub fn unmet(&self) -> Option<Failures> {
        self.0.as_ref().and_then(SharedParts::unmet)
    }
}

/// The labels of a new balancer before its owner's: whether the Service says that it is shared.
pub fn labels_of_new(balancer_ref: &BalancerRef) -> Labels {
    labelled_as_shared(Labels::new(), is_shared(balancer_ref, false))
}

/// What the same Service asks for if it says nothing: what differs from that is what it asks for itself.
pub fn silent_spec(spec: &LoadBalancerSpec) -> LoadBalancerSpec {
    let BalancerRef {
        cluster, service, ..
    } = &spec.balancer_ref;
    LoadBalancerSpec {
        listeners: spec.listeners.clone(),
        targets: spec.targets.clone(),
        ..LoadBalancerSpec::plain(BalancerRef::of(cluster.clone(), service.clone()))
    }
}

/// A shared balancer is not changed as a whole: what the Service asks of it, and whether that is something else, has to be so
/// already.
pub fn check_unchanged<B: CloudBalancer>(
    balancer: &B,
    asked: &[(&str, bool)],
) -> Result<(), CloudError> {
    let asked = asked.iter().filter(|(_, is_other)| *is_other);
    let asked: Vec<_> = asked.map(|(what, _)| *what).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let (asked, exclusive) = (asked.join(", "), names::LB_EXCLUSIVE.name());
    let message = format!(
        "{} is shared with other clients ({exclusive}), so it is not changed as a whole: do not ask for \
         another {asked}, or set {exclusive} to \"true\"",
        balancer.in_words()
    );
    Err(CloudError::invalid("plan load balancer", message))
}

/// The tags of a balancer with the one that says whether it is shared.
pub(super) fn tagged_as_shared(balancer_ref: &BalancerRef, tags: &mut Vec<String>) {
    let is_mark = |tag: &String| tag == SHARED_TAG;
    let is_marked = tags.iter().any(is_mark);
    match (is_shared(balancer_ref, is_marked), is_marked) {
        (true, false) => tags.push(SHARED_TAG.to_owned()),
        (false, true) => tags.retain(|tag| !is_mark(tag)),
        _ => {}
    }
}

/// As the Service says, else as the balancer is marked. A value that cannot be read leaves everything foreign alone.
fn is_shared(balancer_ref: &BalancerRef, is_marked: bool) -> bool {
    match names::LB_EXCLUSIVE.get(&balancer_ref.annotations) {
        Ok(Some(is_exclusive)) => !is_exclusive,
        Ok(None) => is_marked,
        Err(_) => true,
    }
}

fn labelled_as_shared(mut labels: Labels, is_shared: bool) -> Labels {
    if is_shared {
        labels.insert(SHARED_LABEL.to_owned(), "true".to_owned());
    } else {
        labels.remove(SHARED_LABEL);
    }
    labels
}

#[cfg(test)]
mod tests;
