use std::sync::Mutex;

use cloudkeel_api::names;

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| net(text)).collect()
}

fn set(cidr: &str, mask: u8) -> CidrSet {
    CidrSet::new(net(cidr), mask).unwrap()
}

fn facts(name: &str, cidrs: &[&str]) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        uid: format!("uid of {name}"),
        pod_cidrs: nets(cidrs),
        ..NodeFacts::default()
    }
}

fn node(name: &str, cidrs: &[&str]) -> NodeView {
    NodeView {
        facts: facts(name, cidrs).into(),
        ..NodeView::default()
    }
}

fn recreated(mut node: NodeView) -> NodeView {
    node.facts.uid.push_str(", the second");
    node
}

fn deleting(node: NodeView) -> NodeView {
    NodeView {
        deleting: true,
        ..node
    }
}

fn unmanaged(mut node: NodeView) -> NodeView {
    let label = (names::UNMANAGED_LABEL.to_owned(), "true".to_owned());
    node.facts.labels.extend([label]);
    node
}

fn single_stack(services: &[&str]) -> Allocations {
    let sets = vec![set("10.0.0.0/22", 24)];
    Allocations::new(sets, &nets(services), Arc::new(Unobserved))
}

fn dual_stack() -> Allocations {
    let sets = vec![set("10.0.0.0/22", 24), set("fd00::/63", 64)];
    Allocations::new(sets, &[], Arc::new(Unobserved))
}

