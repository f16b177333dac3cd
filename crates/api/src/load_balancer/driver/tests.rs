use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{
    ClusterIdentity, ErrorKind, Features, HealthCheck, Ingress, IpMode, Listener, LoadBalancers,
    Outcome, Protocol, Retry, ServiceRef, StepAction,
};

mod failures;
mod outcomes;
mod without_effect;

/// A cloud that keeps listeners, fails on demand, and counts what it is asked to do.
#[derive(Default)]
struct Toy {
    listeners: Mutex<BTreeSet<u16>>,
    /// Busy from so many steps on.
    busy_after: Option<usize>,
    answers: Mutex<VecDeque<Result<StepOutcome, ErrorKind>>>,
    executed: Mutex<Vec<ToyStep>>,
    never_settles: bool,
    /// Whether the balancer is there from the beginning; otherwise its first listener makes it.
    is_missing: bool,
    /// Whether every plan is another one.
    wavers: bool,
    /// Whether answers show what has become of the balancer.
    shows: bool,
    /// What cannot be met.
    unmet: Vec<Failures>,
    observed: AtomicUsize,
    /// What a step fails to remove is gone all the same.
    vanishes: bool,
    /// Scripted failures say that nothing was changed.
    refuses_without_effect: bool,
    cannot_be_seen: bool,
    /// The observations that steps were executed with.
    planned_from: Mutex<Vec<BTreeSet<u16>>>,
    /// What the Service is to carry.
    changes: ServiceChanges,
}

#[derive(Debug, Clone, PartialEq)]
enum ToyStep {
    Add(u16),
    Drop(u16),
    /// Something that nothing depends on, and that is never the same twice.
    Waver(usize),
}

impl fmt::Display for ToyStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(port) => write!(f, "add listener {port}"),
            Self::Drop(port) => write!(f, "drop listener {port}"),
            Self::Waver(number) => write!(f, "waver {number}"),
        }
    }
}

impl Step for ToyStep {
    fn action(&self) -> StepAction {
        match self {
            Self::Drop(_) => StepAction::Delete,
            _ => StepAction::Create,
        }
    }

    /// Whatever is added needs the room of what was dropped.
    fn depends_on(&self, failed: &Self) -> bool {
        matches!((self, failed), (Self::Add(_), Self::Drop(_)))
    }
}

#[async_trait]
impl LoadBalancerDriver for Toy {
    type Observed = BTreeSet<u16>;
    type Step = ToyStep;

    async fn observe(&self, _desired: DesiredState<'_>) -> Result<Self::Observed, CloudError> {
        self.observed.fetch_add(1, Ordering::Relaxed);
        if self.cannot_be_seen {
            return Err(CloudError::new("observe", ErrorKind::Timeout, "scripted"));
        }
        Ok(self.listeners.lock().unwrap().clone())
    }

    fn plan(
        &self,
        desired: DesiredState<'_>,
        have: &Self::Observed,
    ) -> Result<Vec<ToyStep>, CloudError> {
        let want: BTreeSet<u16> = match desired {
            DesiredState::Present(spec) => spec.listeners.iter().map(|l| l.port).collect(),
            DesiredState::Absent(_) => BTreeSet::new(),
            DesiredState::Released(_) => have.clone(),
        };
        let drops = have.difference(&want).copied().map(ToyStep::Drop);
        let adds = want.difference(have).copied().map(ToyStep::Add);
        let waver = self.wavers.then(|| {
            let executed = self.executed.lock().unwrap().len();
            ToyStep::Waver(executed)
        });
        Ok(drops.chain(adds).chain(waver).collect())
    }

