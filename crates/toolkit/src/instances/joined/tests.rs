use cloudkeel_api::{ErrorKind, TokioClock};

use super::*;
use crate::not_ours;

/// What a part says about every ID that it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Present,
    Gone,
    Doubt,
    NotOurs,
}

/// A part with these instances, which needs a known instance of its own to say that one is gone.
struct Scripted {
    says: Says,
    own: &'static [&'static str],
    is_down: bool,
}

fn scope() -> ScopeFingerprint {
    ScopeFingerprint::new("all")
}

fn instance(id: &str) -> Instance {
    Instance::new(id.parse().unwrap(), "node")
}

#[async_trait]
impl Instances for Scripted {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        if self.is_down {
            return Err(CloudError::new("list", ErrorKind::Unavailable, "down"));
        }
        let now = TokioClock::starting_at(Timestamp::UNIX_EPOCH).now();
        Ok(InstanceList::complete(
            scope(),
            now,
            self.own.iter().map(|id| instance(id)),
        ))
    }

    async fn find(&self, node: &NodeFacts, known: Option<&KnownInstance>) -> Existence {
        let Some(id) = &node.provider_id else {
            let found: Vec<_> = self.own.iter().map(|id| instance(id)).collect();
            return Match::of(found.iter().collect()).into_existence("a name");
        };
        let missing = CloudError::new("get", ErrorKind::NotFound, "no");
        let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
        match self.says {
            Says::Present => Existence::present(instance(id.as_str())),
            Says::Gone => {
                let own = known.filter(|known| self.own.contains(&known.machine().as_str()));
                Existence::from_lookup_error(id.clone(), missing, &scope(), own, clock.now())
            }
            Says::Doubt => Existence::Unknown(Doubt::NoAnswer(missing)),
            Says::NotOurs => not_ours(id, "another's"),
        }
    }
}

const fn part(says: Says, own: &'static [&'static str]) -> Scripted {
    Scripted {
        says,
        own,
        is_down: false,
    }
}

fn joined(parts: impl IntoIterator<Item = Scripted>) -> JoinedInstances {
    let joined = JoinedInstances::new(
        scope(),
        Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
    );
    let parts = parts.into_iter().enumerate();
    parts.fold(joined, |joined, (number, part)| {
        joined.with(format!("part {number}"), part)
    })
}

fn node(id: Option<&str>) -> Shared<NodeFacts> {
    Shared::from(NodeFacts {
        name: "node".to_owned(),
        provider_id: id.map(|id| id.parse().unwrap()),
        ..NodeFacts::default()
    })
}

fn known() -> KnownInstance {
    KnownInstance::of(
        &instance("x://a"),
        &scope(),
        TokioClock::starting_at(Timestamp::UNIX_EPOCH).now(),
    )
}

#[tokio::test(start_paused = true)]
async fn gone_needs_the_proof_of_every_part_that_could_have_it() {
    use Says::{Doubt, Gone, NotOurs, Present};
    for one in [Present, Gone, Doubt, NotOurs] {
        for other in [Present, Gone, Doubt, NotOurs] {
            for own in [&["x://b"][..], &[]] {
                let joined = joined([part(one, &["x://a"]), part(other, own)]);
                joined.list().await.unwrap();
                let node = node(Some("x://7"));
                let found = joined.find(&node, Some(&known())).await;
                let many = joined.find_many(&[node], Some(&known())).await;
                let proves = |says: Says, own: &[&str]| says == Gone && !own.is_empty();
                let is_gone = match (one, other) {
                    (Gone, NotOurs) => true,
                    (NotOurs | Gone, other) => proves(other, own),
                    _ => false,
                };
                let is_present = one == Present || other == Present;
                for existence in many.iter().chain([&found]) {
                    let case = format!("{one:?}, {other:?}, {own:?}: {existence:?}");
                    assert_eq!(matches!(existence, Existence::Gone(_)), is_gone, "{case}");
                    assert_eq!(
                        matches!(existence, Existence::Present(_)),
                        is_present,
                        "{case}"
                    );
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_is_confirmed_by_another_instance_than_the_missing_one() {
    let joined = joined([
        part(Says::Gone, &["x://a"]),
        part(Says::Gone, &["x://7", "x://8"]),
    ]);
    joined.list().await.unwrap();
    let found = joined.find(&node(Some("x://7")), Some(&known())).await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_part_that_does_not_answer_is_a_blind_spot() {
    let down = || Scripted {
        is_down: true,
        ..part(Says::Doubt, &[])
    };
    let list = joined([part(Says::Present, &["x://a"]), down()])
        .list()
        .await
        .unwrap();
    assert_eq!(list.instances().len(), 1);
    assert_eq!(list.blind_spots()[0].part, "part 1");
    let error = joined([down(), down()]).list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_name_must_be_unique_over_all_parts() {
    for (case, one, other, expected) in [
        ("none", &[][..], &[][..], "no match"),
        ("one", &["x://a"], &[], "present"),
        ("one in each", &["x://a"], &["x://b"], "ambiguous"),
        ("two in one", &["x://a", "x://b"], &[], "ambiguous"),
    ] {
        let joined = joined([part(Says::Present, one), part(Says::Present, other)]);
        let word = match joined.find(&node(None), None).await {
            Existence::Present(_) => "present",
            Existence::Unknown(Doubt::NoMatch { .. }) => "no match",
            Existence::Unknown(Doubt::Ambiguous { .. }) => "ambiguous",
            other => panic!("{case}: {other:?}"),
        };
        assert_eq!(word, expected, "{case}");
        let list = joined.list().await.unwrap();
        let named = joined.identify(&node(None), &list);
        let is_one = matches!(named, Match::One(_));
        assert_eq!(is_one, expected == "present", "{case}: {named:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_parts_that_could_have_an_id_are_asked() {
    let joined = JoinedInstances::new(
        scope(),
        Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
    )
    .with_own("x", part(Says::Present, &[]), |id| id.scheme() == Some("x"))
    .with_own("y", part(Says::Doubt, &[]), |id| id.scheme() == Some("y"));
    let found = joined.find(&node(Some("x://1")), None).await;
    assert!(matches!(found, Existence::Present(_)), "{found:?}");
    let foreign = joined.find(&node(Some("z://1")), None).await;
    assert!(
        matches!(foreign, Existence::Unknown(Doubt::NoMatch { .. })),
        "{foreign:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn instances_are_described_by_the_part_that_listed_them_in_their_order() {
    let joined = joined([
        part(Says::Present, &["x://a"]),
        part(Says::Present, &["x://b"]),
    ]);
    joined.list().await.unwrap();
    let given: Vec<_> = ["x://b", "x://c", "x://a"].map(instance).into();
    let described = joined.describe(given.clone(), Priority::Normal).await;
    let described: Vec<_> = described.into_iter().map(Result::unwrap).collect();
    assert_eq!(described, given);
}
