//! What proves that an instance is gone, and what does not.

use super::*;

/// The rule itself, over every answer about the instance and about the known one, with and without batches:
/// gone is only what a tombstone shows, or what is not found while a known instance still is.
#[tokio::test(start_paused = true)]
async fn only_a_tombstone_or_absence_beside_a_known_instance_proves_that_an_instance_is_gone() {
    for batch in [None, Some(10)] {
        for about in ANSWERS {
            for about_known in ANSWERS {
                for is_known in [false, true] {
                    let case = format!("{about:?}, {about_known:?}, {is_known}, {batch:?}");
                    let mut script = Script::new(&[(7, &[about]), (8, &[about_known])]);
                    script.batch = batch;
                    let instances = proven(script);
                    let known = is_known.then(|| known(&instances, "x://8", "home"));
                    let one = instances.find(&node(7), known.as_ref()).await;
                    let nodes = [Shared::from(node(7)), Shared::from(node(7))];
                    let many = instances.find_many(&nodes, known.as_ref()).await;
                    let is_proof = match about {
                        Tombstone => true,
                        NotFound => is_known && about_known == Live,
                        _ => false,
                    };
                    for existence in many.iter().chain([&one]) {
                        let is_gone = matches!(existence, Existence::Gone(_));
                        assert_eq!(is_gone, is_proof, "{case}: {existence:?}");
                        let is_present = matches!(existence, Existence::Present(_));
                        assert_eq!(is_present, about == Live, "{case}: {existence:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_doubt_has_its_reason() {
    for (case, answers, known_id, scope, expected) in [
        (
            "no answer",
            &[Refused(ErrorKind::Timeout)][..],
            "x://8",
            "home",
            "no answer",
        ),
        (
            "another scope",
            &[OtherScope],
            "x://8",
            "home",
            "scope changed",
        ),
        (
            "known in another scope",
            &[NotFound],
            "x://8",
            "away",
            "scope changed",
        ),
        (
            "known is gone too",
            &[NotFound],
            "x://9",
            "home",
            "nothing else seen",
        ),
        (
            "known is itself",
            &[NotFound],
            "x://7",
            "home",
            "nothing else seen",
        ),
        (
            "known is no instance here",
            &[NotFound],
            "y://1",
            "home",
            "nothing else seen",
        ),
        ("flickers", &[Live, NotFound], "x://8", "home", "present"),
    ] {
        let instances = proven(Script::new(&[(7, answers), (8, &[Live])]));
        let known = known(&instances, known_id, scope);
        let existence = instances.find(&node(7), Some(&known)).await;
        assert_eq!(word(&existence), expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_a_second_question_shows_is_not_gone() {
    let script = Script::new(&[(7, &[NotFound, Live]), (8, &[Live])]).in_batches_of(10);
    let instances = proven(script);
    let known = known(&instances, "x://8", "home");
    let existence = instances.find(&node(7), Some(&known)).await;
    assert_eq!(word(&existence), "seen moments ago");
}

#[tokio::test(start_paused = true)]
async fn a_known_instance_that_was_seen_too_long_ago_proves_nothing() {
    let instances = proven(Script::new(&[(7, &[NotFound]), (8, &[Live])]));
    let instance = Instance::new("x://8".parse().unwrap(), "known");
    let long_ago = instances.clock.now() - SignedDuration::from_mins(6);
    let known = KnownInstance::of(&instance, &instances.source.scope(), long_ago);
    let existence = instances.find(&node(7), Some(&known)).await;
    assert_eq!(word(&existence), "nothing else seen");
}

#[tokio::test(start_paused = true)]
async fn others_of_the_list_that_showed_the_known_instance_confirm_in_its_place() {
    let live = &[Live][..];
    // The first answer is given to the list.
    let then_gone = |is_listed| {
        if is_listed {
            &[Live, NotFound][..]
        } else {
            &[NotFound]
        }
    };
    for (case, listed, known_id, expected) in [
        ("listed with it", &[7, 8, 9][..], "x://8", "gone"),
        (
            "another list than its own",
            &[7, 9],
            "x://8",
            "nothing else seen",
        ),
        ("alone", &[7, 8], "x://8", "nothing else seen"),
        ("known elsewhere", &[7, 9], "y://8", "gone"),
    ] {
        for batch in [None, Some(10)] {
            let known_answers = then_gone(listed.contains(&8));
            let answers = [
                (7, then_gone(true)),
                (8, known_answers),
                (9, live),
                (10, live),
            ];
            let mut script = Script::new(&answers).listing(listed);
            script.batch = batch;
            let instances = proven(script);
            instances.list().await.unwrap();
            let known = known(&instances, known_id, "home");
            let existence = instances.find(&node(7), Some(&known)).await;
            assert_eq!(word(&existence), expected, "{case}, {batch:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_proof_names_the_call_the_node_and_the_known_instance() {
    let instances = proven(Script::new(&[(8, &[Live])]));
    let known = known(&instances, "x://8", "home");
    let Existence::Gone(proof) = instances.find(&node(7), Some(&known)).await else {
        panic!("it is gone");
    };
    assert_eq!(proof.machine().as_str(), "x://7");
    let Evidence::NoSuchMachine {
        operation,
        request_id,
        known_instance,
    } = proof.evidence()
    else {
        panic!("{proof}");
    };
    assert_eq!(
        (operation.as_str(), request_id.as_deref()),
        ("GET /servers/{id}", Some("r-1"))
    );
    assert_eq!(known_instance.as_str(), "x://8");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_not_the_nodes_any_more_needs_the_same_proof_or_proves_nothing() {
    for (kind, knows, expected) in [
        (ErrorKind::NotFound, true, "gone"),
        (ErrorKind::NotFound, false, "nothing else seen"),
        (ErrorKind::NotOurs, true, "not ours"),
    ] {
        let mut script = Script::new(&[(1, &[Live]), (2, &[Live])]);
        script.renamed = Some(kind);
        let instances = proven(script);
        let known = known(&instances, "x://2", "home");
        let renamed = NodeFacts {
            name: "old-name".to_owned(),
            ..node(1)
        };
        let found = instances.find(&renamed, knows.then_some(&known)).await;
        assert_eq!(word(&found), expected, "{kind}");
        let found = instances.find(&node(1), knows.then_some(&known)).await;
        assert_eq!(word(&found), "present", "{kind}");
    }
}
