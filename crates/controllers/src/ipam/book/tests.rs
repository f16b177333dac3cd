use std::sync::Mutex;

use super::*;
use crate::runtime::Unobserved;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| net(text)).collect()
}

fn range(cidr: &str, mask: u8) -> ClusterRange {
    ClusterRange::new(net(cidr), mask).unwrap()
}

fn node(name: &str, cidrs: &[&str]) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        uid: format!("uid of {name}"),
        pod_cidrs: nets(cidrs),
        ..NodeFacts::default()
    }
}

fn single_stack(services: &[&str]) -> Book {
    let ranges = [range("10.0.0.0/22", 24)];
    Book::new(&ranges, &nets(services), Arc::new(Unobserved))
}

fn dual_stack() -> Book {
    let ranges = [range("10.0.0.0/22", 24), range("fd00::/63", 64)];
    Book::new(&ranges, &[], Arc::new(Unobserved))
}

fn reserve(book: &mut Book, name: &str) -> Vec<String> {
    let blocks = book.candidates().unwrap();
    book.reserve(&node(name, &[]), &blocks);
    let cidrs = blocks.iter().map(|block| block.cidr.to_string());
    cidrs.collect()
}

fn used(book: &Book) -> Vec<u64> {
    book.sets.iter().map(CidrSet::used).collect()
}

#[test]
fn service_ranges_are_never_handed_out_and_those_elsewhere_do_not_matter() {
    let mut book = single_stack(&["10.0.0.0/23", "192.168.0.0/16"]);
    assert_eq!(reserve(&mut book, "a"), ["10.0.2.0/24"]);
    assert_eq!(reserve(&mut book, "b"), ["10.0.3.0/24"]);
    assert_eq!(book.candidates(), Err(net("10.0.0.0/22")));
    assert_eq!(book.room(), 0);
}

#[test]
fn what_a_node_already_has_is_never_handed_out_and_counted_once() {
    let mut book = single_stack(&[]);
    for _ in 0..3 {
        assert_eq!(book.settle(&node("old", &["10.0.0.0/24"])), []);
        assert_eq!(used(&book), [1]);
    }
    assert_eq!(reserve(&mut book, "new"), ["10.0.1.0/24"]);
}

#[test]
fn a_full_range_costs_the_others_no_block() {
    let mut book = dual_stack();
    reserve(&mut book, "a");
    reserve(&mut book, "b");
    for _ in 0..3 {
        assert_eq!(book.candidates(), Err(net("fd00::/63")));
    }
    assert_eq!(used(&book), [2, 2]);
    assert_eq!(book.room(), 0);
    book.release("a");
    assert_eq!(reserve(&mut book, "c"), ["10.0.2.0/24", "fd00::/64"]);
}

#[test]
fn a_node_that_got_other_networks_gives_back_what_was_reserved() {
    let mut book = dual_stack();
    reserve(&mut book, "a");
    assert_eq!(book.settle(&node("a", &["10.0.3.0/24"])), []);
    assert_eq!(used(&book), [1, 0]);
    assert_eq!(book.holding("a").unwrap().certainty, Certainty::Written);
    book.release("a");
    assert_eq!(used(&book), [0, 0]);
}

#[test]
fn a_refusal_frees_what_is_reserved_unless_an_earlier_write_is_in_doubt() {
    let mut book = single_stack(&[]);
    reserve(&mut book, "refused");
    book.give_up("refused");
    assert_eq!(used(&book), [0]);
    reserve(&mut book, "in doubt");
    book.doubt("in doubt");
    book.give_up("in doubt");
    assert_eq!(used(&book), [1]);
    book.settle(&node("written", &["10.0.3.0/24"]));
    book.give_up("written");
    assert_eq!(used(&book), [2]);
    book.release("in doubt");
    assert_eq!(used(&book), [1]);
}