    async fn execute(
        &self,
        _desired: DesiredState<'_>,
        have: &Self::Observed,
        step: &ToyStep,
    ) -> Executed<Self::Observed> {
        self.planned_from.lock().unwrap().push(have.clone());
        self.executed.lock().unwrap().push(step.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.unwrap_or(Ok(StepOutcome::Done));
        if let (Err(_), true, ToyStep::Drop(port)) = (&answer, self.vanishes, step) {
            self.listeners.lock().unwrap().remove(port);
        }
        let outcome = answer.map_err(|kind| {
            let error = CloudError::new("execute", kind, "scripted");
            if self.refuses_without_effect {
                return error.without_effect();
            }
            error
        })?;
        if !self.never_settles && !matches!(outcome, StepOutcome::Postponed { .. }) {
            let mut listeners = self.listeners.lock().unwrap();
            match step {
                ToyStep::Add(port) => listeners.insert(*port),
                ToyStep::Drop(port) => listeners.remove(port),
                ToyStep::Waver(_) => false,
            };
        }
        let shown = self.shows.then(|| self.listeners.lock().unwrap().clone());
        Ok((outcome, shown))
    }

    fn report(&self, desired: DesiredState<'_>, have: &Self::Observed) -> Report {
        let address = Ingress::Ip {
            ip: [192, 0, 2, 1].into(),
            mode: IpMode::Vip,
        };
        let steps = self.executed.lock().unwrap().len();
        let is_busy = self.busy_after.is_some_and(|after| steps >= after);
        let busy = is_busy.then(|| Busy {
            why: "being built".into(),
            check_after: Duration::from_secs(7),
        });
        let is_there = !self.is_missing || !have.is_empty();
        Report {
            unmet: self.unmet.clone(),
            status: LoadBalancerStatus {
                exists: is_there,
                id: is_there.then(|| "lb-1".into()),
                ingress: have.first().map(|_| address).into_iter().collect(),
                draining: 0,
                health: Vec::new(),
            },
            busy,
            changes: self.changes.clone(),
            kept: match desired {
                DesiredState::Released(_) => vec!["lb-1".to_owned()],
                DesiredState::Present(_) | DesiredState::Absent(_) => Vec::new(),
            },
        }
    }

    fn profile(&self, _claim: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
}

fn spec(ports: &[u16]) -> LoadBalancerSpec {
    LoadBalancerSpec {
        balancer_ref: BalancerRef::of(
            ClusterIdentity {
                name: "c".into(),
                uid: None,
                pod_cidrs: vec![],
            },
            ServiceRef {
                namespace: "ns".into(),
                name: "web".into(),
                uid: "u-1".into(),
            },
        ),
        listeners: ports.iter().copied().map(listener).collect(),
        targets: crate::Shared::default(),
        families: vec![],
        address: None,
        source_ranges: vec![],
        traffic_policy: crate::TrafficPolicy::Cluster,
        health_check_node_port: None,
        affinity: crate::Affinity::None,
        options: crate::Options::default(),
    }
}

fn listener(port: u16) -> Listener {
    Listener {
        name: None,
        protocol: Protocol::Tcp,
        port,
        node_port: Some(30_000 + port),
        app_protocol: None,
        health_check: HealthCheck::tcp(),
    }
}

fn toy(have: &[u16], answers: Vec<Result<StepOutcome, ErrorKind>>) -> Driven<Toy> {
    Driven::new(driver(have, answers))
}

fn driver(have: &[u16], answers: Vec<Result<StepOutcome, ErrorKind>>) -> Toy {
    Toy {
        listeners: Mutex::new(have.iter().copied().collect()),
        answers: Mutex::new(answers.into()),
        ..Toy::default()
    }
}

fn executed(toy: &Driven<Toy>) -> Vec<ToyStep> {
    toy.driver().executed.lock().unwrap().clone()
}

#[tokio::test]
async fn equal_state_means_no_step_at_all() {
    let toy = toy(&[80, 443], vec![]);
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80, 443])))
        .await
        .unwrap();
    let Outcome::Settled { status, done, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(status.id.as_deref(), Some("lb-1"));
    assert!(done.is_empty());
    assert_eq!(executed(&toy), []);
}

#[tokio::test]
async fn a_difference_is_planned_printed_and_carried_out_once() {
    let toy = toy(&[80, 81], vec![]);
    let spec = spec(&[80, 443]);
    let plan = toy.plan(DesiredState::Present(&spec)).await.unwrap();
    assert_eq!(plan.to_string(), "- drop listener 81\n+ add listener 443");
    assert_eq!(executed(&toy), [], "planning never mutates");

    let outcome = toy.apply(DesiredState::Present(&spec)).await.unwrap();
    assert_eq!(outcome.done(), &plan);
    let again = toy.apply(DesiredState::Present(&spec)).await.unwrap();
    assert!(again.done().is_empty());
    assert_eq!(executed(&toy), [ToyStep::Drop(81), ToyStep::Add(443)]);
}

#[tokio::test]
async fn deleting_what_is_not_there_is_done_at_once() {
    let toy = toy(&[], vec![]);
    let spec = spec(&[]);
    let outcome = toy
        .apply(DesiredState::Absent(&spec.balancer_ref))
        .await
        .unwrap();
    assert_eq!(
        outcome,
        Outcome::Gone {
            done: Plan::default(),
            kept: vec![],
            acknowledged: false,
        }
    );
}

