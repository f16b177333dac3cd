//! How many calls things cost, beside those of the Go CCM on the same moto: the table of docs/providers/aws.md.

use cloudkeel_api::Shared;

use crate::lab::Lab;

const NLB: (&str, &str) = ("type", "nlb");

/// So many Nodes that the Go CCM looks up one by one, in 102 calls.
#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_hundred_nodes_cost_one_list() {
    let lab = Lab::with_nodes(100).await;
    let instances = lab.provider.instances().unwrap();
    let (list, calls, _) = lab.counted(instances.list()).await;
    assert_eq!((list.unwrap().instances().len(), calls), (100, 1));
    // Twenty of them are not ready, and each is checked.
    let not_ready = Shared::of_each(&lab.nodes[..20]);
    let (_, first, _) = lab.counted(instances.find_many(&not_ready, None)).await;
    let (found, again, _) = lab.counted(instances.find_many(&not_ready, None)).await;
    assert!(found.iter().all(|existence| existence.instance().is_some()));
    assert!(first <= 3, "the zones and the types are new: {first}");
    assert_eq!(again, 1, "one look-up for all of them");
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn an_unchanged_service_costs_few_reads_and_no_write() {
    let lab = Lab::with_nodes(3).await;
    // Go: 10 calls with a write, 11 and 13 calls.
    for (case, ports, annotations, most) in [
        ("classic", &[80][..], &[][..], 5),
        ("NLB", &[80], &[NLB], 7),
        ("NLB with three ports", &[80, 81, 82], &[NLB], 9),
    ] {
        let spec = lab.service(ports, annotations);
        let (_, made, _) = lab.counted(lab.settle(&spec)).await;
        let (_, calls, mutating) = lab.counted(lab.settle(&spec)).await;
        assert!(
            calls <= most && mutating == 0,
            "{case}: {calls} calls, {mutating} of them mutating"
        );
        let ((), removed, _) = lab.counted(lab.remove(&spec)).await;
        println!("{case}: created in {made} calls, unchanged {calls}, deleted in {removed}");
    }
}
