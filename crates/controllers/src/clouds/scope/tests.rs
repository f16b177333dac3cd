use async_trait::async_trait;
use cloudkeel_api::{CloudProvider, Doubt, Existence, Instances, KnownInstance, SystemClock};
use futures::stream;
use jiff::Timestamp;
use kube::runtime::watcher::Event;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

/// Writes IDs as `new://1`, and reads those that were once written as `old://1`.
struct Renamed;

fn present(id: &ProviderId) -> ProviderId {
    ProviderId::new("new", id.rest())
}

impl CloudProvider for Renamed {
    fn name(&self) -> &'static str {
        "new"
    }
    fn recognize(&self, _: &ProviderId) -> cloudkeel_api::Recognition {
        cloudkeel_api::Recognition::Ours
    }
    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait]
impl Instances for Renamed {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let machine = Instance::new("new://1".parse().unwrap(), "n1");
        let scope = ScopeFingerprint::new("s");
        Ok(InstanceList::complete(
            scope,
            Timestamp::UNIX_EPOCH,
            [machine],
        ))
    }
    async fn find(&self, node: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
        let id = node.provider_id.clone().unwrap();
        match id.as_str() {
            "new://1" => Existence::present(Instance::new(id, "n1")),
            "new://2" => Existence::Unknown(Doubt::NoMatch {
                looked_for: id.to_string(),
            }),
            _ => Existence::Unknown(Doubt::NotOurs {
                id,
                why: "no login".into(),
            }),
        }
    }
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let shown = node.provider_id.as_ref().map(present);
        let shown = shown.and_then(|id| list.get(&id));
        shown.map_or(Match::None, Match::One)
    }
}

/// Sees nothing.
struct Blind;

impl CloudProvider for Blind {
    fn name(&self) -> &'static str {
        "new"
    }
    fn recognize(&self, _: &ProviderId) -> cloudkeel_api::Recognition {
        cloudkeel_api::Recognition::Ours
    }
    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait]
impl Instances for Blind {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let scope = ScopeFingerprint::new("s");
        Ok(InstanceList::complete(scope, Timestamp::UNIX_EPOCH, []))
    }
    async fn find(&self, node: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
        let looked_for = node.name.clone();
        Existence::Unknown(Doubt::NoMatch { looked_for })
    }
}

#[tokio::test]
async fn a_credential_is_not_confirmed_by_what_the_one_before_it_saw() {
    let (cloud, moment) = (cloud(), Instant::now());
    let nodes = cluster(&[("n1".to_owned(), "new://1")], "True").await;
    let clouds = [Arc::clone(&cloud)];
    let guard = ScopeGuard::new(&nodes, &clouds);
    let before = guard.confirmed_since(&cloud, moment, moment).await;
    assert!(matches!(before, ScopeCheck::Confirmed), "{before:?}");
    cloud.inventory.begun_after(moment).await.unwrap();
    cloud.cell.replace(Arc::new(Blind));
    let since = guard.confirmed_since(&cloud, moment, moment).await;
    assert!(
        matches!(since, ScopeCheck::Unrecognized { ready: 1 }),
        "{since:?}"
    );
    let listed = guard.listed_since(&cloud, moment).await;
    assert!(
        matches!(listed, ScopeCheck::Unrecognized { ready: 1 }),
        "{listed:?}"
    );
}

#[tokio::test]
async fn a_credential_that_shows_the_nodes_of_another_cloud_is_that_of_the_other() {
    let (first, second) = (
        cloud(),
        Cloud::new("second", Arc::new(Renamed), None, Arc::new(SystemClock)),
    );
    let node = |name: &str, id: &str, cloud: &str| {
        let node = json!({
            "metadata": {"name": name, "uid": name, "labels": {"cloudkeel.dev/cloud": cloud}},
            "spec": {"providerID": id},
        });
        Ok(Event::Apply(serde_json::from_value(node).unwrap()))
    };
    for (case, others, expected) in [
        (
            "it is shown",
            node("n1", "new://1", "second"),
            Some("second"),
        ),
        (
            "another of its number is shown",
            node("n8", "new://1", "second"),
            None,
        ),
        ("it is not shown", node("n7", "new://7", "second"), None),
    ] {
        let (nodes, never) = (Cache::new(), CancellationToken::new());
        let events = [node("n2", "new://2", "c"), others];
        nodes.follow(stream::iter(events), &[], &never).await;
        let clouds = [Arc::clone(&first), Arc::clone(&second)];
        let check = ScopeGuard::new(&nodes, &clouds)
            .listed_since(&first, Instant::now())
            .await;
        match (check, expected) {
            (ScopeCheck::OtherCloud(other), Some(expected)) => assert_eq!(other, expected),
            (ScopeCheck::Unrecognized { ready: 0 }, None) => {}
            (check, _) => panic!("{case}: {check:?}"),
        }
    }
}

