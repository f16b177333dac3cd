use crate::fixtures::cluster_and_service;

use super::*;

const TAG: OwnerTag = OwnerTag::new("x:");

#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
struct Balancer {
    id: String,
    tags: Vec<String>,
}

crate::resources! {
    Balancer, id: String = "balancer", "balancers";
}

impl CloudBalancer for Balancer {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn name(&self) -> &'static str {
        "front"
    }
}

impl TaggedBalancer for Balancer {
    fn tags(&self) -> &[String] {
        &self.tags
    }
}

fn tags(tags: &[&str]) -> Vec<String> {
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}

fn balancer(present: &[&str]) -> Balancer {
    Balancer {
        id: "7".to_owned(),
        tags: tags(present),
    }
}

#[test]
fn only_what_is_asked_for_gets_all_tags_and_the_one_of_shared_ones_follows_the_service() {
    let (cluster, service) = cluster_and_service();
    let adopt = r#"adopt ["x:u"]"#;
    for (case, is_asked, wanted, present, expected) in [
        (
            "in order",
            true,
            &["x:u", "all"][..],
            &["all", "x:u"][..],
            &[] as &[&str],
        ),
        ("asked for", true, &["x:u", "all"], &["all"], &[adopt]),
        ("not asked for", false, &["x:u", "all"], &[], &[]),
        ("shared", false, &["all", SHARED_TAG], &[], &["share"]),
        (
            "asked for and shared",
            true,
            &["x:u", SHARED_TAG],
            &[],
            &["share", adopt],
        ),
        (
            "not shared any more",
            false,
            &[],
            &[SHARED_TAG],
            &["unshare"],
        ),
    ] {
        let mut balancer_ref = BalancerRef::of(cluster.clone(), service.clone());
        balancer_ref.adopt = is_asked.then(|| "7".to_owned());
        let steps = TagStep::to_tag(&balancer_ref, &tags(wanted), &balancer(present));
        let texts = steps.iter().map(|step| match step {
            TagStep::Adopt { tags, .. } => format!("adopt {tags:?}"),
            TagStep::Share { .. } => "share".to_owned(),
            TagStep::Unshare { .. } => "unshare".to_owned(),
            other => other.to_string(),
        });
        assert_eq!(texts.collect::<Vec<_>>(), expected, "{case}");
    }
}

#[test]
fn a_balancer_is_released_by_its_owner_tag_and_one_without_needs_nothing() {
    assert_eq!(TagStep::to_release(TAG, &balancer(&["all"])), None);
    let step = TagStep::to_release(TAG, &balancer(&["all", "x:u"])).unwrap();
    let (id, tag) = ("7".to_owned(), "x:u".to_owned());
    assert_eq!(step, TagStep::Release { id, tag });
    assert_eq!(step.to_string(), "release load balancer 7");
    assert_eq!(step.action(), StepAction::Change);
    let gone = TagStep::Delete {
        tag: "x:u".to_owned(),
    };
    assert_eq!(gone.action(), StepAction::Delete);
    assert_eq!(gone.to_string(), "delete tag x:u");
}
