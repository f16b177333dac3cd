//! Runs the elections: for the main lease, and for the one of a leader migration.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Problem, Problems};
use cloudkeel_controllers::ControllerName;
use cloudkeel_controllers::planted::Bug;
use cloudkeel_controllers::runtime::{ErrorText, Reports, panic_text};
use futures::FutureExt as _;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::leader::{LeaderParts, ReplicaIdentity, lead};
use super::manager::{Ending, RunError};
use crate::election::{
    Election, ElectionConfig, Elector, Ended, Fence, LeaderMigration, Leadership, RunningElection,
    RunsUnder,
};
use crate::health::{Health, LeaderStatus, Scope};
use crate::log_messages::DRY_RUN;
use crate::metrics::{ElectionState, Metrics};
use crate::options::ElectionOptions;

/// How long a new leader waits for the API server before it gives up.
const API_SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// The health check of the main lease, named as upstream.
const MAIN_LEASE_CHECK: &str = "leaderElection";

/// Why leading under a lease ended early.
enum LeadError {
    Lost(String),
    Failed(RunError),
}

impl From<RunError> for LeadError {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

/// Runs the election, or both of them, and leads while holding the lease.
pub(super) async fn elect_and_lead(
    parts: LeaderParts<'_>,
    reports: Reports,
    stop: CancellationToken,
) -> Result<Ending, RunError> {
    let options = &parts.options.election;
    if parts.dry_run.is_some() {
        info!("{DRY_RUN}");
        lead_when_api_server_ready(parts, Some(reports), Fence::always_open(), stop).await?;
        return Ok(Ending::Stopped);
    }
    if !options.enabled {
        let holder = parts.replica.name.clone();
        parts
            .health
            .status_report()
            .follow_election(move || LeaderStatus {
                holder: Some(holder.clone()),
                ..LeaderStatus::default()
            });
        let fence = Fence::always_open();
        lead_when_api_server_ready(parts, Some(reports), fence, stop).await?;
        return Ok(Ending::Stopped);
    }
    let migration = Migration::read(options, &parts.enabled)?;
    let identity = &parts.replica.name;
    let main_leads = CancellationToken::new();
    let main = Candidate {
        lease: &options.name,
        check: MAIN_LEASE_CHECK,
        identity,
        leads: main_leads.clone(),
    };
    let main_work = main.lead(parts.with(migration.main), Some(reports), stop.clone());
    let migrated_work = async {
        let Some((lease, controllers)) = migration.migrated else {
            return Ok(());
        };
        // Only the holder of the main lease is a candidate for the migration lease.
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = main_leads.cancelled() => {}
        }
        let candidate = Candidate {
            lease: &lease,
            check: "leaderMigration",
            identity,
            leads: CancellationToken::new(),
        };
        candidate
            .lead(parts.with_only(controllers), None, stop.clone())
            .await
    };
    // The first failure drops the other: a process that may not write one thing writes nothing.
    match futures::future::try_join(main_work, migrated_work).await {
        Ok(_) => Ok(Ending::Stopped),
        Err(LeadError::Lost(why)) => Ok(Ending::LeaseLost(why)),
        Err(LeadError::Failed(error)) => Err(error),
    }
}

/// Which controllers run under which lease.
struct Migration {
    main: Vec<ControllerName>,
    migrated: Option<(String, Vec<ControllerName>)>,
}

impl Migration {
    fn read(options: &ElectionOptions, enabled: &[ControllerName]) -> Result<Self, RunError> {
        if !options.migration {
            return Ok(Self {
                main: enabled.to_vec(),
                migrated: None,
            });
        }
        let migration = match &options.migration_config {
            None => LeaderMigration::default(),
            Some(path) => read_migration(path).map_err(RunError::Election)?,
        };
        let under = |lease: RunsUnder| {
            let runs = |name: &&ControllerName| migration.runs_under(name.canonical()) == lease;
            enabled.iter().filter(runs).copied().collect::<Vec<_>>()
        };
        let migrated = under(RunsUnder::MigrationLease);
        Ok(Self {
            main: under(RunsUnder::MainLease),
            migrated: (!migrated.is_empty()).then(|| (migration.lease_name.clone(), migrated)),
        })
    }
}

fn read_migration(path: &Path) -> Result<LeaderMigration, Problems> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let expected = format!("a readable file: {error}");
        let path = path.display().to_string();
        Problem::unexpected("--leader-migration-config", path, expected)
    })?;
    LeaderMigration::parse(&text)
}

/// A candidate for one lease, and what to do with it.
struct Candidate<'a> {
    lease: &'a str,
    /// The name of its health check. Each lease has its own: a process may hang with one of them.
    check: &'static str,
    identity: &'a str,
    /// Cancelled when this candidate holds the lease.
    leads: CancellationToken,
}