fn cloud() -> Arc<Cloud> {
    Cloud::new("c", Arc::new(Renamed), None, Arc::new(SystemClock))
}

/// A cluster with a Node for each of these names and provider IDs.
async fn cluster(nodes: &[(String, &str)], ready: &str) -> Arc<Cache<NodeView>> {
    let nodes = nodes.iter().map(|(name, id)| {
        let node = json!({
            "metadata": {"name": name, "uid": name},
            "spec": {"providerID": id},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        Ok(Event::Apply(serde_json::from_value(node).unwrap()))
    });
    let (cache, never) = (Cache::new(), CancellationToken::new());
    cache.follow(stream::iter(nodes), &[], &never).await;
    cache
}

#[tokio::test]
async fn a_known_instance_has_the_id_of_a_node_however_it_is_spelled_and_its_name() {
    let cloud = cloud();
    let list = cloud.inventory.begun_after(Instant::now()).await.unwrap();
    for (case, name, id, is_known) in [
        ("as it is written now", "n1", "new://1", true),
        ("as it was written once", "n1", "old://1", true),
        ("another instance", "n1", "old://2", false),
        ("another Node with the same number", "n2", "new://1", false),
        ("no ID", "n1", "", false),
    ] {
        let nodes = cluster(&[(name.to_owned(), id)], "True").await;
        let clouds = [Arc::clone(&cloud)];
        let guard = ScopeGuard::new(&nodes, &clouds);
        cloud.scope.memory.lock().known = None;
        assert_eq!(
            guard.known_in(&cloud, &list).len(),
            usize::from(is_known),
            "{case}"
        );
    }
}

#[test]
fn an_instance_of_the_same_id_with_another_name_and_uuid_is_another() {
    let instance = |uuid: Option<&str>| Instance {
        system_uuid: uuid.map(str::to_owned),
        ..Instance::new("new://1".parse().unwrap(), "n")
    };
    for (case, name, instance_has, node_has, is_another) in [
        ("its name", "n", Some("a"), Some("b"), false),
        ("its UUID, in capitals", "x", Some("a"), Some("A"), false),
        ("neither", "x", Some("a"), Some("b"), true),
        ("a UUID unknown to the cloud", "x", None, Some("b"), false),
    ] {
        let node = NodeFacts {
            name: name.to_owned(),
            system_uuid: node_has.map(str::to_owned),
            ..NodeFacts::default()
        };
        let found = is_another_instance(&instance(instance_has), &node);
        assert_eq!(found, is_another, "{case}");
    }
}

#[tokio::test]
async fn names_are_compared_where_they_have_once_agreed() {
    let nodes = cluster(&[("n9".to_owned(), "new://1")], "True").await;
    for (case, has_agreed) in [("never", false), ("once", true)] {
        let cloud = cloud();
        let list = cloud.inventory.begun_after(Instant::now()).await.unwrap();
        let scope = has_agreed.then(|| ScopeFingerprint::new("s"));
        cloud.scope.memory.lock().fingerprint = scope;
        let clouds = [Arc::clone(&cloud)];
        let guard = ScopeGuard::new(&nodes, &clouds);
        assert!(guard.known_in(&cloud, &list).is_empty(), "{case}");
        let looked_up = guard.check_since(&cloud, Instant::now()).await;
        for check in [guard.check_list(&cloud, &list).await, looked_up] {
            let is_confirmed = matches!(check, ScopeCheck::Confirmed);
            assert_eq!(is_confirmed, !has_agreed, "{case}");
        }
    }
}

#[tokio::test]
async fn a_list_that_began_late_enough_spares_the_look_up() {
    let (cloud, began) = (cloud(), Instant::now());
    cloud.inventory.begun_after(began).await.unwrap();
    let nodes = cluster(&[("n1".to_owned(), "old://1")], "True").await;
    let clouds = [Arc::clone(&cloud)];
    let check = ScopeGuard::new(&nodes, &clouds)
        .check_since(&cloud, began)
        .await;
    assert!(matches!(check, ScopeCheck::Confirmed), "{check:?}");
    assert!(cloud.scope.memory.lock().confirmed >= Some(began));
}

#[test]
fn ready_nodes_that_were_listed_come_first_and_the_youngest_and_the_oldest_in_turn() {
    let aged = |number: i64| {
        let mut node = NodeView::default();
        node.facts.name = number.to_string();
        node.facts.created = Timestamp::from_second(number).ok();
        if number < 8 {
            node.readiness = Readiness::Ready;
        }
        Arc::new(node)
    };
    let order = likely_first((0..10).map(aged).collect(), |node| {
        ["0", "3", "4", "5", "9"].contains(&&*node.facts.name)
    });
    let order: Vec<_> = order.iter().map(|node| node.facts.name.as_str()).collect();
    let expected = ["5", "0", "4", "3", "7", "1", "6", "2", "9", "8"];
    assert_eq!(order, expected);
}

#[tokio::test]
async fn nodes_that_a_cloud_cannot_be_asked_about_count_neither_for_it_nor_against_it() {
    let many = |ids: &[&'static str]| -> Vec<_> {
        let unasked = (0..10).map(|number| (format!("r{number}"), "robot://7"));
        let ids = ids.iter().map(|id| (id.replace("new://", "n"), *id));
        unasked.chain(ids).collect()
    };
    for (case, nodes, ready, expected) in [
        ("no other", many(&[]), "True", None),
        (
            "one that is there",
            many(&["new://2", "new://1"]),
            "True",
            None,
        ),
        ("one that is not", many(&["new://2"]), "True", Some(11)),
        (
            "one that is not, none Ready",
            many(&["new://2"]),
            "False",
            Some(0),
        ),
    ] {
        let (cloud, nodes) = (cloud(), cluster(&nodes, ready).await);
        let clouds = [Arc::clone(&cloud)];
        let guard = ScopeGuard::new(&nodes, &clouds);
        let found = match guard.check_since(&cloud, Instant::now()).await {
            ScopeCheck::Unrecognized { ready } => Some(ready),
            ScopeCheck::Confirmed
            | ScopeCheck::OtherCloud(_)
            | ScopeCheck::Outdated
            | ScopeCheck::Unavailable(_) => None,
        };
        assert_eq!(found, expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_began_before_the_credential_was_found_to_be_right_is_not_confirmed() {
    let cloud = cloud();
    let nodes = cluster(&[("n1".to_owned(), "new://1")], "True").await;
    let clouds = [Arc::clone(&cloud)];
    let guard = ScopeGuard::new(&nodes, &clouds);
    let check = async |work_began| {
        tokio::time::advance(Duration::from_secs(1)).await;
        let now = Instant::now();
        guard.confirmed_since(&cloud, now, work_began).await
    };
    let began = Instant::now();
    let first = check(began).await;
    assert!(matches!(first, ScopeCheck::Confirmed), "{first:?}");
    // A doubt, and its end: what was read in between may be another project's.
    cloud.scope.memory.lock().doubt(Instant::now());
    let between = check(Instant::now()).await;
    assert!(matches!(between, ScopeCheck::Outdated), "{between:?}");
    let after = check(Instant::now()).await;
    assert!(matches!(after, ScopeCheck::Confirmed), "{after:?}");
    // Work of the credential before is not confirmed by what the present one sees.
    let began = Instant::now();
    tokio::time::advance(Duration::from_secs(1)).await;
    cloud.cell.replace(Arc::new(Renamed));
    let by_predecessor = check(began).await;
    assert!(
        matches!(by_predecessor, ScopeCheck::Outdated),
        "{by_predecessor:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_is_attributed_only_by_lists_of_the_same_moment() {
    let (first, second) = (
        cloud(),
        Cloud::new("second", Arc::new(Blind), None, Arc::new(SystemClock)),
    );
    let nodes = cluster(&[("n1".to_owned(), "new://1")], "True").await;
    let clouds = [Arc::clone(&first), Arc::clone(&second)];
    let guard = ScopeGuard::new(&nodes, &clouds);
    let belonging = || guard.belonging(&nodes.all()[0], &first);
    let list = async |cloud: &Cloud| {
        tokio::time::advance(Duration::from_secs(1)).await;
        cloud.inventory.begun_after(Instant::now()).await.unwrap();
        guard.learn_owners();
    };
    list(&second).await;
    tokio::time::advance(Duration::from_mins(2)).await;
    list(&first).await;
    assert_eq!(belonging(), Belonging::Possible);
    list(&second).await;
    assert_eq!(belonging(), Belonging::Owned);
}
