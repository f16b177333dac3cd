//! The life of balancers: built, changed and taken down, each of which may take time.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::IpFamily;
use cloudkeel_provider_local::wire::{
    Action, ActionStatus, Balancer, BalancerAnswer, BalancerPatch, BalancerState, Listener,
    NewBalancer, TargetChange, TargetState,
};
use tokio::time::Instant;

use super::addresses::LeaseWish;
use super::balancer_rules::{KINDS, by_place, check_kind, listed};
use super::{Due, Event, World};
use crate::simulated_cloud::refusal::Refusal;

/// Older actions are forgotten; whoever asks for them has long stopped waiting.
const MOST_ACTIONS: usize = 1_000;

/// Which balancer is to be changed, and on what condition.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulated_cloud) struct Subject<'a> {
    pub(in crate::simulated_cloud) project: &'a str,
    pub(in crate::simulated_cloud) id: u64,
    /// The `If-Match` of the request.
    pub(in crate::simulated_cloud) if_match: Option<&'a str>,
}

impl World {
    pub(in crate::simulated_cloud) fn create_balancer(
        &mut self,
        project: &str,
        mut new: NewBalancer,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let limit = self.settings.limits.balancers;
        if self.project(project)?.balancers.count() >= limit {
            let message = format!("the project has {limit} balancers already");
            return Err(Refusal::limit_exceeded(message));
        }
        if new.families.is_empty() {
            new.families = BTreeSet::from([IpFamily::V4]);
        }
        let kind = new.kind.unwrap_or_else(|| KINDS[0].to_owned());
        check_kind(&kind)?;
        self.check_name(project, &new.name, None)?;
        self.check_listeners(&mut new.listeners)?;
        self.check_families(&new.families)?;
        let targets = by_place(&new.targets);
        self.check_targets(self.project(project)?, &targets)?;

        let id = self.next_id();
        let pools = self.settings.pools;
        let wish = LeaseWish {
            internal: new.internal,
            families: &new.families,
            address: new.address,
        };
        self.project_mut(project)?.lease(&pools, id, wish)?;
        let balancer = Balancer {
            id,
            version: 0,
            name: new.name,
            labels: new.labels,
            state: BalancerState::Pending,
            kind,
            internal: new.internal,
            families: new.families,
            addresses: Vec::new(),
            hostname: new.hostname,
            algorithm: new.algorithm,
            proxy_protocol: new.proxy_protocol,
            source_ranges: new.source_ranges,
            affinity: new.affinity,
            protected: new.protected,
            listeners: new.listeners,
            targets: listed(targets),
            problems: Vec::new(),
        };
        self.begin("create", project, balancer, at)
    }

    pub(in crate::simulated_cloud) fn patch_balancer(
        &mut self,
        subject: Subject<'_>,
        patch: BalancerPatch,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let current = self.open(subject)?;
        let mut balancer = (*current).clone();
        let address = patch.address;
        patch.apply_to(&mut balancer);
        check_kind(&balancer.kind)?;
        self.check_name(subject.project, &balancer.name, Some(subject.id))?;
        self.check_families(&balancer.families)?;
        let pools = self.settings.pools;
        let project = self.project_mut(subject.project)?;
        let before = project.addresses_of(subject.id);
        let wish = LeaseWish {
            internal: balancer.internal,
            families: &balancer.families,
            address,
        };
        project.lease(&pools, subject.id, wish)?;
        if balancer == *current && before == project.addresses_of(subject.id) {
            return Ok(unchanged(&current));
        }
        self.begin("change", subject.project, balancer, at)
    }

    pub(in crate::simulated_cloud) fn set_listeners(
        &mut self,
        subject: Subject<'_>,
        mut listeners: Vec<Listener>,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let current = self.open(subject)?;
        self.check_listeners(&mut listeners)?;
        if current.listeners == listeners {
            return Ok(unchanged(&current));
        }
        let balancer = Balancer {
            listeners,
            ..(*current).clone()
        };
        self.begin("set listeners", subject.project, balancer, at)
    }

    pub(in crate::simulated_cloud) fn change_targets(
        &mut self,
        subject: Subject<'_>,
        change: &TargetChange,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let current = self.open(subject)?;
        let mut targets = by_place(&current.targets);
        for at in &change.remove {
            targets.remove(at);
        }
        targets.extend(change.add.iter().map(|at| (*at, TargetState::Serving)));
        targets.extend(change.drain.iter().map(|at| (*at, TargetState::Draining)));
        self.check_targets(self.project(subject.project)?, &targets)?;
        let targets = listed(targets);
        if current.targets == targets {
            return Ok(unchanged(&current));
        }
        let balancer = Balancer {
            targets,
            ..(*current).clone()
        };
        self.begin("change targets", subject.project, balancer, at)
    }

    pub(in crate::simulated_cloud) fn delete_balancer(
        &mut self,
        subject: Subject<'_>,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let current = self.open(subject)?;
        if current.protected {
            let message = format!("balancer {} is protected", subject.id);
            return Err(Refusal::protected(message));
        }
        let mut balancer = (*current).clone();
        balancer.state = BalancerState::Deleting;
        balancer.version += 1;
        let project = self.project_mut(subject.project)?;
        project.balancers.put(subject.id, balancer.clone(), at);
        let action = self.start_action("delete", subject.project, subject.id)?;
        let what = Event::BalancerForgotten { action: action.id };
        let action = self.schedule(subject.project, action, what, at);
        Ok(BalancerAnswer { balancer, action })
    }

