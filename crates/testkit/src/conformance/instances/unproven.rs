//! Answers that prove nothing. Only a proof may lead to a deletion.

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Existence, InstanceList, KnownInstance, NodeFacts, Shared};
use futures::FutureExt as _;

use super::lookup::unknown;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check, core};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

pub(super) const CHECKS: &[Check] = &[
    core(
        "instances/no-proof-without-another-instance",
        "a missing instance is not gone while no other one is seen",
        |env| alone(env).boxed(),
    ),
    core(
        "instances/unknown-when-unauthenticated",
        "401: nothing is gone, and a list is an error",
        |env| refused(env, Fault::Unauthenticated).boxed(),
    ),
    core(
        "instances/unknown-when-denied",
        "403: nothing is gone, and a list is an error",
        |env| refused(env, Fault::Denied).boxed(),
    ),
    core(
        "instances/unknown-when-throttled",
        "429: nothing is gone, and a list is an error",
        |env| refused(env, Fault::Throttled).boxed(),
    ),
    core(
        "instances/unknown-on-server-errors",
        "500: nothing is gone, and a list is an error",
        |env| refused(env, Fault::Unavailable).boxed(),
    ),
    core(
        "instances/unknown-on-timeouts",
        "no answer: nothing is gone, and a list is an error",
        |env| refused(env, Fault::Timeout).boxed(),
    ),
    core(
        "instances/unknown-on-unreadable-answers",
        "an answer that cannot be read: nothing is gone, and a list is an error",
        |env| refused(env, Fault::Malformed).boxed(),
    ),
    check(
        Instances,
        "instances/empty-list-proves-nothing",
        "lists that are empty by mistake make no instance gone",
        |env| misled(env, Fault::EmptyList).boxed(),
    ),
    check(
        Instances,
        "instances/other-account-proves-nothing",
        "a credential that suddenly sees another account makes no instance gone",
        |env| misled(env, Fault::OtherScope).boxed(),
    ),
    check(
        Instances,
        "instances/truncated-page-is-an-error",
        "a page with fewer instances than announced is an error",
        |env| short(env, Fault::TruncatedPage).boxed(),
    ),
    check(
        Instances,
        "instances/lost-page-is-an-error",
        "a last page that is not the last is an error",
        |env| short(env, Fault::LostPage).boxed(),
    ),
];

async fn alone(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    for node in &nodes {
        let known_instance = env.known_instance_besides(node).await?;
        ensure(known_instance.is_none(), || {
            "the only instance is its own known instance".to_owned()
        })?;
        env.cloud.destroy_instance(&node.name).await?;
        let answer = env.instances()?.find(node, None).await;
        unknown(&answer, "the only instance is missing")?;
    }
    Ok(())
}

/// An instance that is there, one that is not, and a known instance from before.
struct Scene {
    there: NodeFacts,
    destroyed: NodeFacts,
    known_instance: Option<KnownInstance>,
}

async fn scene(env: &TestEnv<'_>) -> Result<Scene, Stop> {
    // The first one is the known instance.
    let [_, destroyed, there] = env.add_some().await?;
    let known_instance = env.known_instance_besides(&destroyed).await?;
    env.cloud.destroy_instance(&destroyed.name).await?;
    Ok(Scene {
        there,
        destroyed,
        known_instance,
    })
}

impl Scene {
    /// Every way to ask for both, with what is known of other instances.
    async fn answers(
        &self,
        env: &TestEnv<'_>,
        known_instance: Option<&KnownInstance>,
    ) -> Result<Vec<Existence>, Stop> {
        let instances = env.instances()?;
        let both = [self.there.clone(), self.destroyed.clone()].map(Shared::from);
        let mut answers = instances.find_many(&both, known_instance).await;
        answers.push(instances.find(&self.there, known_instance).await);
        answers.push(instances.find(&self.destroyed, known_instance).await);
        Ok(answers)
    }
}

async fn refused(env: &TestEnv<'_>, fault: Fault) -> Done {
    let scene = scene(env).await?;
    env.inject(FaultTiming::Always, fault)?;
    let answers = scene.answers(env, scene.known_instance.as_ref()).await?;
    for answer in &answers {
        unknown(answer, "while the cloud gives no answer")?;
    }
    let list = env.instances()?.list().await;
    ensure(list.is_err(), || {
        let seen = list.map_or(0, |list| list.instances().len());
        format!("a list without an answer shows {seen} instances")
    })
}

/// The cloud answers as usual, but about something else.
async fn misled(env: &TestEnv<'_>, fault: Fault) -> Done {
    let scene = scene(env).await?;
    env.inject(FaultTiming::Always, fault)?;
    // Whatever a list shows now: no instance of this cluster may be among it.
    let list = env.instances()?.list().await.ok();
    let known = [&scene.there, &scene.destroyed];
    let shows_known = |list: &InstanceList| {
        let mut ids = known.iter().filter_map(|node| node.provider_id.as_ref());
        ids.any(|id| list.get(id).is_some())
    };
    ensure(!list.as_ref().is_some_and(shows_known), || {
        "a list shows instances that no answer showed".to_owned()
    })?;
    for answer in scene.answers(env, scene.known_instance.as_ref()).await? {
        let there = scene.there.provider_id.as_ref();
        if let Existence::Gone(proof) = &answer {
            ensure(Some(proof.machine()) != there, || {
                format!("an instance that exists is gone: {proof}")
            })?;
            // Lookups by ID are no lists, so a wrong list says nothing of them.
            ensure(fault == Fault::EmptyList, || {
                format!("gone by the answer of another account: {proof}")
            })?;
        }
    }
    Ok(())
}

async fn short(env: &TestEnv<'_>, fault: Fault) -> Done {
    let count = several_pages(env)?;
    env.add_nodes(count).await?;
    env.inject(FaultTiming::Always, fault)?;
    let list = env.instances()?.list().await;
    ensure(list.is_err(), || {
        let seen = list.map_or(0, |list| list.instances().len());
        format!("a list of {count} instances shows {seen} without an error")
    })
}

/// How many instances fill more than two pages.
pub(super) fn several_pages(env: &TestEnv<'_>) -> Result<usize, Stop> {
    for count in (10..500).step_by(10) {
        if env.cloud.list_calls(count)? >= 3 {
            return Ok(count);
        }
    }
    Err(Stop::not_playable("500 instances fit on two pages"))
}
