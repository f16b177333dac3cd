//! Balancers are created, changed and deleted, each of which may take time.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::IpFamily;
use cloudkeel_emulation::jobs::RunsJobs as _;
use cloudkeel_provider_local::wire::{
    Balancer, BalancerAnswer, BalancerPatch, BalancerState, Listener, NewBalancer, ReportedHealth,
    TargetChange, TargetState,
};
use tokio::time::Instant;

use super::addresses::LeaseRequest;
use super::balancer_rules::{KINDS, by_place, check_kind, listed};
use super::{Project, State, action_of};
use crate::simulated_cloud::refusal::Refusal;

/// Which balancer is to be changed, and on what condition.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulated_cloud) struct Subject<'a> {
    pub(in crate::simulated_cloud) project: &'a str,
    pub(in crate::simulated_cloud) id: u64,
    /// The `If-Match` of the request.
    pub(in crate::simulated_cloud) if_match: Option<&'a str>,
}

impl State {
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
        let desired = LeaseRequest {
            internal: new.internal,
            families: &new.families,
            address: new.address,
        };
        self.project_mut(project)?.lease(&pools, id, desired)?;
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
            health: Vec::new(),
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
        let desired = LeaseRequest {
            internal: balancer.internal,
            families: &balancer.families,
            address,
        };
        project.lease(&pools, subject.id, desired)?;
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
        let id = subject.id;
        let mut balancer = (*current).clone();
        balancer.state = BalancerState::Deleting;
        balancer.version += 1;
        let job = self.job("delete", "balancer", id);
        let project = self.project_mut(subject.project)?;
        project.balancers.put(id, balancer.clone(), at);
        let job = project.begin(job, at, move |project, at| {
            project.balancers.remove(&id, at);
            project.release(id);
        });
        let running = job.filter(|job| job.finished.is_none());
        Ok(BalancerAnswer {
            balancer,
            action: running.as_ref().and_then(action_of),
        })
    }

    /// Changes a balancer in any way, without a call: no lock, no condition, no check.
    pub(in crate::simulated_cloud) fn edit_balancer(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
        edit: impl FnOnce(&mut Balancer),
    ) -> Result<Arc<Balancer>, Refusal> {
        let balancers = &mut self.project_mut(project)?.balancers;
        let edited = balancers.edit(&id, at, |balancer| {
            edit(balancer);
            balancer.version += 1;
        });
        find_balancer(edited, id)
    }

    /// Forgets a balancer at once, without a call.
    pub(in crate::simulated_cloud) fn drop_balancer(
        &mut self,
        project: &str,
        id: u64,
        at: Instant,
    ) -> Result<(), Refusal> {
        let project = self.project_mut(project)?;
        find_balancer(project.balancers.get(&id), id)?;
        project.balancers.remove(&id, at);
        project.release(id);
        Ok(())
    }

    /// Writes down what keeps a balancer from working. That is no change of the balancer, so the version stays.
    pub(in crate::simulated_cloud) fn note_problems(
        &mut self,
        id: u64,
        problems: Vec<String>,
        at: Instant,
    ) -> Result<(), Refusal> {
        let home = self.home_of(id)?;
        let project = self.project_mut(&home)?;
        let balancer = find_balancer(project.balancers.get(&id), id)?;
        if balancer.problems != problems {
            let noted = Balancer {
                problems,
                ..Balancer::clone(&balancer)
            };
            project.balancers.put(id, noted, at);
        }
        Ok(())
    }

    /// Writes down what health checks say of a balancer's targets. That is no change of the balancer either.
    pub(in crate::simulated_cloud) fn note_health(
        &mut self,
        id: u64,
        health: Vec<ReportedHealth>,
        at: Instant,
    ) -> Result<(), Refusal> {
        let home = self.home_of(id)?;
        let project = self.project_mut(&home)?;
        let balancer = find_balancer(project.balancers.get(&id), id)?;
        if balancer.health != health {
            let noted = Balancer {
                health,
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
        let balancer = find_balancer(project.balancers.get(&id), id)?;
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
        what: &'static str,
        project: &str,
        mut balancer: Balancer,
        at: Instant,
    ) -> Result<BalancerAnswer, Refusal> {
        let id = balancer.id;
        balancer.state = BalancerState::Pending;
        balancer.version += 1;
        let job = self.job(what, "balancer", id);
        let project = self.project_mut(project)?;
        project.balancers.put(id, balancer, at);
        let job = project.begin(job, at, move |project, at| project.settle_balancer(id, at));
        let running = job.filter(|job| job.finished.is_none());
        let balancer = find_balancer(project.balancers.get(&id), id)?;
        Ok(BalancerAnswer {
            balancer: (*balancer).clone(),
            action: running.as_ref().and_then(action_of),
        })
    }
}

impl Project {
    fn settle_balancer(&mut self, id: u64, at: Instant) {
        let addresses = self.addresses_of(id);
        self.balancers.edit(&id, at, |balancer| {
            balancer.state = BalancerState::Active;
            balancer.addresses = addresses;
        });
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
