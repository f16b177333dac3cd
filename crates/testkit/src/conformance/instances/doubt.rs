//! Answers that prove nothing. Nothing but a proof may lead to a deletion.

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Existence, NodeFacts, Shared, Sighting, Sweep};
use futures::FutureExt as _;

use super::finding::unknown;
use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::{Stop, Strike, Trouble};

pub(super) const CHECKS: &[Check] = &[
    check(
        Instances,
        "instances/no-proof-alone",
        "a missing machine is not gone while no other one is seen",
        |bench| alone(bench).boxed(),
    ),
    check(
        Instances,
        "instances/unknown-when-unauthenticated",
        "401: nothing is gone, and a sweep is an error",
        |bench| refused(bench, Trouble::Unauthenticated).boxed(),
    ),
    check(
        Instances,
        "instances/unknown-when-denied",
        "403: nothing is gone, and a sweep is an error",
        |bench| refused(bench, Trouble::Denied).boxed(),
    ),
    check(
        Instances,
        "instances/unknown-when-throttled",
        "429: nothing is gone, and a sweep is an error",
        |bench| refused(bench, Trouble::Throttled).boxed(),
    ),
    check(
        Instances,
        "instances/unknown-on-server-errors",
        "500: nothing is gone, and a sweep is an error",
        |bench| refused(bench, Trouble::Unavailable).boxed(),
    ),
    check(
        Instances,
        "instances/unknown-on-time-outs",
        "no answer: nothing is gone, and a sweep is an error",
        |bench| refused(bench, Trouble::Timeout).boxed(),
    ),
    check(
        Instances,
        "instances/unknown-on-garbage",
        "an answer that cannot be read: nothing is gone, and a sweep is an error",
        |bench| refused(bench, Trouble::Malformed).boxed(),
    ),
    check(
        Instances,
        "instances/empty-list-proves-nothing",
        "lists that are empty by mistake make no machine gone",
        |bench| lies(bench, Trouble::EmptyList).boxed(),
    ),
    check(
        Instances,
        "instances/other-account-proves-nothing",
        "a credential that suddenly sees another account makes no machine gone",
        |bench| lies(bench, Trouble::OtherScope).boxed(),
    ),
    check(
        Instances,
        "instances/truncated-page-is-no-sweep",
        "a page with fewer machines than announced is an error",
        |bench| short(bench, Trouble::TruncatedPage).boxed(),
    ),
    check(
        Instances,
        "instances/lost-page-is-no-sweep",
        "a last page that is not the last is an error",
        |bench| short(bench, Trouble::LostPage).boxed(),
    ),
];

async fn alone(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    for node in &nodes {
        let sighting = bench.sighting_besides(node).await?;
        ensure(sighting.is_none(), || {
            "the only machine vouches for itself".to_owned()
        })?;
        bench.cloud.destroy_machine(&node.name).await?;
        let answer = bench.instances()?.find(node, None).await;
        unknown(&answer, "the only machine is missing")?;
    }
    Ok(())
}

/// A machine that is there, one that is not, and a sighting from better times.
struct Scene {
    there: NodeFacts,
    destroyed: NodeFacts,
    sighting: Option<Sighting>,
}

async fn scene(bench: &Bench<'_>) -> Result<Scene, Stop> {
    let nodes = bench.machines(3).await?;
    // The first one is the witness, which nobody would believe to be gone.
    let [_, destroyed, there] = <[NodeFacts; 3]>::try_from(nodes)
        .map_err(|_| Stop::cannot_play("there are fewer machines than were added"))?;
    let sighting = bench.sighting_besides(&destroyed).await?;
    bench.cloud.destroy_machine(&destroyed.name).await?;
    Ok(Scene {
        there,
        destroyed,
        sighting,
    })
}

impl Scene {
    /// Every way to ask for both machines, with what is known of other machines.
    async fn answers(
        &self,
        bench: &Bench<'_>,
        sighting: Option<&Sighting>,
    ) -> Result<Vec<Existence>, Stop> {
        let instances = bench.instances()?;
        let both = [self.there.clone(), self.destroyed.clone()].map(Shared::from);
        let mut answers = instances.find_many(&both, sighting).await;
        answers.push(instances.find(&self.there, sighting).await);
        answers.push(instances.find(&self.destroyed, sighting).await);
        Ok(answers)
    }
}

async fn refused(bench: &Bench<'_>, trouble: Trouble) -> Done {
    let scene = scene(bench).await?;
    bench.cloud.strike(Strike::Always, trouble).await?;
    let answers = scene.answers(bench, scene.sighting.as_ref()).await?;
    for answer in &answers {
        unknown(answer, "while the cloud gives no answer")?;
    }
    let sweep = bench.instances()?.sweep().await;
    ensure(sweep.is_err(), || {
        let seen = sweep.map_or(0, |sweep| sweep.instances().len());
        format!("a sweep without an answer is one of {seen} machines")
    })
}

/// The cloud answers as if all were well, and everything it says is about something else.
async fn lies(bench: &Bench<'_>, trouble: Trouble) -> Done {
    let scene = scene(bench).await?;
    bench.cloud.strike(Strike::Always, trouble).await?;
    // Whatever a sweep may show now: no machine of this cluster is among it to vouch for anything.
    let sweep = bench.instances()?.sweep().await.ok();
    let known = [&scene.there, &scene.destroyed];
    let vouching = |sweep: &Sweep| {
        let mut ids = known.iter().filter_map(|node| node.provider_id.as_ref());
        ids.any(|id| sweep.get(id).is_some())
    };
    ensure(!sweep.as_ref().is_some_and(vouching), || {
        "a sweep shows machines that no answer showed".to_owned()
    })?;
    for answer in scene.answers(bench, scene.sighting.as_ref()).await? {
        let there = scene.there.provider_id.as_ref();
        if let Existence::Gone(proof) = &answer {
            ensure(Some(proof.machine()) != there, || {
                format!("a machine that exists is gone: {proof}")
            })?;
            // Look-ups by ID are no lists, so a list that lies leaves them their word.
            ensure(trouble == Trouble::EmptyList, || {
                format!("gone by the word of another account: {proof}")
            })?;
        }
    }
    Ok(())
}

async fn short(bench: &Bench<'_>, trouble: Trouble) -> Done {
    let machines = several_pages(bench)?;
    bench.machines(machines).await?;
    bench.cloud.strike(Strike::Always, trouble).await?;
    let sweep = bench.instances()?.sweep().await;
    ensure(sweep.is_err(), || {
        let seen = sweep.map_or(0, |sweep| sweep.instances().len());
        format!("a sweep of {machines} machines is happy with {seen}")
    })
}

/// How many machines fill more than two pages.
pub(super) fn several_pages(bench: &Bench<'_>) -> Result<usize, Stop> {
    for machines in (10..500).step_by(10) {
        if bench.cloud.pages(machines)? >= 3 {
            return Ok(machines);
        }
    }
    Err(Stop::cannot_play("500 machines fit on two pages"))
}
