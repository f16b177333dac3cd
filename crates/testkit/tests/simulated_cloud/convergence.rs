//! Random desired states one after the other, with random faults: in the end there is one
//! balancer, it is as desired, and there are no more calls to the cloud.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_api::{
    Affinity, Algorithm, DesiredState, IpFamily, LoadBalancerSpec, Outcome, ProxyProtocol,
    TargetState,
};
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Settings};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use tokio::time::sleep;

use crate::support::{Lab, SECOND, node_of, spec};

/// What one edit of the Service asks for.
#[derive(Debug, Clone)]
struct Edit {
    ports: BTreeSet<u16>,
    /// Machines by index, and whether they drain.
    targets: std::collections::BTreeMap<usize, bool>,
    internal: Option<bool>,
    algorithm: bool,
    proxy: bool,
    both_families: bool,
    sticky: Option<u64>,
    /// What goes wrong with the next calls while it is applied.
    faults: Vec<Fault>,
}

const MACHINES: usize = 5;

fn edits() -> impl Strategy<Value = Edit> {
    let faults = prop_oneof![
        Just(Fault::status(503)),
        Just(Fault::status(409)),
        Just(Fault::status(412)),
        Just(Fault::status(423)),
        Just(Fault::too_many_calls(Some(3))),
        Just(Fault::NoAnswer),
        Just(Fault::BrokenBefore),
        Just(Fault::BrokenAfter),
        Just(Fault::MalformedJson),
        Just(Fault::EmptyList),
        Just(Fault::TruncatedPage),
        Just(Fault::Slow { by: SECOND * 2 }),
        Just(Fault::Stale { by: SECOND * 5 }),
    ];
    (
        btree_set(1u16..6, 0..4),
        btree_map(0..MACHINES, any::<bool>(), 0..MACHINES),
        option::of(any::<bool>()),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        option::of(1u64..100),
        vec(faults, 0..4),
    )
        .prop_map(
            |(ports, targets, internal, (algorithm, proxy, both_families), sticky, faults)| Edit {
                ports,
                targets,
                internal,
                algorithm,
                proxy,
                both_families,
                sticky,
                faults,
            },
        )
}

fn desired(lab: &Lab, edit: &Edit) -> LoadBalancerSpec {
    let ports: Vec<u16> = edit.ports.iter().copied().collect();
    let nodes = edit
        .targets
        .keys()
        .map(|index| node_of(&lab.machines[*index]));
    let mut spec = spec("u-1", &ports, nodes);
    for (index, drains) in &edit.targets {
        let target = spec.targets.get_mut(&lab.machines[*index].name).unwrap();
        if *drains {
            target.state = TargetState::Draining;
        }
    }
    spec.options.internal = edit.internal;
    spec.options.algorithm = edit.algorithm.then_some(Algorithm::LeastConnections);
    spec.options.proxy_protocol = Some(edit.proxy.then_some(ProxyProtocol::V2));
    if edit.both_families {
        spec.families = vec![IpFamily::V6, IpFamily::V4];
    }
    if let Some(seconds) = edit.sticky {
        let timeout = Duration::from_secs(seconds);
        spec.affinity = Affinity::ClientIp { timeout };
    }
    spec
}

/// Applies until it is settled, as a work queue would.
async fn converge(lab: &Lab, spec: &LoadBalancerSpec) {
    for _ in 0..50 {
        match lab.balancers().apply(DesiredState::Present(spec)).await {
            Ok(Outcome::Settled { .. }) => return,
            Ok(Outcome::Pending { check_after, .. }) => sleep(check_after).await,
            Ok(outcome @ Outcome::Gone { .. }) => panic!("{outcome:?}"),
            Ok(Outcome::Incomplete { .. }) | Err(_) => sleep(SECOND * 5).await,
        }
        assert!(lab.cloud.balancers().len() <= 1, "never a second balancer");
    }
    panic!("it never settles");
}

async fn run(edits: Vec<Edit>, action_seconds: u32) {
    let settings = Settings {
        action_duration: SECOND * action_seconds,
        ..Settings::default()
    };
    let lab = Lab::set_up(MACHINES, settings).await;
    for edit in &edits {
        for fault in &edit.faults {
            lab.cloud.faults().once(FaultMatch::any(), fault.clone());
        }
        let spec = desired(&lab, edit);
        converge(&lab, &spec).await;
        lab.cloud.faults().clear();
        converge(&lab, &spec).await;

        lab.cloud.reset_calls();
        let outcome = lab
            .balancers()
            .apply(DesiredState::Present(&spec))
            .await
            .unwrap();
        assert!(outcome.done().is_empty(), "{outcome:?}");
        assert_eq!(lab.cloud.calls().mutations(), 0);
        let balancers = lab.cloud.balancers();
        assert_eq!(balancers.len(), 1);
        assert_eq!(balancers[0].listeners.len(), edit.ports.len());
        let serving = edit.targets.values().filter(|drains| !**drains).count();
        let serves = |t: &&cloudkeel_provider_local::wire::Target| {
            t.state == cloudkeel_provider_local::wire::TargetState::Serving
        };
        assert_eq!(balancers[0].targets.iter().filter(serves).count(), serving);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_chain_of_specs_and_faults_ends_settled(
        edits in vec(edits(), 1..5),
        action_seconds in prop_oneof![Just(0u32), Just(7)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(edits, action_seconds));
    }
}
