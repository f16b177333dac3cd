//! Many candidates, many failures, one invariant: no two may write at the same time.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::cluster::Cluster;
use super::link::{Fate, Link, Weather};
use super::support::{clock, config, seconds};
use crate::election::{
    ElectionConfig, Elector, Ended, Fence, Leadership, NoLeaseEvents, StoreError,
};

/// How long a run lasts.
const DURATION: Duration = Duration::from_mins(15);

/// The state of one seed.
struct World {
    cluster: Arc<Cluster>,
    random: Arc<Mutex<fastrand::Rng>>,
    fences: Arc<Mutex<Vec<(String, Fence)>>>,
    /// Builds the configuration of a candidate; it may contain a planted bug.
    configure: fn(&str) -> ElectionConfig,
    findings: Arc<Mutex<Findings>>,
}

/// The results of a run.
#[derive(Debug, Default)]
struct Findings {
    /// Times at which two could write.
    violations: Vec<String>,
    /// How often a candidate became leader.
    leaders: u32,
    /// How often a leader lost its lease involuntarily.
    losses: u32,
    /// How often the lease was released.
    releases: u32,
}

/// One candidate at a time, with a new identity after every restart.
struct Seat {
    world: Arc<World>,
    number: usize,
    life: u32,
}

impl World {
    fn new(seed: u64, cluster: Arc<Cluster>, configure: fn(&str) -> ElectionConfig) -> Arc<Self> {
        let world = Arc::new(Self {
            cluster,
            random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))),
            fences: Arc::default(),
            configure,
            findings: Arc::default(),
        });
        let (fences, findings) = (Arc::clone(&world.fences), Arc::clone(&world.findings));
        // The best time to check: when a new holder is written, before it even knows.
        world.cluster.observed_by(Box::new(move |write| {
            let holder = &write.after.holder;
            for (name, fence) in fences.lock().unwrap().iter() {
                if name != holder && fence.is_open() {
                    let found = format!("{name} could write when {holder:?} took the lease");
                    findings.lock().unwrap().violations.push(found);
                }
            }
        }));
        world
    }

    fn roll<T>(&self, roll: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        roll(&mut self.random.lock().unwrap())
    }

    /// Checks one more fence, and none that is closed for good.
    fn admit(&self, name: String, fence: Fence) {
        let mut fences = self.fences.lock().unwrap();
        fences.retain(|(_, fence)| !fence.token().is_cancelled());
        fences.push((name, fence));
    }

    /// Checks whether two may write now.
    fn read(&self) {
        let fences = self.fences.lock().unwrap();
        let open: Vec<_> = fences
            .iter()
            .filter(|(_, fence)| fence.is_open())
            .map(|(name, _)| name.as_str())
            .collect();
        if open.len() > 1 {
            let found = format!("{} could write at the same time", open.join(" and "));
            self.findings.lock().unwrap().violations.push(found);
        }
    }

    /// Mostly no failures, now and then a phase with everything that may happen to a request.
    fn weather(&self) -> Weather {
        let random = Arc::clone(&self.random);
        let mut storm = 0;
        Box::new(move || {
            let mut random = random.lock().unwrap();
            if random.u8(..) < 16 {
                storm = random.u8(2..9);
            }
            let mut fate = Fate {
                there: Duration::from_millis(random.u64(0..30)),
                back: Duration::from_millis(random.u64(0..30)),
                ..Fate::default()
            };
            if storm > 0 {
                storm -= 1;
                misfortune(&mut fate, &mut random);
            }
            fate
        })
    }
}

fn misfortune(fate: &mut Fate, random: &mut fastrand::Rng) {
    // Slower than a request may take, or just not.
    let slow = Duration::from_millis(random.choice([5_200, 30_000]).unwrap_or_default());
    match random.u8(0..8) {
        0 | 1 => fate.lost = true,
        2 => fate.answer_lost = true,
        3 => fate.there = slow.mul_f64(random.f64()),
        4 | 5 => fate.back = slow.mul_f64(random.f64()),
        6 => fate.refused = Some(StoreError::Conflict),
        _ => fate.refused = Some(StoreError::Failed("overloaded (503)".to_owned())),
    }
}

/// A process that may be suspended: its clock goes on, but nothing of it runs.
struct Process<F> {
    inner: Pin<Box<F>>,
    frozen: Arc<Mutex<Instant>>,
    thaw: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Process<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let until = *self.frozen.lock().unwrap();
        if Instant::now() < until {
            let mut thaw = Box::pin(tokio::time::sleep_until(until));
            if thaw.as_mut().poll(context).is_pending() {
                self.thaw = Some(thaw);
                return Poll::Pending;
            }
        }
        self.inner.as_mut().poll(context)
    }
}

impl Seat {
    /// Starts candidates one after the other, each ended in one of the possible ways.
    async fn run(mut self) {
        loop {
            let pause = self.world.roll(|random| random.u64(0..10_000));
            sleep(Duration::from_millis(pause)).await;
            self.life += 1;
            self.live().await;
        }
    }

