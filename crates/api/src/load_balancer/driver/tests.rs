use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Mutex;

use super::*;
use crate::{ClusterIdentity, HealthCheck, Ingress, IpMode, Listener, Protocol, ServiceRef};

/// A cloud that keeps listeners, fails as it is told, and counts what it is asked to do.
#[derive(Default)]
struct Toy {
    listeners: Mutex<BTreeSet<u16>>,
    /// Busy from so many steps on.
    busy_after: Option<usize>,
    answers: Mutex<VecDeque<Result<StepOutcome, ErrorKind>>>,
    executed: Mutex<Vec<ToyStep>>,
    never_settles: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum ToyStep {
    Add(u16),
    Drop(u16),
}

impl fmt::Display for ToyStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(port) => write!(f, "add listener {port}"),
            Self::Drop(port) => write!(f, "drop listener {port}"),
        }
    }
}

impl Step for ToyStep {
    fn is_destructive(&self) -> bool {
        matches!(self, Self::Drop(_))
    }
}

#[async_trait]
impl LoadBalancerDriver for Toy {
    type Observed = BTreeSet<u16>;
    type Step = ToyStep;

    async fn observe(&self, _wish: Wish<'_>) -> Result<Self::Observed, CloudError> {
        Ok(self.listeners.lock().unwrap().clone())
    }

    fn plan(&self, wish: Wish<'_>, have: &Self::Observed) -> Result<Vec<ToyStep>, CloudError> {
        let want: BTreeSet<u16> = match wish {
            Wish::Present(spec) => spec.listeners.iter().map(|l| l.port).collect(),
            Wish::Absent(_) => BTreeSet::new(),
        };
        let drops = have.difference(&want).copied().map(ToyStep::Drop);
        let adds = want.difference(have).copied().map(ToyStep::Add);
        Ok(drops.chain(adds).collect())
    }

    async fn execute(&self, _wish: Wish<'_>, step: &ToyStep) -> Result<StepOutcome, CloudError> {
        self.executed.lock().unwrap().push(step.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        let outcome = answer
            .unwrap_or(Ok(StepOutcome::Done))
            .map_err(|kind| CloudError::new("execute", kind, "scripted"))?;
        if !self.never_settles {
            let mut listeners = self.listeners.lock().unwrap();
            match step {
                ToyStep::Add(port) => listeners.insert(*port),
                ToyStep::Drop(port) => listeners.remove(port),
            };
        }
        Ok(outcome)
    }

    fn report(&self, _wish: Wish<'_>, have: &Self::Observed) -> Report {
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
        Report {
            status: LoadBalancerStatus {
                id: Some("lb-1".into()),
                ingress: have.first().map(|_| address).into_iter().collect(),
            },
            busy,
            ..Report::default()
        }
    }

    fn features(&self) -> Features {
        Features::default()
    }

    fn health_checks(&self) -> HealthCheckPolicy {
        HealthCheckPolicy::NodePort
    }
}

fn spec(ports: &[u16]) -> LoadBalancerSpec {
    LoadBalancerSpec {
        claim: Claim {
            cluster: ClusterIdentity {
                name: "c".into(),
                uid: None,
                pod_cidrs: vec![],
            },
            service: ServiceRef {
                namespace: "ns".into(),
                name: "web".into(),
                uid: "u-1".into(),
            },
            annotations: BTreeMap::new(),
            ingress: vec![],
            adopt: None,
        },
        listeners: ports.iter().copied().map(listener).collect(),
        targets: BTreeMap::new(),
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
    Driven::new(Toy {
        listeners: Mutex::new(have.iter().copied().collect()),
        answers: Mutex::new(answers.into()),
        ..Toy::default()
    })
}

fn executed(toy: &Driven<Toy>) -> Vec<ToyStep> {
    toy.driver().executed.lock().unwrap().clone()
}

#[tokio::test]
async fn equal_state_means_no_step_at_all() {
    let toy = toy(&[80, 443], vec![]);
    let outcome = toy.apply(Wish::Present(&spec(&[80, 443]))).await.unwrap();
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
    let plan = toy.plan(Wish::Present(&spec)).await.unwrap();
    assert_eq!(plan.to_string(), "- drop listener 81\n+ add listener 443");
    assert_eq!(executed(&toy), [], "planning never mutates");

    let outcome = toy.apply(Wish::Present(&spec)).await.unwrap();
    assert_eq!(outcome.done(), &plan);
    let again = toy.apply(Wish::Present(&spec)).await.unwrap();
    assert!(again.done().is_empty());
    assert_eq!(executed(&toy), [ToyStep::Drop(81), ToyStep::Add(443)]);
}

#[tokio::test]
async fn deleting_what_is_not_there_is_done_at_once() {
    let toy = toy(&[], vec![]);
    let spec = spec(&[]);
    let outcome = toy.apply(Wish::Absent(&spec.claim)).await.unwrap();
    assert_eq!(
        outcome,
        Outcome::Gone {
            done: Plan::default()
        }
    );
}

#[tokio::test]
async fn slow_work_is_pending_and_never_blocks() {
    let started = Ok(StepOutcome::Started {
        check_after: Duration::from_secs(30),
    });
    let toy = toy(&[], vec![started]);
    let outcome = toy.apply(Wish::Present(&spec(&[80, 81]))).await.unwrap();
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
    assert_eq!(status, None, "no address yet");
}

#[tokio::test]
async fn a_busy_balancer_gets_no_step() {
    let toy = Driven::new(Toy {
        listeners: Mutex::new([80].into()),
        busy_after: Some(0),
        ..Toy::default()
    });
    let outcome = toy.apply(Wish::Present(&spec(&[81]))).await.unwrap();
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
        .apply(Wish::Present(&spec(&[80])))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(executed(&conflicting).len(), 2);

    let locked = toy(&[], vec![Err(ErrorKind::Busy)]);
    let outcome = locked.apply(Wish::Present(&spec(&[80]))).await.unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
}

#[tokio::test]
async fn other_errors_end_the_attempt() {
    let toy = toy(&[], vec![Err(ErrorKind::LimitExceeded)]);
    let error = toy
        .apply(Wish::Present(&spec(&[80, 81])))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(executed(&toy).len(), 1);
}

#[tokio::test]
async fn what_never_settles_is_given_up_with_what_is_left() {
    let toy = Driven::new(Toy {
        never_settles: true,
        ..Toy::default()
    });
    let error = toy.apply(Wish::Present(&spec(&[80]))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let text = error.to_string();
    assert!(
        text.contains("ns/web did not settle after 8 rounds"),
        "{text}"
    );
    assert!(text.contains("+ add listener 80"), "{text}");
    assert_eq!(executed(&toy).len(), 8);
}

#[tokio::test]
async fn what_is_busy_after_the_last_round_is_pending_and_no_failure() {
    let toy = Driven::new(Toy {
        never_settles: true,
        busy_after: Some(8),
        ..Toy::default()
    });
    let outcome = toy.apply(Wish::Present(&spec(&[80]))).await.unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    assert_eq!(outcome.done().len(), 8);
}

#[tokio::test]
async fn a_survey_plans_for_each_and_touches_none() {
    let toy = toy(&[80], vec![]);
    let looks = toy.survey(&[spec(&[80]), spec(&[81])]).await;
    let looks: Vec<_> = looks.into_iter().map(Result::unwrap).collect();
    let lengths: Vec<_> = looks.iter().map(|look| look.plan.len()).collect();
    assert_eq!(lengths, [0, 2]);
    let wish = spec(&[80]);
    let settled = toy.apply(Wish::Present(&wish)).await.unwrap();
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
