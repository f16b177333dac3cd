mod lab;

use kube::runtime::watcher::Event;
use serde_json::json;

use super::{Duration, IpamSettings};
use lab::{Fault, Lab};

/// Longer than the first pauses after failures, shorter than the longest backoff.
const SOON: Duration = Duration::from_millis(50);

fn settings(cluster: &[&str]) -> IpamSettings {
    IpamSettings::new(cluster.iter().map(|cidr| cidr.parse().unwrap()).collect())
}

fn status(node: &str, reason: &str) -> (String, String) {
    let message = format!("Node {node} status is now: {reason}");
    (reason.to_owned(), message)
}

#[tokio::test(start_paused = true)]
async fn every_node_gets_the_next_block_with_one_write() {
    let lab = Lab::start(&settings(&["10.0.0.0/22"]), &[("a", &[]), ("b", &[])]).await;
    lab.create("c").await;
    assert_eq!(lab.api.requests(), ["PATCH a", "PATCH b", "PATCH c"]);
    for (node, cidr) in [
        ("a", "10.0.0.0/24"),
        ("b", "10.0.1.0/24"),
        ("c", "10.0.2.0/24"),
    ] {
        assert_eq!(lab.api.cidrs(node), cidr, "{node}");
    }
    assert_eq!(lab.events(), []);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_handed_out_before_all_nodes_have_been_seen() {
    let lab = Lab::blind(&settings(&["10.0.0.0/22"]));
    lab.create("a").await;
    lab.api.create("z", &["10.0.0.0/24"]);
    assert_eq!(lab.api.requests(), [] as [&str; 0]);
    lab.see_all().await;
    assert_eq!(lab.api.cidrs("a"), "10.0.1.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_block_is_written_once_though_the_watch_shows_it_late() {
    let lab = Lab::start(&settings(&["10.0.0.0/22"]), &[("a", &[])]).await;
    lab.api.requests();
    lab.see("a").await;
    lab.api
        .change("a", &json!({"metadata": {"labels": {"heart": "beat"}}}));
    lab.see("a").await;
    assert_eq!(lab.api.requests(), [] as [&str; 0]);
    lab.create("b").await;
    assert_eq!(lab.api.cidrs("b"), "10.0.1.0/24");
}

#[tokio::test(start_paused = true)]
async fn dual_stack_nodes_get_a_block_of_each_family_in_the_order_of_the_cluster() {
    let lab = Lab::start(&settings(&["fd00::/48", "10.0.0.0/22"]), &[("a", &[])]).await;
    assert_eq!(lab.api.cidrs("a"), "fd00::/64 10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_network_does_not_fit_is_reported_once_and_the_others_go_on() {
    let nodes: &[(&str, &[&str])] = &[
        ("extra", &["10.0.0.0/24", "fd00::/64"]),
        ("outside", &["192.168.0.0/24"]),
        ("swapped", &["fd00::/64", "10.0.2.0/24"]),
        ("z", &[]),
    ];
    let lab = Lab::start(&settings(&["10.0.0.0/22"]), nodes).await;
    let events = lab.events();
    let reported: Vec<_> = events
        .iter()
        .map(|(reason, message)| format!("{reason}: {message}"))
        .collect();
    let help = "; a Pod CIDR cannot be changed: recreate the Node, or correct --cluster-cidr";
    let missing = "is number 2, but there is no cluster CIDR number 2";
    let outside = "is outside the cluster CIDR 10.0.0.0/22";
    assert_eq!(
        reported,
        [
            format!("CIDROutOfRange: Pod CIDR fd00::/64 {missing}{help}"),
            format!("CIDROutOfRange: Pod CIDR 192.168.0.0/24 {outside}{help}"),
            format!("CIDROutOfRange: Pod CIDR fd00::/64 {outside}{help}"),
            format!("CIDROutOfRange: Pod CIDR 10.0.2.0/24 {missing}{help}"),
        ]
    );
    lab.see("outside").await;
    assert_eq!(lab.events(), []);
    assert_eq!(lab.api.cidrs("z"), "10.0.1.0/24");
    lab.create("zz").await;
    assert_eq!(
        lab.api.cidrs("zz"),
        "10.0.3.0/24",
        "10.0.2.0/24 has Pods, misplaced or not"
    );
    assert_eq!(lab.api.requests(), ["PATCH z", "PATCH zz"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_block_is_reported_and_gets_the_first_that_becomes_free() {
    let lab = Lab::start(&settings(&["10.0.0.0/23"]), &[("a", &[]), ("b", &[])]).await;
    lab.create("c").await;
    lab.create("d").await;
    assert_eq!(
        lab.events(),
        [
            status("c", "CIDRNotAvailable"),
            status("d", "CIDRNotAvailable")
        ]
    );
    assert_eq!(lab.api.cidrs("c"), "");
    lab.delete("b").await;
    assert_eq!(lab.api.cidrs("c"), "10.0.1.0/24");
    assert_eq!(lab.events(), [], "one block was free, so one was enqueued");
    lab.delete("d").await;
    lab.delete("a").await;
    lab.create("e").await;
    assert_eq!(lab.api.cidrs("e"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_block_that_the_first_in_line_does_not_need_goes_to_the_next() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[("a", &[])]).await;
    lab.create("b").await;
    lab.create("c").await;
    lab.api.begin_to_delete("b");
    lab.see("b").await;
    lab.delete("a").await;
    assert_eq!(
        (lab.api.cidrs("b"), lab.api.cidrs("c")),
        (String::new(), "10.0.0.0/24".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_second_family_leaks_no_block_of_the_first() {
    let dual = settings(&["10.0.0.0/22", "fd00::/63"]);
    let lab = Lab::start(&dual, &[("a", &[]), ("b", &[]), ("c", &[])]).await;
    assert_eq!(lab.events(), [status("c", "CIDRNotAvailable")]);
    lab.pass(Duration::from_hours(2)).await;
    assert!(lab.events().len() > 3, "it was tried again and again");
    lab.delete("a").await;
    assert_eq!(lab.api.cidrs("c"), "10.0.2.0/24 fd00::/64");
}

#[tokio::test(start_paused = true)]
async fn a_deleting_node_keeps_its_block_until_it_is_gone() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[("a", &[])]).await;
    lab.api.begin_to_delete("a");
    lab.see("a").await;
    lab.create("b").await;
    assert_eq!(lab.api.cidrs("b"), "");
    lab.delete("a").await;
    assert_eq!(lab.api.cidrs("b"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_node_of_the_same_name_starts_anew_and_the_old_ones_block_is_free() {
    let lab = Lab::start(&settings(&["10.0.0.0/23"]), &[("a", &[]), ("b", &[])]).await;
    lab.api.delete("a");
    lab.api.create("a", &[]);
    lab.see_all().await;
    assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24");
    assert_eq!(lab.events(), []);
}

#[tokio::test(start_paused = true)]
async fn answers_that_were_lost_are_read_again_and_cost_no_second_block() {
    for (case, fault) in [
        ("broken connection", Fault::AnswerLost),
        ("internal error", Fault::AnswerReplaced(500)),
        ("gateway timeout", Fault::AnswerReplaced(504)),
        ("request timeout", Fault::AnswerReplaced(408)),
    ] {
        let lab = Lab::start(&settings(&["10.0.0.0/22"]), &[]).await;
        lab.api.fail(&[fault; 3]);
        lab.create("a").await;
        assert_eq!(
            lab.api.requests(),
            ["PATCH a", "PATCH a", "PATCH a", "GET a"],
            "{case}"
        );
        assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24", "{case}");
        assert_eq!(lab.events(), [], "{case}");
        lab.pass(SOON).await;
        lab.create("b").await;
        assert_eq!(lab.api.cidrs("b"), "10.0.1.0/24", "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_that_may_have_been_written_stays_reserved_for_its_node() {
    for (case, read) in [
        ("not there yet", Fault::None),
        ("unreadable", Fault::Refused(403)),
    ] {
        let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
        lab.api.fail(&[Fault::Lost, Fault::Lost, Fault::Lost, read]);
        lab.create("a").await;
        assert_eq!(
            lab.events(),
            [status("a", "CIDRAssignmentFailed")],
            "{case}"
        );
        lab.create("b").await;
        assert_eq!(lab.events(), [status("b", "CIDRNotAvailable")], "{case}");
        lab.pass(SOON).await;
        assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24", "{case}");
        assert_eq!(lab.api.cidrs("b"), "", "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_arrives_late_finds_its_block_still_reserved() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
    lab.api.fail(&[Fault::Lost; 4]);
    lab.create("a").await;
    lab.api.set_cidrs("a", &["10.0.0.0/24"]);
    lab.see("a").await;
    lab.api.requests();
    lab.pass(SOON).await;
    assert_eq!(
        lab.api.requests(),
        [] as [&str; 0],
        "nothing is left to write"
    );
    lab.delete("a").await;
    lab.create("b").await;
    assert_eq!(lab.api.cidrs("b"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_write_ends_when_the_node_is_gone() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
    lab.api.fail(&[Fault::Lost; 4]);
    lab.create("a").await;
    lab.delete("a").await;
    lab.create("b").await;
    assert_eq!(lab.api.cidrs("b"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_reported_gives_the_block_back_and_is_tried_again() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
    lab.api.fail(&[Fault::Refused(403)]);
    lab.create("a").await;
    assert_eq!(
        lab.api.requests(),
        ["PATCH a", "GET a"],
        "a refusal stays one"
    );
    assert_eq!(lab.events(), [status("a", "CIDRAssignmentFailed")]);
    lab.create("b").await;
    assert_eq!(
        lab.api.cidrs("b"),
        "10.0.0.0/24",
        "the block is free for others"
    );
    lab.pass(SOON).await;
    assert_eq!(lab.events(), [status("a", "CIDRNotAvailable")]);
    lab.delete("b").await;
    assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_end_an_earlier_unconfirmed_write() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
    lab.api.fail(&[Fault::Lost; 4]);
    lab.api.fail(&[Fault::Refused(403)]);
    lab.create("a").await;
    lab.pass(Duration::from_millis(8)).await;
    assert_eq!(lab.api.requests()[3..], ["GET a", "PATCH a", "GET a"]);
    lab.create("b").await;
    assert_eq!(lab.api.cidrs("b"), "");
    lab.pass(SOON).await;
    assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_node_gets_nothing_until_it_is_managed_again() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
    let label = |value: &str| json!({"metadata": {"labels": {"cloudkeel.dev/unmanaged": value}}});
    lab.api.create("a", &[]);
    lab.api.change("a", &label("true"));
    lab.see("a").await;
    assert_eq!(lab.api.requests(), [] as [&str; 0]);
    lab.api.change("a", &label("false"));
    lab.see("a").await;
    assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn a_paused_node_gets_nothing_until_the_pause_ends() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[]).await;
    let pause = |value: &str| json!({"metadata": {"annotations": {"cloudkeel.dev/paused": value}}});
    lab.api.create("a", &[]);
    lab.api.change("a", &pause("true"));
    lab.see("a").await;
    assert_eq!(lab.api.requests(), [] as [&str; 0]);
    lab.api.change("a", &pause("false"));
    lab.see("a").await;
    assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24");
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_short_troubles_are_over_within_three_tries() {
    let lab = Lab::start(&settings(&["10.0.0.0/22"]), &[]).await;
    lab.api.fail(&[Fault::Refused(409), Fault::Lost]);
    lab.create("a").await;
    assert_eq!(lab.api.requests(), ["PATCH a", "PATCH a", "PATCH a"]);
    assert_eq!(lab.api.cidrs("a"), "10.0.0.0/24");
    assert_eq!(lab.events(), []);
}

#[tokio::test(start_paused = true)]
async fn networks_that_another_client_wrote_first_stay_and_ours_are_free_again() {
    let lab = Lab::start(&settings(&["10.0.0.0/23"]), &[]).await;
    lab.api.create("a", &[]);
    let as_it_was = lab.api.get("a");
    lab.api.set_cidrs("a", &["10.0.1.0/24"]);
    lab.watch(vec![Event::Apply(as_it_was.into())]).await;
    assert_eq!(lab.api.requests(), ["PATCH a", "GET a"]);
    assert_eq!(lab.api.cidrs("a"), "10.0.1.0/24");
    lab.see("a").await;
    lab.create("b").await;
    lab.create("c").await;
    assert_eq!(lab.api.cidrs("b"), "10.0.0.0/24", "ours was given back");
    assert_eq!(
        lab.events(),
        [status("c", "CIDRNotAvailable")],
        "theirs is in use"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_replaced_unseen_gets_nothing_of_its_predecessors() {
    for (case, cidrs) in [
        ("new", [].as_slice()),
        ("new, with networks", &["10.0.1.0/24"]),
    ] {
        let lab = Lab::start(&settings(&["10.0.0.0/23"]), &[]).await;
        lab.api.create("a", &[]);
        let predecessor = lab.api.delete("a");
        lab.api.create("a", cidrs);
        lab.watch(vec![Event::Apply(predecessor.into())]).await;
        assert_eq!(
            lab.api.requests(),
            ["PATCH a"],
            "{case}: the refusal says it"
        );
        assert_eq!(lab.api.cidrs("a"), cidrs.join(" "), "{case}");
        assert_eq!(lab.events(), [], "{case}: nothing has failed");
        lab.see("a").await;
        assert_eq!(lab.api.cidrs("a"), "10.0.1.0/24", "{case}");
        lab.create("b").await;
        lab.create("c").await;
        assert_eq!(
            lab.events(),
            [status("c", "CIDRNotAvailable")],
            "{case}: two blocks for two Nodes"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_node_is_left_in_peace_until_it_is_given_a_network() {
    let lab = Lab::start(&settings(&["10.0.0.0/24"]), &[("a", &[])]).await;
    lab.create("b").await;
    assert_eq!(lab.events(), [status("b", "CIDRNotAvailable")]);
    lab.api
        .change("b", &json!({"metadata": {"labels": {"heart": "beat"}}}));
    lab.see("b").await;
    assert_eq!(lab.events(), [], "a heartbeat changes nothing");
    lab.api.set_cidrs("b", &["10.0.0.0/25"]);
    lab.see("b").await;
    let reported: Vec<_> = lab.events().into_iter().map(|event| event.0).collect();
    assert_eq!(reported, ["CIDRShared"], "noted at once");
    lab.delete("a").await;
    lab.create("c").await;
    assert_eq!(lab.events(), [status("c", "CIDRNotAvailable")]);
    lab.delete("b").await;
    assert_eq!(lab.api.cidrs("c"), "10.0.0.0/24");
}
