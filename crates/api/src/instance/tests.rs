use jiff::Timestamp;

use super::*;
use crate::ErrorKind;
use crate::ScopeFingerprint;

fn machine(id: &str, name: &str) -> Instance {
    Instance::new(id.parse().unwrap(), name)
}

fn node(name: &str, id: Option<&str>) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        provider_id: id.map(|id| id.parse().unwrap()),
        ..NodeFacts::default()
    }
}

fn list(instances: Vec<Instance>) -> InstanceList {
    let taken = Timestamp::from_second(100).unwrap();
    InstanceList::complete(ScopeFingerprint::new("p"), taken, instances)
}

/// A cloud that never answers and keeps every default.
struct Silent;

#[async_trait]
impl Instances for Silent {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        Err(CloudError::new("list", ErrorKind::Unavailable, "silent"))
    }
    async fn find(&self, node: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
        let looked_for = node.name.clone();
        Existence::Unknown(Doubt::NoMatch { looked_for })
    }
}

#[test]
fn a_node_is_identified_by_id_first_and_by_name_only_without_one() {
    let mut aliased = machine("sim://3", "web");
    aliased.aliases.insert("web.internal".into());
    let list = list(vec![
        machine("sim://1", "a"),
        machine("sim://2", "a"),
        aliased.clone(),
    ]);
    for (case, node, expected) in [
        (
            "by id",
            node("renamed", Some("sim://3")),
            Match::One(&aliased),
        ),
        (
            "id unknown, name known",
            node("web", Some("sim://9")),
            Match::None,
        ),
        ("by name", node("web", None), Match::One(&aliased)),
        ("by alias", node("web.internal", None), Match::One(&aliased)),
        ("no such name", node("b", None), Match::None),
    ] {
        assert_eq!(Silent.identify(&node, &list), expected, "{case}");
    }
    let Match::Many(found) = Silent.identify(&node("a", None), &list) else {
        panic!("two machines are called a");
    };
    assert_eq!(found.len(), 2);
}

#[test]
fn matches_by_name_never_prove_that_a_machine_is_gone() {
    let none = Match::None.into_existence("the name \"n\"");
    assert!(matches!(none, Existence::Unknown(Doubt::NoMatch { .. })));
    let (a, b) = (machine("sim://1", "n"), machine("sim://2", "n"));
    let many = Match::of(vec![&a, &b]).into_existence("the name \"n\"");
    assert!(matches!(many, Existence::Unknown(Doubt::Ambiguous { .. })));
}

#[test]
fn a_sighting_is_another_machine_and_preferably_a_known_one() {
    let list = list(vec![
        machine("sim://1", "a"),
        machine("sim://2", "b"),
        machine("sim://3", "c"),
    ]);
    let gone: ProviderId = "sim://1".parse().unwrap();
    let known: ProviderId = "sim://3".parse().unwrap();
    let known_instance = list
        .known_instance_besides(&gone, |id| id == &known)
        .unwrap();
    assert_eq!(known_instance.machine(), &known);
    let known_instance = list.known_instance_besides(&gone, |_| false).unwrap();
    assert_eq!(known_instance.machine().as_str(), "sim://2");
}

#[test]
fn an_empty_scope_or_only_the_machine_itself_gives_no_sighting() {
    let gone: ProviderId = "sim://1".parse().unwrap();
    assert!(
        list(vec![])
            .known_instance_besides(&gone, |_| true)
            .is_none()
    );
    assert!(
        list(vec![machine("sim://1", "a")])
            .known_instance_besides(&gone, |_| true)
            .is_none()
    );
}

#[test]
fn a_blind_spot_makes_a_list_incomplete() {
    let error = CloudError::new("login", ErrorKind::Unavailable, "no route");
    let list = list(vec![machine("sim://1", "a")]).with_blind_spots(vec![BlindSpot {
        part: "vcenter-2".into(),
        error,
    }]);
    assert!(!list.is_complete());
    assert_eq!(list.instances().len(), 1);
}

#[tokio::test]
async fn looking_up_many_asks_for_each_in_order() {
    let nodes = [node("a", None), node("b", None)].map(Into::into);
    let answers = Silent.find_many(&nodes, None).await;
    let names: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Existence::Unknown(Doubt::NoMatch { looked_for }) => looked_for.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_machine_is_found_by_any_of_its_names_and_by_its_uuid_however_spelled() {
    let machine = |number: u32| {
        let id = format!("x://{number}").parse().unwrap();
        Instance::new(id, format!("m{number}"))
    };
    let mut one = machine(1);
    one.aliases
        .extend(["m1".to_owned(), "m1.example".to_owned()]);
    one.system_uuid = Some("ABCD-1".to_owned());
    let mut namesake = machine(2);
    namesake.aliases.insert("m1.example".to_owned());
    let list = list(vec![one.clone(), namesake.clone(), machine(3)]);
    assert_eq!(list.named("m1"), [&one], "once, though it is an alias too");
    assert_eq!(list.named("m1.example"), [&one, &namesake]);
    assert!(list.named("m").is_empty(), "a part of a name is no name");
    assert_eq!(list.with_system_uuid("abcd-1"), [&one]);
    assert!(list.with_system_uuid("").is_empty());
}

#[tokio::test]
async fn a_machine_is_complete_unless_its_cloud_says_otherwise() {
    let listed = vec![machine("sim://1", "a"), machine("sim://2", "b")];
    assert!(listed.iter().all(|instance| !instance.is_summary));
    let described = Silent.describe(listed.clone(), Priority::Urgent).await;
    let described: Vec<_> = described.into_iter().map(Result::unwrap).collect();
    assert_eq!(described, listed);
}
