//! What a mutant makes of the spec of a balancer.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use cloudkeel_api::{
    Affinity, BalancerRef, HealthCheck, HealthProbe, LoadBalancerSpec, LoadBalancers as _,
    NodeFacts, Options, Protocol, Target, TargetBy, TargetState, names,
};
use cloudkeel_testkit::simulated_cloud::wire::TargetAt;

use crate::faulty::Faulty;
use crate::mutant::Mutant;

impl Faulty {
    /// What the mutant makes of a spec.
    #[expect(clippy::too_many_lines, reason = "an arm for each mutant")]
    pub(crate) fn mutated(&self, spec: &LoadBalancerSpec) -> LoadBalancerSpec {
        let mut spec = spec.clone();
        match self.mutant {
            Mutant::ForgetsATarget => {
                spec.targets.pop_last();
            }
            Mutant::IgnoresNodePorts => {
                for listener in &mut spec.listeners {
                    listener.node_port = Some(30_000 + listener.port % 1_000);
                }
            }
            Mutant::ChecksEverythingByTcp => {
                for listener in &mut spec.listeners {
                    listener.health_check = HealthCheck::tcp();
                }
            }
            Mutant::TakesAllOfAdopted => take_all(&mut spec.balancer_ref),
            Mutant::KeepsGivenUpPorts => forget_given_up_ports(&mut spec),
            Mutant::KeepsOldPorts => self.keep_ports(&mut spec, |_| true),
            Mutant::KeepsAddedListeners => {
                self.keep_ports(&mut spec, |node_port| node_port == 31_999);
            }
            Mutant::KeepsAddedTargets => self.keep_added_targets(&mut spec),
            Mutant::KeepsSettings => self.keep_settings(&mut spec),
            Mutant::ForgetsChangesWhenStale if self.is_stale() => {
                self.busy.store(true, Ordering::Relaxed);
            }
            Mutant::HidesRefusedTargets => {
                let machines = self.cloud.machines().into_iter();
                let ids: BTreeSet<_> = machines.map(|m| format!("local://demo/{}", m.id)).collect();
                let exists = |t: &Target| {
                    t.node
                        .provider_id
                        .as_ref()
                        .is_some_and(|id| ids.contains(id.as_str()))
                };
                spec.targets.retain(|_, target| exists(target));
            }
            Mutant::DropsSctp => spec.listeners.retain(|l| l.protocol != Protocol::Sctp),
            Mutant::IgnoresSourceRanges => spec.source_ranges.clear(),
            Mutant::KnowsPortsAndTargetsOnly => {
                spec = LoadBalancerSpec {
                    address: None,
                    affinity: Affinity::None,
                    options: Options::default(),
                    ..spec
                };
                spec.families.truncate(1);
                spec.listeners.retain(|l| l.protocol == Protocol::Tcp);
                spec.targets.retain(|_, t| t.by == TargetBy::Machine);
                for target in spec.targets.values_mut() {
                    target.state = TargetState::Serving;
                }
            }
            Mutant::IgnoresAdoption => spec.balancer_ref.adopt = None,
            Mutant::LabelsByProcess => {
                let process = self.process;
                spec.balancer_ref.service.uid =
                    format!("{process}-{}", spec.balancer_ref.service.uid);
            }
            Mutant::StartsAnewAfterErrors => {
                let errors = self.count.load(Ordering::Relaxed);
                spec.balancer_ref.service.uid =
                    format!("{errors}-{}", spec.balancer_ref.service.uid);
            }
            _ => {}
        }
        if self.mutant == Mutant::ForgetsChangesWhenStale
            && self.busy.load(Ordering::Relaxed)
            && let Some(last) = &*self.last_spec.lock().unwrap()
        {
            return last.clone();
        }
        self.completed(&spec)
    }

