//! Many Nodes at once.

use super::*;

/// Twelve Nodes, of which two are not there.
async fn look_up_twelve(batch: Option<usize>) -> (Vec<&'static str>, Vec<String>) {
    let live = &[Live][..];
    let answers: Vec<_> = (1..=10).chain([20]).map(|id| (id, live)).collect();
    let ids: Vec<_> = (1..=10).collect();
    let mut script = Script::new(&answers).listing(&ids);
    script.batch = batch;
    let instances = proven(script);
    let known = known(&instances, "x://20", "home");
    let nodes: Vec<_> = (1..=12).map(|id| Shared::from(node(id))).collect();
    let found = instances.find_many(&nodes, Some(&known)).await;
    (found.iter().map(word).collect(), asked(&instances))
}

#[tokio::test(start_paused = true)]
async fn many_look_ups_cost_few_calls_and_what_is_missing_is_looked_up_by_itself() {
    let expected = [["present"; 10].as_slice(), &["gone"; 2]].concat();
    let (found, asked) = look_up_twelve(None).await;
    assert_eq!(found, expected);
    assert_eq!(asked, ["list", "get 11", "get 12", "get 20"]);
    let (found, asked) = look_up_twelve(Some(8)).await;
    assert_eq!(found, expected);
    assert_eq!(
        asked,
        [
            "get [1, 2, 3, 4, 5, 6, 7, 8]",
            "get [9, 10, 11, 12]",
            "get 11",
            "get 12",
            "get [11, 12, 20]"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_refused_is_split_and_one_that_fails_is_not() {
    for (kind, expected, calls) in [
        (ErrorKind::Invalid, "present", 3),
        (ErrorKind::NotFound, "present", 3),
        (ErrorKind::Throttled { retry_after: None }, "no answer", 1),
        (ErrorKind::Unavailable, "no answer", 1),
    ] {
        let mut script = Script::new(&[(1, &[Live]), (2, &[Live])]).in_batches_of(10);
        script.batch_error = Some(kind);
        let instances = proven(script);
        let nodes = [Shared::from(node(1)), Shared::from(node(2))];
        let found = instances.find_many(&nodes, None).await;
        assert_eq!(
            found.iter().map(word).collect::<Vec<_>>(),
            [expected; 2],
            "{kind}"
        );
        assert_eq!(asked(&instances).len(), calls, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_described_before_it_is_returned() {
    let mut script = Script::new(&[(7, &[Live])]).listing(&[7]);
    script.is_summary = true;
    let instances = proven(script);
    let found = instances.find(&node(7), None).await;
    assert!(!found.instance().unwrap().is_summary);
    assert_eq!(asked(&instances), ["get 7", "describe"]);
    assert!(
        instances
            .list()
            .await
            .unwrap()
            .instances()
            .all(|i| i.is_summary)
    );
}

#[test]
fn a_node_is_identified_by_id_uuid_or_name() {
    let of = |id: u64, uuid: &str| Instance {
        system_uuid: Some(uuid.to_owned()),
        ..Instance::new(ProviderId::new("x", &id.to_string()), format!("node-{id}"))
    };
    let (scope, taken) = (ScopeFingerprint::new("home"), jiff::Timestamp::UNIX_EPOCH);
    let list = InstanceList::complete(scope, taken, [of(1, "a"), of(2, "b")]);
    let new = |uuid: Option<&str>| NodeFacts {
        provider_id: None,
        system_uuid: uuid.map(str::to_owned),
        ..node(1)
    };
    let id = |found: Match<'_>| match found {
        Match::One(instance) => Some(instance.id.to_string()),
        _ => None,
    };
    for (case, node, by_uuid, by_name) in [
        (
            "ID",
            NodeFacts {
                system_uuid: Some("b".to_owned()),
                ..node(1)
            },
            "x://1",
            "x://1",
        ),
        ("UUID", new(Some("B")), "x://2", "x://1"),
        ("unknown UUID", new(Some("c")), "x://1", "x://1"),
        ("name", new(None), "x://1", "x://1"),
    ] {
        assert_eq!(
            id(by_id_uuid_or_name(&node, &list)).as_deref(),
            Some(by_uuid),
            "{case}"
        );
        assert_eq!(
            id(by_id_or_name(&node, &list)).as_deref(),
            Some(by_name),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_list_shows_too_little_is_asked_for_each() {
    let ids: Vec<u64> = (1..=12).collect();
    let answers: Vec<_> = ids.iter().map(|id| (*id, [Live].as_slice())).collect();
    let mut script = Script::new(&answers).listing(&ids);
    script.list_from = usize::MAX;
    let instances = proven(script);
    let nodes: Vec<_> = ids.iter().map(|id| Shared::from(node(*id))).collect();
    let found = instances.find_many(&nodes, None).await;
    assert!(found.iter().all(|found| word(found) == "present"));
    let asked = asked(&instances);
    assert_eq!(asked.len(), 12);
    assert!(!asked.contains(&"list".to_owned()), "{asked:?}");
}
