//! What is left out when something else was refused.

use cloudkeel_api::Step as _;

use super::super::step::{NewBalancer, NewCertificate, Place};
use super::super::targets::TargetAt;
use super::*;
use crate::config::Algorithm;

fn step(change: Change) -> Step {
    Step::Change { id: 42, change }
}

fn add(private: bool, needs_capacity: bool) -> Step {
    step(Change::AddTarget {
        at: TargetAt::Server(1),
        private,
        needs_capacity,
    })
}

fn retarget(id: u64) -> Step {
    step(Change::Retarget {
        at: TargetAt::Server(id),
        private: true,
    })
}

fn remove(is_last: bool) -> Step {
    step(Change::RemoveTarget {
        at: TargetAt::Server(1),
        is_last,
    })
}

fn attach() -> Step {
    step(Change::Attach {
        network: NETWORK,
        ip: None,
        ip_range: None,
    })
}

fn type_change() -> Step {
    step(Change::Type {
        id: 2,
        name: "lb21".into(),
    })
}

fn create() -> Step {
    Step::Create(Box::new(NewBalancer {
        name: "a".into(),
        load_balancer_type: 1,
        type_name: "lb11".into(),
        labels: BTreeMap::new(),
        place: Place::Location("fsn1".into()),
        algorithm: None,
        public: None,
        network: None,
        services: vec![],
        targets: vec![],
    }))
}

fn certificate() -> Step {
    Step::IssueCertificate(NewCertificate {
        name: "n".into(),
        domains: vec![],
        labels: BTreeMap::new(),
    })
}

/// A step, another one that was refused, and whether the first waits.
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Step, Step, bool)> {
    let rename = || Step::Rename(42, "web".into());
    let adopt = Step::Adopt(42, BTreeMap::new());
    let detach = step(Change::Detach { network: 99 });
    let public = |on| step(Change::Public(on));
    let algorithm = step(Change::Algorithm { algorithm: Algorithm::RoundRobin });
    vec![
        ("a name stands for itself", add(false, false), rename(), false),
        ("so does an algorithm", step(Change::DeleteService { listen_port: 80 }), algorithm, false),
        ("and a target", add(false, false), add(false, false), false),
        ("nothing is done to what is not ours", add(false, false), adopt, true),
        ("nor to what is not there", add(false, false), create(), true),
        ("but certificates are not on it", certificate(), create(), false),
        ("one network at a time", attach(), detach, true),
        ("private ways need the network", add(true, false), attach(), true),
        ("public ones do not", add(false, false), attach(), false),
        ("many targets need the type", add(false, true), type_change(), true),
        ("few do not", add(false, false), type_change(), false),
        ("one after the other is retargeted", retarget(2), retarget(1), true),
        ("the last stays until one is taken", remove(true), add(false, false), true),
        ("one of several goes", remove(false), add(false, false), false),
        ("a type shrinks when all fits", type_change(), remove(false), true),
        ("the public side closes last", public(false), retarget(1), true),
        ("and opens anyway", public(true), retarget(1), false),
    ]
}

#[test]
fn only_what_would_be_refused_too_or_take_away_what_serves_waits() {
    for (case, then, failed, waits) in table() {
        assert_eq!(then.depends_on(&failed), waits, "{case}");
    }
}