    /// What the local cloud does not do by itself: shared balancers, and the default size.
    pub(crate) fn completed(&self, spec: &LoadBalancerSpec) -> LoadBalancerSpec {
        let mut spec = match self.mutant {
            Mutant::ServesOnlyTheLast => self.shared.alone(spec),
            _ => self.shared.merged(spec),
        };
        let size = || Some("small".to_owned());
        if !is_shared(&spec.balancer_ref) {
            spec.options.size = spec.options.size.take().or_else(size);
        }
        spec
    }

    /// Whether a balancer cannot take all of a spec.
    pub(crate) fn is_over_the_limit(&self, spec: &LoadBalancerSpec) -> bool {
        let limits = self.profile(&spec.balancer_ref).limits;
        let is_over =
            |count: usize, limit: Option<u32>| limit.is_some_and(|limit| count > limit as usize);
        is_over(spec.listeners.len(), limits.listeners)
            || is_over(spec.targets.len(), limits.targets)
    }

    fn keep_added_targets(&self, spec: &mut LoadBalancerSpec) {
        let last = self.last_spec.lock().unwrap().clone();
        let is_new = |name: &str| last.as_ref().is_some_and(|l| !l.targets.contains_key(name));
        for balancer in self.cloud.balancers() {
            for machine in self.cloud.machines() {
                let at = TargetAt::Machine(machine.id);
                let is_target = balancer.targets.iter().any(|target| target.at == at);
                if is_target && is_new(&machine.name) {
                    let node = NodeFacts {
                        name: machine.name.clone(),
                        provider_id: format!("local://demo/{}", machine.id).parse().ok(),
                        ..NodeFacts::default()
                    };
                    spec.targets.insert(machine.name, Target::machine(node));
                }
            }
        }
    }

    /// Settings that were given once stay.
    fn keep_settings(&self, spec: &mut LoadBalancerSpec) {
        let Some(last) = self.last_spec.lock().unwrap().clone() else {
            return;
        };
        let (now, before) = (&mut spec.options, last.options);
        now.name = now.name.take().or(before.name);
        now.size = now.size.take().or(before.size);
        now.algorithm = now.algorithm.or(before.algorithm);
        spec.balancer_ref
            .annotations
            .extend(last.balancer_ref.annotations);
        for (listener, before) in spec.listeners.iter_mut().zip(last.listeners) {
            if listener.health_check.probe == HealthProbe::Tcp {
                listener.health_check = before.health_check;
            }
        }
    }

    fn keep_ports(&self, spec: &mut LoadBalancerSpec, keeps: impl Fn(u16) -> bool) {
        for balancer in self.cloud.balancers() {
            for old in balancer
                .listeners
                .into_iter()
                .filter(|l| keeps(l.target_port))
            {
                if spec.listeners.iter().all(|l| l.port != old.port) {
                    let mut kept = spec.listeners[0].clone();
                    kept.port = old.port;
                    kept.node_port = Some(old.target_port);
                    spec.listeners.push(kept);
                }
            }
        }
    }
}

/// Whether other clients have parts of the balancer of a Service.
fn is_shared(balancer_ref: &BalancerRef) -> bool {
    let key = names::LB_EXCLUSIVE.name();
    balancer_ref.annotations.contains_key(key)
}

/// Overrules what the Service says.
pub(crate) fn take_all(balancer_ref: &mut BalancerRef) {
    if is_shared(balancer_ref) {
        let key = names::LB_EXCLUSIVE.name().to_owned();
        balancer_ref.annotations.insert(key, "true".to_owned());
    }
}

/// Ports that are only on record.
fn forget_given_up_ports(spec: &mut LoadBalancerSpec) {
    let annotations = &mut spec.balancer_ref.annotations;
    if let Some(record) = annotations.get_mut(names::LB_OWN_PARTS.name()) {
        let mut read: serde_json::Value = serde_json::from_str(record).unwrap();
        let ports = spec.listeners.iter();
        let ports: Vec<_> = ports
            .map(|l| format!("{}/{}", l.port, l.protocol))
            .collect();
        read["listeners"] = ports.into();
        *record = read.to_string();
    }
}