impl Candidate<'_> {
    async fn lead(
        &self,
        parts: LeaderParts<'_>,
        reports: Option<Reports>,
        stop: CancellationToken,
    ) -> Result<(), LeadError> {
        let writers_stopped = CancellationToken::new();
        let running = self.start_election(&parts, writers_stopped.clone()).await?;
        let election = running.election().clone();
        register(self.check, &election, parts.health, parts.metrics);
        if self.check == MAIN_LEASE_CHECK {
            let lease = format!("{}/{}", parts.options.election.namespace, self.lease);
            publish_leader(lease, self.identity.to_owned(), &election, parts.health);
        }
        let led = self
            .lead_when_elected(parts, reports, &election, stop)
            .await;
        writers_stopped.cancel();
        let ended = running.ended().await;
        led?;
        match ended {
            Some(Ended::Stopped { released }) => {
                info!(lease = self.lease, released, "leader election stopped");
                Ok(())
            }
            Some(Ended::Lost(loss)) => Err(LeadError::Lost(loss.to_string())),
            None => Err(LeadError::Lost("the election panicked".to_owned())),
        }
    }

    /// Starts the election. In a process of its own, the manager runs it on a separate thread, because the main
    /// thread also serves requests and writes logs; several managers in one process share one thread.
    async fn start_election(
        &self,
        parts: &LeaderParts<'_>,
        stop: CancellationToken,
    ) -> Result<RunningElection, RunError> {
        let config = self.config(parts);
        let ReplicaIdentity {
            seed, background, ..
        } = parts.replica.clone();
        let (factory, clock) = (parts.factory.clone(), Arc::clone(&parts.clock));
        let is_process = factory.connects_itself();
        let make = move || {
            let client = factory.for_election(&config)?;
            let elector = Elector::kubernetes(config, client, clock).map_err(RunError::Election)?;
            Ok::<_, RunError>(elector.with_seed(seed).with_background(background))
        };
        if is_process {
            RunningElection::on_own_thread(make, stop).await
        } else {
            Ok(RunningElection::here(make()?, stop))
        }
    }

    fn config(&self, parts: &LeaderParts<'_>) -> ElectionConfig {
        let options = &parts.options.election;
        ElectionConfig {
            lease_duration: options.lease_duration,
            renew_deadline: options.renew_deadline,
            retry_period: options.retry_period,
            release_on_stop: options.release_on_exit,
            ..ElectionConfig::new(&options.namespace, self.lease, self.identity)
        }
    }

    async fn lead_when_elected(
        &self,
        parts: LeaderParts<'_>,
        reports: Option<Reports>,
        election: &Election,
        stop: CancellationToken,
    ) -> Result<(), RunError> {
        let fence = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            led = election.leading() => match led {
                Ok(fence) => fence,
                Err(Leadership::Lost(loss)) => return Err(RunError::NotElected(loss.to_string())),
                Err(_) => return Ok(()),
            },
        };
        info!(lease = self.lease, "started leading");
        self.leads.cancel();
        tokio::select! {
            biased;
            // Everything that writes is dropped here, before another replica can hold the lease.
            () = fence.closed(), if !Bug::IgnoreLeaseLoss.is_planted() => Ok(()),
            led = lead_when_api_server_ready(parts, reports, fence.clone(), stop) => led,
        }
    }
}

/// Registers an election in health checks and metrics.
fn register(check: &'static str, election: &Election, health: &Health, metrics: &Metrics) {
    let election_health = election.health();
    health.register(check, Scope::Liveness, move || {
        election_health.check(tokio::time::Instant::now())
    });
    let followed = election.clone();
    let state = move || ElectionState {
        leading: followed.is_leader(),
        slow_paths: followed.slow_path_total(),
    };
    metrics.election.follow(election.lease_name(), state);
}

/// Publishes the leader on the page and in `/status`.
fn publish_leader(lease: String, identity: String, election: &Election, health: &Health) {
    let leadership = election.leadership();
    health.status_report().follow_election(move || {
        let (holder, error) = match &*leadership.borrow() {
            Leadership::Standby { holder, error } => (holder.clone(), error.clone()),
            Leadership::Leading { .. } => (Some(identity.clone()), None),
            Leadership::Lost(loss) => (None, Some(loss.to_string())),
            Leadership::Stopped => (None, None),
        };
        LeaderStatus {
            holder: holder.filter(|holder| !holder.is_empty()),
            lease: Some(lease.clone()),
            error,
        }
    });
}

/// As upstream: a new leader that cannot reach the API server soon gives up.
pub(super) async fn lead_when_api_server_ready(
    parts: LeaderParts<'_>,
    reports: Option<Reports>,
    fence: Fence,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let client = parts.factory.unfenced("start")?;
    match stop.run_until_cancelled(wait_for_api_server(&client)).await {
        Some(answered) => answered?,
        None => return Ok(()),
    }
    or_panicked(Box::pin(lead(parts, reports, fence, stop))).await
}

/// What comes of leading. After a panic outside of the queues, as in the handler of a watch, what this process knows of
/// the cluster may be wrong: it writes nothing more, releases the lease, and the next leader reads everything anew.
async fn or_panicked(leading: impl Future<Output = Result<(), RunError>>) -> Result<(), RunError> {
    let led = AssertUnwindSafe(leading).catch_unwind().await;
    led.unwrap_or_else(|panic| Err(RunError::Panicked(panic_text(panic.as_ref()).to_owned())))
}

/// Polls until the API server answers.
async fn wait_for_api_server(client: &Client) -> Result<(), RunError> {
    let mut last_error = None;
    let answered = async {
        loop {
            match client.apiserver_version().await {
                Ok(version) => return version,
                Err(error) => last_error = Some(error),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    if let Ok(version) = tokio::time::timeout(API_SERVER_TIMEOUT, answered).await {
        info!(version = version.git_version, "API server is healthy");
        return Ok(());
    }
    let silent = || format!("no answer within {} s", API_SERVER_TIMEOUT.as_secs());
    let why = last_error.map_or_else(silent, |error| ErrorText(&error).to_string());
    Err(RunError::ApiServer(why))
}

#[cfg(test)]
mod tests;