#[test]
fn a_network_that_does_not_fit_is_told_and_its_addresses_are_kept_out_of_use() {
    for (case, cidrs, misfits, in_use) in [
        (
            "outside",
            ["10.9.0.0/24"].as_slice(),
            ["Pod network 10.9.0.0/24 is outside the cluster CIDR 10.0.0.0/22"].as_slice(),
            [0, 0],
        ),
        (
            "families in the wrong order",
            &["fd00::/64", "10.0.1.0/24"],
            &[
                "Pod network fd00::/64 is outside the cluster CIDR 10.0.0.0/22",
                "Pod network 10.0.1.0/24 is outside the cluster CIDR fd00::/63",
            ],
            [1, 1],
        ),
        (
            "one too many",
            &["10.0.1.0/24", "fd00::/64", "10.0.2.0/24"],
            &["Pod network 10.0.2.0/24 is number 3, but there is no cluster CIDR number 3"],
            [2, 1],
        ),
        ("fewer is fine", &["10.0.1.0/24"], &[], [1, 0]),
        ("wider than a block is fine", &["10.0.0.0/23"], &[], [2, 0]),
    ] {
        let mut book = dual_stack();
        let told: Vec<_> = book
            .settle(&node("a", cidrs))
            .iter()
            .map(Misfit::to_string)
            .collect();
        assert_eq!(told, misfits, "{case}");
        assert_eq!(used(&book), in_use, "{case}");
        assert_eq!(book.settle(&node("a", cidrs)), [], "{case}: told once");
    }
}

#[test]
fn a_block_that_two_have_is_told_and_free_only_when_both_are_gone() {
    let mut book = single_stack(&["10.0.0.0/24"]);
    assert_eq!(
        book.settle(&node("a", &["10.0.0.0/23"])),
        [],
        "no other Node"
    );
    let misfits = book.settle(&node("b", &["10.0.1.0/24"]));
    assert_eq!(
        misfits
            .iter()
            .map(|misfit| (misfit.reason(), misfit.to_string()))
            .collect::<Vec<_>>(),
        [(
            "CIDRShared",
            "Pod network 10.0.1.0/24 overlaps 10.0.0.0/23 of Node a".to_owned()
        )]
    );
    assert_eq!(used(&book), [2]);
    book.release("a");
    assert_eq!(used(&book), [2], "b and the service range");
    book.release("b");
    assert_eq!(used(&book), [1], "the service range");
    book.release("b");
    assert_eq!(used(&book), [1], "nothing to give back twice");
}

/// Adds up what it hears, per fact.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl IpamObserver for Heard {
    fn has_blocks(&self, cidr: IpNet, blocks: u64) {
        self.0.lock().unwrap().push(format!("{cidr} max {blocks}"));
    }
    fn allocated(&self, _: IpNet, blocks: u64) {
        self.0.lock().unwrap().push(format!("allocated {blocks}"));
    }
    fn released(&self, _: IpNet, blocks: u64) {
        self.0.lock().unwrap().push(format!("released {blocks}"));
    }
    fn usage(&self, _: IpNet, used: u64, blocks: u64) {
        self.0
            .lock()
            .unwrap()
            .push(format!("usage {used}/{blocks}"));
    }
    fn tried(&self, _: IpNet, passed_over: u64) {
        self.0.lock().unwrap().push(format!("tried {passed_over}"));
    }
}

#[test]
fn the_observer_hears_every_change_of_a_range_once() {
    let heard = Arc::new(Heard::default());
    let observer: Arc<dyn IpamObserver> = Arc::<Heard>::clone(&heard);
    let mut book = Book::new(
        &[range("10.0.0.0/22", 24)],
        &nets(&["10.0.0.0/23"]),
        observer,
    );
    reserve(&mut book, "a");
    book.settle(&node("a", &["10.0.2.0/24"]));
    book.release("a");
    assert_eq!(
        *heard.0.lock().unwrap(),
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
