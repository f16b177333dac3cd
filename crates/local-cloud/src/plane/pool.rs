//! The targets of one port, and which one gets the next connection.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_provider_local::wire::{TargetAt, TargetState};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Health;
use super::affinity::Affinities;
use super::choice::{Candidate, choose};
use super::counters::Counter;
use super::rules::Rules;
use super::target::{Lease, Target};

/// Whether a target gets new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Yes.
    Serving,
    /// No; it is still among the targets.
    Draining,
    /// No; it is not among the targets any more, but has connections.
    Leaving,
}

/// A target as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DesiredTarget {
    pub(super) at: TargetAt,
    pub(super) address: SocketAddr,
    pub(super) state: TargetState,
}

/// The targets of one port. Changes keep the connections of those that stay.
#[derive(Debug)]
pub(super) struct Pool {
    inner: Mutex<Inner>,
    drain: Duration,
    /// Notified when there is a new target to check, or another way to check.
    pub(super) news: Notify,
    /// Clients that were turned away by their address.
    pub(super) denied: Counter,
    /// Clients for which there was no target.
    pub(super) unserved: Counter,
}

#[derive(Debug)]
struct Inner {
    rules: Arc<Rules>,
    members: Vec<Member>,
    turn: usize,
    affinities: Affinities,
}

#[derive(Debug, Clone)]
struct Member {
    target: Arc<Target>,
    phase: Phase,
}

impl Pool {
    pub(super) fn new(rules: Rules, drain: Duration) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                rules: Arc::new(rules),
                members: Vec::new(),
                turn: 0,
                affinities: Affinities::default(),
            }),
            drain,
            news: Notify::new(),
            denied: Counter::default(),
            unserved: Counter::default(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.inner().rules)
    }

    /// Takes new rules and targets. What is not wanted any more may finish what it has.
    pub(super) fn update(&self, rules: Rules, desired_targets: &[DesiredTarget]) {
        let now = Instant::now();
        let mut wanted: HashMap<_, _> = desired_targets
            .iter()
            .map(|desired| ((desired.at, desired.address), desired.state))
            .collect();
        let mut inner = self.inner();
        let is_other_check = inner.rules.health_check != rules.health_check;
        if *inner.rules != rules {
            if rules.affinity.is_none() {
                inner.affinities.clear();
            }
            inner.rules = Arc::new(rules);
        }
        for member in &mut inner.members {
            let target = &member.target;
            let desired = wanted.remove(&(target.at, target.address));
            member.phase = desired.map_or(Phase::Leaving, phase);
            let serves = member.phase == Phase::Serving;
            target.end_at((!serves).then(|| now + self.drain));
        }
        inner.members.retain(|member| !member.is_gone(now));
        // In the order of the desired targets, which is the order of round-robin.
        let new = desired_targets
            .iter()
            .filter(|desired| wanted.remove(&(desired.at, desired.address)).is_some());
        let known = inner.members.len();
        inner.members.extend(new.map(|desired| Member {
            target: Target::new(desired.at, desired.address),
            phase: phase(desired.state),
        }));
        let is_new = inner.members.len() > known;
        drop(inner);
        if is_new || is_other_check {
            self.news.notify_one();
        }
    }

    /// Lets every connection finish within the drain time, and takes no more.
    pub(super) fn retire(&self) {
        let rules = (*self.rules()).clone();
        self.update(rules, &[]);
    }

    /// The target for a client, without those that were tried in vain. Those that are known to be
    /// healthy come first; if there is none, those of which nothing is known yet.
    pub(super) fn choose(&self, client: IpAddr, tried: &[SocketAddr]) -> Option<Lease> {
        let now = Instant::now();
        let mut inner = self.inner();
        let usable: Vec<Arc<Target>> = [Health::Healthy, Health::Unknown]
            .into_iter()
            .map(|health| inner.usable(health, tried))
            .find(|usable| !usable.is_empty())?;
        let rules = Arc::clone(&inner.rules);
        let before = rules
            .affinity
            .and_then(|timeout| inner.affinities.of(client, timeout, now))
            .and_then(|address| usable.iter().find(|target| target.address == address));
        let chosen = if let Some(target) = before {
            target
        } else {
            let candidates: Vec<_> = usable
                .iter()
                .map(|target| Candidate {
                    address: target.address,
                    active: target.active(),
                })
                .collect();
            let index = choose(rules.algorithm, &candidates, client, &mut inner.turn)?;
            usable.get(index)?
        };
        if let Some(timeout) = rules.affinity {
            let address = chosen.address;
            inner.affinities.remember(client, address, timeout, now);
        }
        // Counted under the lock, so that the next choice knows of it.
        Some(Lease::on(chosen))
    }

    /// Whether new traffic may still go to this target.
    pub(super) fn may_use(&self, target: &Target) -> bool {
        let inner = self.inner();
        let member = inner
            .members
            .iter()
            .find(|member| std::ptr::eq(&raw const *member.target, target));
        member.is_some() && target.health() != Health::Unhealthy && !target.is_over(Instant::now())
    }

    /// Those to be checked: all that are wanted, or only those that never were.
    pub(super) fn to_check(&self, only_new: bool) -> Vec<Arc<Target>> {
        let inner = self.inner();
        let wanted = inner
            .members
            .iter()
            .filter(|member| member.phase != Phase::Leaving)
            .map(|member| Arc::clone(&member.target));
        wanted
            .filter(|target| {
                let unchecked = || target.health() == Health::Unknown;
                !only_new || (unchecked() && target.complaint().is_none())
            })
            .collect()
    }

    /// All targets, for statistics.
    pub(super) fn members(&self) -> Vec<(Arc<Target>, Phase)> {
        let now = Instant::now();
        let inner = self.inner();
        let members = inner.members.iter().filter(|member| !member.is_gone(now));
        members
            .map(|member| (Arc::clone(&member.target), member.phase))
            .collect()
    }
}

impl Inner {
    fn usable(&self, health: Health, tried: &[SocketAddr]) -> Vec<Arc<Target>> {
        self.members
            .iter()
            .filter(|member| member.phase == Phase::Serving)
            .map(|member| &member.target)
            .filter(|target| target.health() == health && !tried.contains(&target.address))
            .map(Arc::clone)
            .collect()
    }
}

impl Member {
    fn is_gone(&self, now: Instant) -> bool {
        let done = self.target.active() == 0 || self.target.is_over(now);
        self.phase == Phase::Leaving && done
    }
}

const fn phase(state: TargetState) -> Phase {
    match state {
        TargetState::Serving => Phase::Serving,
        TargetState::Draining => Phase::Draining,
    }
}

#[cfg(test)]
mod tests;