    /// Changes a balancer in any way, behind everybody's back: no lock, no condition, no check.
    pub(in crate::simulated_cloud) fn edit_balancer(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
        edit: impl FnOnce(&mut Balancer),
    ) -> Result<Arc<Balancer>, Refusal> {
        let project = self.project_mut(project)?;
        let mut balancer = Balancer::clone(&*find_balancer(project.balancers.get(id), id)?);
        edit(&mut balancer);
        balancer.version += 1;
        project.balancers.put(id, balancer, at);
        find_balancer(project.balancers.get(id), id)
    }

    /// Forgets a balancer at once, behind everybody's back.
    pub(in crate::simulated_cloud) fn drop_balancer(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
    ) -> Result<(), Refusal> {
        let project = self.project_mut(project)?;
        find_balancer(project.balancers.get(id), id)?;
        project.balancers.remove(id, at);
        project.release(id);
        Ok(())
    }

    /// Writes down what keeps a balancer from working. That is nobody's change, so the version stays.
    pub(in crate::simulated_cloud) fn note_problems(
        &mut self,
        id: u64,
        problems: Vec<String>,
        at: Instant,
    ) -> Result<(), Refusal> {
        let home = self.home_of(id)?;
        let project = self.project_mut(&home)?;
        let balancer = find_balancer(project.balancers.get(id), id)?;
        if balancer.problems != problems {
            let noted = Balancer {
                problems,
                ..Balancer::clone(&balancer)
            };
            project.balancers.put(id, noted, at);
        }
        Ok(())
    }

    /// The balancer, if it takes changes now and is still what the caller thinks it is.
    fn open(&self, subject: Subject<'_>) -> Result<Arc<Balancer>, Refusal> {
        let Subject { id, if_match, .. } = subject;
        let project = self.project(subject.project)?;
        let balancer = find_balancer(project.balancers.get(id), id)?;
        if balancer.state != BalancerState::Active {
            let message = format!("balancer {id} is being worked on");
            return Err(Refusal::locked(message));
        }
        match if_match {
            None | Some("*") => Ok(balancer),
            Some(etag) if etag == balancer.etag() => Ok(balancer),
            Some(etag) => Err(Refusal::changed_meanwhile(format!(
                "balancer {id} is at version {}, not {etag}",
                balancer.etag()
            ))),
        }
    }

    /// Stores a new or changed balancer and begins the work on it.
    fn begin(
        &mut self,
        what: &str,
        project: &str,
        mut balancer: Balancer,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let id = balancer.id;
        balancer.state = BalancerState::Pending;
        balancer.version += 1;
        self.project_mut(project)?.balancers.put(id, balancer, at);
        let action = self.start_action(what, project, id)?;
        let settled = Event::BalancerSettled { action: action.id };
        let action = self.schedule(project, action, settled, at);
        let balancer = find_balancer(self.project(project)?.balancers.get(id), id)?;
        Ok(BalancerAnswer {
            balancer: (*balancer).clone(),
            action,
        })
    }

    fn start_action(&mut self, what: &str, project: &str, id: u64) -> Result<Action, Refusal> {
        let action = Action {
            id: self.next_id(),
            what: what.to_owned(),
            balancer: id,
            status: ActionStatus::Running,
        };
        let actions = &mut self.project_mut(project)?.actions;
        actions.insert(action.id, action.clone());
        if actions.len() > MOST_ACTIONS {
            actions.pop_first();
        }
        Ok(action)
    }

    /// Lets the work end after its time, or at once if it takes none.
    fn schedule(
        &mut self,
        project: &str,
        action: Action,
        what: Event,
        at: Instant,
    ) -> Option<Action> {
        let due = Due {
            project: project.to_owned(),
            id: action.balancer,
            what,
        };
        let delay = self.settings.action_duration;
        if delay.is_zero() {
            self.happen(&due, at);
            return None;
        }
        self.plan(at, delay, due);
        Some(action)
    }

    pub(super) fn balancer_settled(&mut self, project: &str, id: u64, action: u64, at: Instant) {
        let Ok(project) = self.project_mut(project) else {
            return;
        };
        project.finish(action);
        if let Some(balancer) = project.balancers.get(id) {
            let settled = Balancer {
                state: BalancerState::Active,
                addresses: project.addresses_of(id),
                ..Balancer::clone(balancer)
            };
            project.balancers.put(id, settled, at);
        }
    }

    pub(super) fn balancer_forgotten(&mut self, project: &str, id: u64, action: u64, at: Instant) {
        if let Ok(project) = self.project_mut(project) {
            project.finish(action);
            project.balancers.remove(id, at);
            project.release(id);
        }
    }
}

impl super::Project {
    fn finish(&mut self, action: u64) {
        if let Some(action) = self.actions.get_mut(&action) {
            action.status = ActionStatus::Done;
        }
    }
}

pub(in crate::simulated_cloud) fn find_balancer(
    found: Option<&Arc<Balancer>>,
    id: u64,
) -> Result<Arc<Balancer>, Refusal> {
    found
        .map(Arc::clone)
        .ok_or_else(|| Refusal::not_found(format_args!("balancer {id}")))
}

fn unchanged(balancer: &Balancer) -> BalancerAnswer {
    BalancerAnswer {
        balancer: balancer.clone(),
        action: None,
    }
}