/// What was done, and whether the cloud has agreed to remove everything.
fn removal(outcome: &Outcome) -> (usize, bool, &'static str) {
    match outcome {
        Outcome::Gone {
            done, acknowledged, ..
        } => (done.len(), *acknowledged, "gone"),
        Outcome::Pending {
            done, acknowledged, ..
        } => (done.len(), *acknowledged, "pending"),
        Outcome::Settled { .. } | Outcome::Incomplete { .. } => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn only_what_the_cloud_agreed_to_remove_is_acknowledged() {
    use ErrorKind::{Busy, Conflict, NotFound};
    let started = || {
        Ok(StepOutcome::Started {
            check_after: Duration::from_secs(30),
        })
    };
    let done = || Ok(StepOutcome::Done);
    for (case, have, answers, expected) in [
        ("carried out", &[80][..], vec![done()], (1, true, "gone")),
        ("begun", &[80], vec![started()], (1, true, "pending")),
        (
            "not all begun",
            &[80, 81],
            vec![started()],
            (1, false, "pending"),
        ),
        (
            "one is locked",
            &[80, 81],
            vec![done(), Err(Busy)],
            (1, false, "pending"),
        ),
        (
            "a conflict, and then carried out",
            &[80, 81],
            vec![done(), Err(Conflict)],
            (2, true, "gone"),
        ),
        (
            "missing for a moment, and then carried out",
            &[80],
            vec![Err(NotFound)],
            (1, true, "gone"),
        ),
        (
            "shown and missing, again and again",
            &[80],
            vec![Err(NotFound), Err(NotFound)],
            (1, false, "pending"),
        ),
    ] {
        let toy = toy(have, answers);
        let outcome = toy
            .apply(DesiredState::Absent(&spec(&[]).balancer_ref))
            .await
            .unwrap();
        assert_eq!(removal(&outcome), expected, "{case}");
    }
}

#[tokio::test]
async fn what_another_client_removed_is_not_our_doing() {
    for (case, kind, expected) in [
        (
            "not there any more",
            ErrorKind::NotFound,
            (2, false, "gone"),
        ),
        ("another version", ErrorKind::Conflict, (1, false, "gone")),
    ] {
        let toy = Driven::new(Toy {
            vanishes: true,
            ..driver(&[80, 81], vec![Ok(StepOutcome::Done), Err(kind)])
        });
        let outcome = toy
            .apply(DesiredState::Absent(&spec(&[]).balancer_ref))
            .await
            .unwrap();
        assert_eq!(removal(&outcome), expected, "{case}");
    }
}

#[tokio::test]
async fn a_cloud_that_still_shows_what_it_removed_is_looked_at_again_later() {
    let toy = Driven::new(Toy {
        never_settles: true,
        ..driver(&[80], vec![Ok(StepOutcome::Done), Err(ErrorKind::NotFound)])
    });
    let outcome = toy
        .apply(DesiredState::Absent(&spec(&[]).balancer_ref))
        .await
        .unwrap();
    assert_eq!(removal(&outcome), (1, true, "pending"));
}

#[tokio::test]
async fn an_error_says_whether_anything_was_changed_before_it() {
    let refused = || Err(ErrorKind::Denied);
    for (case, answers, is_said, had_no_effect) in [
        ("refused", vec![refused(), refused()], true, true),
        ("not said", vec![refused(), refused()], false, false),
        (
            "refused after a conflict",
            vec![Err(ErrorKind::Conflict), refused(), refused()],
            true,
            true,
        ),
    ] {
        let toy = Driven::new(Toy {
            refuses_without_effect: is_said,
            is_missing: true,
            ..driver(&[], answers)
        });
        let desired = spec(&[80, 81]);
        let error = toy
            .apply(DesiredState::Present(&desired))
            .await
            .unwrap_err();
        assert_eq!(error.had_no_effect(), had_no_effect, "{case}");
    }
    let after_another_step = Driven::new(Toy {
        refuses_without_effect: true,
        ..driver(&[80, 81], vec![Ok(StepOutcome::Done), refused()])
    });
    let desired = spec(&[]);
    let error = after_another_step
        .apply(DesiredState::Absent(&desired.balancer_ref))
        .await;
    assert!(!error.unwrap_err().had_no_effect(), "after another step");
    let unseen = Driven::new(Toy {
        cannot_be_seen: true,
        ..Toy::default()
    });
    let error = unseen
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap_err();
    assert!(error.had_no_effect(), "nothing was even asked for");
}

#[tokio::test]
async fn slow_work_is_pending_and_never_blocks() {
    let started = Ok(StepOutcome::Started {
        check_after: Duration::from_secs(30),
    });
    let toy = toy(&[], vec![started]);
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80, 81])))
        .await
        .unwrap();
    let Outcome::Pending {
        why,
        check_after,
        done,
        status,
        ..
    } = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(why, "waiting for: add listener 80");
    assert_eq!(check_after, Duration::from_secs(30));
    assert_eq!(done.len(), 1);
    let status = status.unwrap();
    assert!(status.exists && status.ingress.is_empty(), "{status:?}");
}