    async fn live(&self) {
        let world = &self.world;
        let identity = format!("{}.{}", self.number, self.life);
        let (seed, may_watch) = world.roll(|random| (random.u64(..), random.bool()));
        let link = Link::with(&world.cluster, may_watch, world.weather());
        let elector = Elector::unchecked(
            (world.configure)(&identity),
            Arc::clone(&link) as _,
            Arc::new(NoLeaseEvents),
            clock(),
        );
        let elector = elector.with_seed(seed);
        let (election, stop) = (elector.election(), CancellationToken::new());
        world.admit(identity, election.fence());

        let frozen = Arc::new(Mutex::new(Instant::now()));
        let mut process = AbortOnDropHandle::new(tokio::spawn(Process {
            inner: Box::pin(elector.run(stop.clone())),
            frozen: Arc::clone(&frozen),
            thaw: None,
        }));
        let observer = Arc::clone(world);
        let mut status = election.leadership();
        let _watching = AbortOnDropHandle::new(tokio::spawn(async move {
            while status.changed().await.is_ok() {
                observer.read();
                if let Leadership::Leading { .. } = &*status.borrow_and_update() {
                    observer.findings.lock().unwrap().leaders += 1;
                }
            }
        }));

        let age = world.roll(|random| random.u64(1..90));
        if let Ok(ended) = timeout(seconds(age), &mut process).await {
            return self.note(&ended.unwrap());
        }
        match world.roll(|random| random.u8(0..4)) {
            0 => link.cut(),
            1 => {
                let still = world.roll(|random| random.u64(1..60));
                *frozen.lock().unwrap() = Instant::now() + seconds(still);
            }
            2 => stop.cancel(),
            // A crash: everything is dropped.
            _ => return,
        }
        let age = world.roll(|random| random.u64(1..60));
        if let Ok(ended) = timeout(seconds(age), &mut process).await {
            self.note(&ended.unwrap());
        }
    }

    fn note(&self, ended: &Ended) {
        let mut findings = self.world.findings.lock().unwrap();
        match ended {
            Ended::Lost(_) => findings.losses += 1,
            Ended::Stopped { released } => findings.releases += u32::from(*released),
        }
    }
}

/// Lets three candidates compete for a while, then ends the failures.
async fn story(world: &Arc<World>) {
    let seats: Vec<_> = (0..3)
        .map(|number| {
            let world = Arc::clone(world);
            let seat = Seat {
                world,
                number,
                life: 0,
            };
            AbortOnDropHandle::new(tokio::spawn(seat.run()))
        })
        .collect();
    let end = Instant::now() + DURATION;
    while Instant::now() < end && world.findings.lock().unwrap().violations.is_empty() {
        sleep(Duration::from_millis(500)).await;
        world.read();
    }
    drop(seats);
}

/// Plays one run in a runtime of its own, so that a seed always gives the same run.
fn play(seed: u64, cluster: Arc<Cluster>, configure: fn(&str) -> ElectionConfig) -> Findings {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::new(seed, cluster, configure);
        story(&world).await;
        std::mem::take(&mut *world.findings.lock().unwrap())
    })
}

/// There is only one second between the end of a fence and the end of its lease, so that small mistakes show.
fn tight(identity: &str) -> ElectionConfig {
    ElectionConfig {
        lease_duration: seconds(11),
        ..config(identity)
    }
}

#[test]
fn no_two_candidates_may_write_at_the_same_time_whatever_happens() {
    let mut all = Findings::default();
    for seed in 0..60 {
        let chosen = if seed % 2 == 0 { tight } else { config };
        let found = play(seed, Cluster::new(), chosen);
        assert_eq!(found.violations, [""; 0], "seed {seed}");
        assert!(
            found.leaders > 2,
            "seed {seed}: there is a leader: {found:?}"
        );
        all.leaders += found.leaders;
        all.losses += found.losses;
        all.releases += found.releases;
    }
    println!("{all:?}");
    // Otherwise the runs would prove nothing.
    assert!(all.leaders > 500, "{all:?}");
    assert!(all.losses > 100, "{all:?}");
    assert!(all.releases > 100, "{all:?}");
}

#[test]
fn a_seed_always_tells_the_same_story() {
    let record = || {
        let cluster = Cluster::new();
        play(3, Arc::clone(&cluster), config);
        let writes = cluster.writes();
        writes.into_iter().map(|write| write.after)
    };
    let (first, second) = (record(), record());
    assert!(first.len() > 100, "{} writes", first.len());
    assert_eq!(first.len(), second.len());
    for (number, (first, second)) in first.zip(second).enumerate() {
        assert_eq!(first, second, "write {number}");
    }
}

/// The seeds that find a planted bug.
fn finding_seeds(cluster: fn() -> Arc<Cluster>, configure: fn(&str) -> ElectionConfig) -> usize {
    let violated = |seed: &u64| !play(*seed, cluster(), configure).violations.is_empty();
    (0..10).filter(violated).count()
}

#[test]
fn a_leader_that_trusts_its_lease_for_too_long_would_be_found() {
    let trusting = |identity: &str| ElectionConfig {
        renew_deadline: seconds(20),
        ..config(identity)
    };
    assert!(finding_seeds(Cluster::new, trusting) > 0);
}

#[test]
fn a_lease_that_is_stored_too_short_would_be_found() {
    let rounding = |identity: &str| ElectionConfig {
        lease_duration: seconds(9),
        ..config(identity)
    };
    assert!(finding_seeds(Cluster::new, rounding) > 0);
}

#[test]
fn an_update_that_does_not_mind_what_others_wrote_would_be_found() {
    assert!(finding_seeds(Cluster::careless, config) > 0);
}

#[test]
fn after_the_failures_a_candidate_leads_soon() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    for seed in 1_000..1_010 {
        runtime.block_on(async {
            let world = World::new(seed, Cluster::new(), config);
            story(&world).await;
            let newcomer = super::support::start(config("newcomer"), &Link::new(&world.cluster));
            // The last lease of the run, and its lost requests, must expire first.
            let leads = timeout(seconds(60), newcomer.election.leading()).await;
            assert!(leads.is_ok(), "seed {seed}");
        });
    }
}
