//! Lists and searches.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_believed_only_if_the_last_seen_instance_is_gone_too() {
    for (case, answers, expected) in [
        ("gone too", &[Live, NotFound][..], Ok(0)),
        ("a tombstone", &[Live, Tombstone], Ok(0)),
        ("still there", &[Live, Live], Err(ErrorKind::Incomplete)),
        (
            "no answer",
            &[Live, Refused(ErrorKind::Timeout)],
            Err(ErrorKind::Timeout),
        ),
        (
            "answered elsewhere",
            &[Live, OtherScope],
            Err(ErrorKind::Incomplete),
        ),
    ] {
        let instances = proven(Script::new(&[(7, answers)]).listing(&[7]));
        assert_eq!(
            instances.list().await.unwrap().instances().len(),
            1,
            "{case}"
        );
        instances.source.listed.lock().unwrap().clear();
        let list = instances.list().await;
        let found = list
            .map(|list| list.instances().len())
            .map_err(|e| e.kind());
        assert_eq!(found, expected, "{case}");
    }
    let instances = proven(Script::new(&[]));
    assert_eq!(
        instances.list().await.unwrap().instances().len(),
        0,
        "never seen any"
    );
    assert_eq!(asked(&instances), ["list"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_another_scope_says_so_and_is_not_remembered() {
    let mut script = Script::new(&[(8, &[Live])]).listing(&[8]);
    script.lists_scope = "away";
    let instances = proven(script);
    assert_eq!(instances.list().await.unwrap().scope().as_str(), "away");
    let known = known(&instances, "y://1", "home");
    let existence = instances.find(&node(7), Some(&known)).await;
    assert_eq!(word(&existence), "nothing else seen");
}

#[tokio::test(start_paused = true)]
async fn tombstones_are_not_listed_and_not_found_by_name() {
    let script = Script::new(&[(7, &[Tombstone]), (107, &[Live])]).listing(&[7, 107]);
    let instances = proven(script);
    let list = instances.list().await.unwrap();
    assert_eq!(list.instances().len(), 1);
    let new = NodeFacts {
        provider_id: None,
        ..node(7)
    };
    let existence = instances.find(&new, None).await;
    assert_eq!(existence.instance().unwrap().id.as_str(), "x://107");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_none_or_several_have_proves_nothing() {
    for (case, listed, expected) in [
        ("none", &[8][..], "no match"),
        ("one", &[7, 8], "present"),
        ("several", &[7, 107], "ambiguous"),
    ] {
        let answers = [(7, &[Live][..]), (8, &[Live]), (107, &[Live])];
        let instances = proven(Script::new(&answers).listing(listed));
        let new = NodeFacts {
            provider_id: None,
            ..node(7)
        };
        assert_eq!(word(&instances.find(&new, None).await), expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_of_another_cloud_is_not_looked_up() {
    let instances = proven(Script::new(&[]));
    let other = NodeFacts {
        provider_id: Some("y://7".parse().unwrap()),
        ..node(7)
    };
    assert_eq!(word(&instances.find(&other, None).await), "not ours");
    assert_eq!(asked(&instances), Vec::<String>::new());
}