#[tokio::test]
async fn a_busy_balancer_gets_no_step() {
    let toy = Driven::new(Toy {
        listeners: Mutex::new([80].into()),
        busy_after: Some(0),
        ..Toy::default()
    });
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[81])))
        .await
        .unwrap();
    let Outcome::Pending { why, status, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(why, "being built");
    assert!(status.is_some(), "its address is published meanwhile");
    assert_eq!(executed(&toy), []);
}

#[tokio::test]
async fn a_conflict_is_looked_at_again_and_a_lock_is_waited_for() {
    let conflicting = toy(&[], vec![Err(ErrorKind::Conflict)]);
    let outcome = conflicting
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(executed(&conflicting).len(), 2);

    let locked = toy(&[], vec![Err(ErrorKind::Busy)]);
    let outcome = locked
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
}

#[tokio::test]
async fn what_never_settles_is_given_up_with_what_is_left() {
    let toy = Driven::new(Toy {
        wavers: true,
        ..Toy::default()
    });
    let error = toy
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let text = error.to_string();
    assert!(
        text.contains("ns/web did not settle after 8 rounds"),
        "{text}"
    );
    assert!(text.contains("+ waver 9"), "{text}");
    assert_eq!(executed(&toy).len(), 9);
}

#[tokio::test]
async fn what_is_busy_after_the_last_round_is_pending_and_no_failure() {
    let toy = Driven::new(Toy {
        wavers: true,
        busy_after: Some(8),
        ..Toy::default()
    });
    let outcome = toy.apply(DesiredState::Present(&spec(&[]))).await.unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    assert_eq!(outcome.done().len(), 8);
}

#[tokio::test]
async fn a_survey_plans_for_each_and_touches_none() {
    let toy = toy(&[80], vec![]);
    let looks = toy.observe_all(&[spec(&[80]), spec(&[81])]).await;
    let looks: Vec<_> = looks.into_iter().map(Result::unwrap).collect();
    let lengths: Vec<_> = looks.iter().map(|look| look.plan.len()).collect();
    assert_eq!(lengths, [0, 2]);
    let desired = spec(&[80]);
    let settled = toy.apply(DesiredState::Present(&desired)).await.unwrap();
    let Outcome::Settled { status, .. } = settled else {
        panic!("{settled:?}");
    };
    assert_eq!(looks[0].report.status, status);
    assert_eq!(executed(&toy), []);
    assert_eq!(
        toy.owned().await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[tokio::test]
async fn an_answer_that_shows_nothing_left_to_do_spares_the_reading() {
    for (case, ports, reads) in [
        ("all in one step", &[80][..], 1),
        ("the last of several steps", &[80, 81], 1),
    ] {
        let toy = Driven::new(Toy {
            shows: true,
            ..Toy::default()
        });
        let outcome = toy
            .apply(DesiredState::Present(&spec(ports)))
            .await
            .unwrap();
        assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
        let observed = toy.driver().observed.load(Ordering::Relaxed);
        assert_eq!(observed, reads, "{case}");
    }
}

#[tokio::test]
async fn an_answer_that_shows_something_to_do_is_not_acted_upon_before_it_was_read() {
    let toy = Driven::new(Toy {
        shows: true,
        never_settles: true,
        ..Toy::default()
    });
    let outcome = toy
        .apply(DesiredState::Present(&spec(&[80])))
        .await
        .unwrap();
    assert_eq!(outcome.done().len(), 1);
    let observed = toy.driver().observed.load(Ordering::Relaxed);
    assert_eq!(observed, 2, "the answer might have been too early");
}