fn reserve(allocations: &mut Allocations, name: &str) -> Vec<String> {
    match allocations.sync(name, Some(&node(name, &[]))) {
        Step::Write(cidrs) => cidrs.iter().map(IpNet::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

fn in_use(allocations: &Allocations) -> Vec<u64> {
    allocations.sets.iter().map(CidrSet::allocated).collect()
}

const DONE: Step = Step::Done(Vec::new());

#[test]
fn service_ranges_are_never_allocated_and_those_elsewhere_do_not_matter() {
    let mut allocations = single_stack(&["10.0.0.0/23", "192.168.0.0/16"]);
    assert_eq!(reserve(&mut allocations, "a"), ["10.0.2.0/24"]);
    assert_eq!(reserve(&mut allocations, "b"), ["10.0.3.0/24"]);
    let late = allocations.sync("c", Some(&node("c", &[])));
    assert_eq!(late, Step::Exhausted(net("10.0.0.0/22")));
    assert_eq!(allocations.free(), 0);
}

#[test]
fn what_a_node_already_has_is_never_allocated_and_counted_once() {
    let mut allocations = single_stack(&[]);
    for _ in 0..3 {
        assert_eq!(allocations.occupy(&facts("old", &["10.0.0.0/24"])), []);
        assert_eq!(in_use(&allocations), [1]);
    }
    assert_eq!(reserve(&mut allocations, "new"), ["10.0.1.0/24"]);
}

#[test]
fn an_exhausted_cluster_cidr_costs_the_others_no_block() {
    let mut allocations = dual_stack();
    reserve(&mut allocations, "a");
    reserve(&mut allocations, "b");
    for _ in 0..3 {
        let late = allocations.sync("c", Some(&node("c", &[])));
        assert_eq!(late, Step::Exhausted(net("fd00::/63")));
    }
    assert_eq!(in_use(&allocations), [2, 2]);
    assert_eq!(allocations.free(), 0);
    allocations.release("a");
    assert_eq!(reserve(&mut allocations, "c"), ["10.0.2.0/24", "fd00::/64"]);
}

#[test]
fn a_node_that_got_other_networks_releases_what_was_reserved() {
    let mut allocations = dual_stack();
    reserve(&mut allocations, "a");
    assert_eq!(allocations.occupy(&facts("a", &["10.0.3.0/24"])), []);
    assert_eq!(in_use(&allocations), [1, 0]);
    assert_eq!(allocations.by_node["a"].state, AllocationState::Written);
    allocations.release("a");
    assert_eq!(in_use(&allocations), [0, 0]);
}

#[test]
fn a_refusal_frees_what_is_reserved_unless_an_earlier_write_may_have_arrived() {
    let mut allocations = single_stack(&[]);
    reserve(&mut allocations, "refused");
    allocations.release_reserved("refused");
    assert_eq!(in_use(&allocations), [0]);
    reserve(&mut allocations, "unconfirmed");
    allocations.set_unconfirmed("unconfirmed");
    allocations.release_reserved("unconfirmed");
    assert_eq!(in_use(&allocations), [1]);
    allocations.occupy(&facts("written", &["10.0.3.0/24"]));
    allocations.release_reserved("written");
    assert_eq!(in_use(&allocations), [2]);
    allocations.release("unconfirmed");
    assert_eq!(in_use(&allocations), [1]);
}

#[test]
fn a_network_that_does_not_fit_is_reported_once_and_its_addresses_are_not_allocated() {
    for (case, cidrs, problems, blocks) in [
        (
            "outside",
            ["10.9.0.0/24"].as_slice(),
            ["Pod CIDR 10.9.0.0/24 is outside the cluster CIDR 10.0.0.0/22"].as_slice(),
            [0, 0],
        ),
        (
            "families in the wrong order",
            &["fd00::/64", "10.0.1.0/24"],
            &[
                "Pod CIDR fd00::/64 is outside the cluster CIDR 10.0.0.0/22",
                "Pod CIDR 10.0.1.0/24 is outside the cluster CIDR fd00::/63",
            ],
            [1, 1],
        ),
        (
            "one too many",
            &["10.0.1.0/24", "fd00::/64", "10.0.2.0/24"],
            &["Pod CIDR 10.0.2.0/24 is number 3, but there is no cluster CIDR number 3"],
            [2, 1],
        ),
        ("fewer is fine", &["10.0.1.0/24"], &[], [1, 0]),
        ("wider than a block is fine", &["10.0.0.0/23"], &[], [2, 0]),
    ] {
        let mut allocations = dual_stack();
        let found = allocations.occupy(&facts("a", cidrs));
        let messages: Vec<_> = found.iter().map(|problem| &problem.message).collect();
        assert_eq!(messages, problems, "{case}");
        assert_eq!(in_use(&allocations), blocks, "{case}");
        assert_eq!(allocations.occupy(&facts("a", cidrs)), [], "{case}: once");
    }
}

#[test]
fn a_block_that_two_nodes_have_is_reported_and_free_only_when_both_are_gone() {
    let mut allocations = single_stack(&["10.0.0.0/24"]);
    let first = allocations.occupy(&facts("a", &["10.0.0.0/23"]));
    assert_eq!(first, [], "no other Node");
    let problems = allocations.occupy(&facts("b", &["10.0.1.0/24"]));
    let expected = PodCidrProblem {
        reason: "CIDRShared",
        message: "Pod CIDR 10.0.1.0/24 overlaps 10.0.0.0/23 of Node a".to_owned(),
    };
    assert_eq!(problems, [expected]);
    assert_eq!(in_use(&allocations), [2]);
    allocations.release("a");
    assert_eq!(in_use(&allocations), [2], "b and the service range");
    allocations.release("b");
    assert_eq!(in_use(&allocations), [1], "the service range");
    allocations.release("b");
    assert_eq!(in_use(&allocations), [1], "nothing to release twice");
}

/// One IPv4 block and four IPv6 blocks. With `Some`, Node `a` has got the first of each, in this state.
fn one_block(state: Option<AllocationState>) -> Allocations {
    let sets = vec![set("10.0.0.0/24", 24), set("fd00::/62", 64)];
    let mut allocations = Allocations::new(sets, &[], Arc::new(Unobserved));
    if let Some(state) = state {
        let cidrs = reserve(&mut allocations, "a");
        assert_eq!(cidrs, FIRST);
        allocations.by_node.get_mut("a").unwrap().state = state;
    }
    allocations
}

const FIRST: [&str; 2] = ["10.0.0.0/24", "fd00::/64"];
const RESERVED: Option<AllocationState> = Some(AllocationState::Reserved);
const UNCONFIRMED: Option<AllocationState> = Some(AllocationState::Unconfirmed);
const WRITTEN: Option<AllocationState> = Some(AllocationState::Written);

#[test]
fn a_node_that_is_gone_or_recreated_releases_what_it_had() {
    let again = recreated(node("a", &[]));
    let first = || Step::Write(nets(&FIRST));
    for (case, seen, before, step, blocks) in [
        ("never had any", None, None, DONE, [0, 0]),
        ("had some", None, WRITTEN, DONE, [0, 0]),
        ("was about to get some", None, RESERVED, DONE, [0, 0]),
        (
            "recreated",
            Some(again.clone()),
            WRITTEN,
            Step::Write(nets(&["10.0.0.0/24", "fd00:0:0:1::/64"])),
            [1, 1],
        ),
        (
            "recreated and deleting",
            Some(deleting(again)),
            RESERVED,
            DONE,
            [0, 0],
        ),
        ("new", Some(node("a", &[])), None, first(), [1, 1]),
    ] {
        let mut allocations = one_block(before);
        assert_eq!(allocations.sync("a", seen.as_ref()), step, "{case}");
        assert_eq!(in_use(&allocations), blocks, "{case}");
    }
}

#[test]
fn a_node_without_networks_gets_them_unless_it_is_to_be_left_alone_or_none_are_left() {
    let new = || node("a", &[]);
    let late = || node("late", &[]);
    let write = || Step::Write(nets(&FIRST));
    let full = || Step::Exhausted(net("10.0.0.0/24"));
    for (case, seen, before, step) in [
        ("reserved", new(), RESERVED, write()),
        ("perhaps written", new(), UNCONFIRMED, write()),
        ("the watch lags", new(), WRITTEN, DONE),
        ("unmanaged", unmanaged(new()), None, DONE),
        ("deleting", deleting(new()), None, DONE),
        ("deleting, reserved", deleting(new()), RESERVED, DONE),
        ("deleting, written", deleting(new()), WRITTEN, DONE),
        ("nothing left", late(), WRITTEN, full()),
        ("all reserved", late(), RESERVED, full()),
    ] {
        let mut allocations = one_block(before);
        let blocks = in_use(&allocations);
        let name = seen.facts.name.clone();
        assert_eq!(allocations.sync(&name, Some(&seen)), step, "{case}");
        assert_eq!(in_use(&allocations), blocks, "{case}: nothing leaks");
    }
}

#[test]
fn networks_that_a_node_has_are_noted_even_while_it_is_being_deleted() {
    let ours = || node("a", &FIRST);
    let others = || node("a", &["10.0.0.0/24", "fd00:0:0:1::/64"]);
    for (case, seen, before) in [
        ("from before", ours(), None),
        ("written after all", ours(), RESERVED),
        ("of another client", others(), RESERVED),
        ("deleting", deleting(ours()), None),
        ("unmanaged", unmanaged(ours()), None),
        ("noted", ours(), WRITTEN),
        ("noted and deleting", deleting(ours()), WRITTEN),
    ] {
        let mut allocations = one_block(before);
        assert_eq!(allocations.sync("a", Some(&seen)), DONE, "{case}");
        let noted = &allocations.by_node["a"];
        assert_eq!(noted.cidrs, seen.facts.pod_cidrs, "{case}");
        assert_eq!(noted.state, AllocationState::Written, "{case}");
        assert_eq!(in_use(&allocations), [1, 1], "{case}");
    }
}

/// Writes down what it observes.
#[derive(Default)]
struct Observed(Mutex<Vec<String>>);

impl Observed {
    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl IpamObserver for Observed {
    fn has_blocks(&self, cidr: IpNet, blocks: u64) {
        self.push(format!("{cidr} max {blocks}"));
    }
    fn allocated(&self, _: IpNet, blocks: u64) {
        self.push(format!("allocated {blocks}"));
    }
    fn released(&self, _: IpNet, blocks: u64) {
        self.push(format!("released {blocks}"));
    }
    fn usage(&self, _: IpNet, used: u64, blocks: u64) {
        self.push(format!("usage {used}/{blocks}"));
    }
    fn tried(&self, _: IpNet, skipped: u64) {
        self.push(format!("tried {skipped}"));
    }
}

#[test]
fn the_observer_sees_every_change_of_a_cluster_cidr_once() {
    let seen = Arc::new(Observed::default());
    let observer: Arc<dyn IpamObserver> = Arc::<Observed>::clone(&seen);
    let sets = vec![set("10.0.0.0/22", 24)];
    let mut allocations = Allocations::new(sets, &nets(&["10.0.0.0/23"]), observer);
    reserve(&mut allocations, "a");
    allocations.occupy(&facts("a", &["10.0.2.0/24"]));
    allocations.release("a");
    assert_eq!(
        *seen.0.lock().unwrap(),
        [
            "10.0.0.0/22 max 4",
            "allocated 2",
            "usage 2/4",
            "allocated 1",
            "usage 3/4",
            "tried 2",
            "released 1",
            "usage 2/4",
        ]
    );
}
