use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use cloudkeel_api::{
    BuildError, CloudError, ConfigSource, ErrorKind, Problem, ScopeFingerprint, SystemClock,
};
use kube::Client;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::{BalancerScope, NodeScope, TargetScope};
use crate::metrics::{BuildInfo, Format, Metrics};
use cloudkeel_controllers::clouds::Availability;

/// A cloud that accepts tokens that begin with `good`.
struct Account {
    token: String,
    files: Vec<PathBuf>,
    closed: Arc<AtomicUsize>,
}

#[async_trait]
impl CloudProvider for Account {
    fn name(&self) -> &'static str {
        "account"
    }
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        assert_ne!(self.token, "panic", "a provider with a bug");
        if self.token.starts_with("good") {
            Ok(ScopeFingerprint::new(&self.token))
        } else {
            let kind = ErrorKind::Unauthenticated;
            Err(CloudError::new("check", kind, self.token.clone()))
        }
    }
    async fn close(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// Builds from `{token: …}` or `{tokenFile: …}`.
struct Accounts {
    named_files: Vec<PathBuf>,
    uid: OnceLock<String>,
    builds: AtomicUsize,
    closed: Arc<AtomicUsize>,
}

#[async_trait]
impl Build for Accounts {
    async fn build(&self, entry: &CloudEntry) -> Result<Built, RegistryError> {
        self.builds.fetch_add(1, Ordering::SeqCst);
        let ConfigSource::Own(config) = &entry.config else {
            let problem = Problem::new("config", "is missing");
            return Err(rejected(problem));
        };
        let text = |key: &str| config.get(key).and_then(|value| value.as_str());
        let file = text("tokenFile").map(PathBuf::from);
        let token = match &file {
            None => text("token").unwrap_or_default().to_owned(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| rejected(Problem::new("tokenFile", error.to_string())))?,
        };
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        Ok(Built {
            provider: Arc::new(Account {
                token: token.trim().to_owned(),
                files: file.into_iter().collect(),
                closed: Arc::clone(&self.closed),
            }),
            secrets: Arc::new(ClusterSecrets::new(client)),
        })
    }

    fn named_files(&self) -> &[PathBuf] {
        &self.named_files
    }

    fn files_of(&self, entry: &CloudEntry) -> Vec<PathBuf> {
        let ConfigSource::Own(config) = &entry.config else {
            return Vec::new();
        };
        let file = config.get("tokenFile").and_then(|value| value.as_str());
        file.map(PathBuf::from).into_iter().collect()
    }

    fn secrets(&self) -> Arc<ClusterSecrets> {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        Arc::new(ClusterSecrets::new(Client::try_from(nowhere).unwrap()))
    }

    fn cluster_uid(&self) -> Option<&str> {
        self.uid.get().map(String::as_str)
    }
}

fn rejected(problem: Problem) -> RegistryError {
    RegistryError::Build {
        name: "account".to_owned(),
        source: BuildError::Settings(problem.into()),
    }
}

#[derive(Default)]
struct ReloadEvent(Mutex<Vec<String>>);

#[async_trait]
impl ReloadReporter for ReloadEvent {
    async fn report(&self, cloud: &str, outcome: &ReloadOutcome) {
        let text = match outcome {
            ReloadOutcome::Applied => format!("{cloud}: taken"),
            ReloadOutcome::Rejected { why } => format!("{cloud}: {why}"),
            ReloadOutcome::Unavailable { why } => format!("{cloud}: unavailable: {why}"),
            ReloadOutcome::Available => format!("{cloud}: available"),
        };
        self.0.lock().unwrap().push(text);
    }
}

fn entry(name: &str, config: serde_json::Value) -> CloudEntry {
    CloudEntry {
        name: name.to_owned(),
        provider: "account".to_owned(),
        nodes: NodeScope::default(),
        load_balancers: BalancerScope {
            default: true,
            classes: BTreeSet::new(),
            targets: TargetScope::default(),
        },
        config: ConfigSource::Own(config),
    }
}

/// One cloud, and a configuration that can be changed.
struct Lab {
    accounts: Accounts,
    file: Mutex<Result<Vec<CloudEntry>, String>>,
    event: ReloadEvent,
    metrics: Metrics,
    clouds: Vec<Reloadable>,
    known: Vec<CloudEntry>,
}

impl Lab {
    async fn with(config: serde_json::Value, named_files: Vec<PathBuf>) -> Self {
        let entries = vec![entry("a", config)];
        let accounts = Accounts {
            named_files,
            uid: OnceLock::new(),
            builds: AtomicUsize::new(0),
            closed: Arc::default(),
        };
        let built = accounts.build(&entries[0]).await.unwrap();
        let provider = Arc::clone(&built.provider);
        let cloud = Cloud::new("a", provider, None, Arc::new(SystemClock));
        let reloadable = Reloadable::new(cloud, entries[0].clone(), &built, &accounts).await;
        Self {
            accounts,
            known: entries.clone(),
            file: Mutex::new(Ok(entries)),
            event: ReloadEvent::default(),
            metrics: Metrics::new(&BuildInfo::of_version("0.0.0"), jiff::Timestamp::UNIX_EPOCH),
            clouds: vec![reloadable],
        }
    }

    async fn check_all(&mut self) {
        let file = &self.file;
        let load = || {
            let clouds = file.lock().unwrap().clone()?;
            Ok(Setup { clouds, file: None })
        };
        let parts = ReloadParts {
            build: &self.accounts,
            load: &load,
            report: &self.event,
            metrics: &self.metrics.reloads,
            period: Duration::from_secs(10),
        };
        for (place, cloud) in self.clouds.iter_mut().enumerate() {
            parts.check(cloud, place, &self.known).await;
        }
    }

    fn write(&self, entries: Result<Vec<CloudEntry>, String>) {
        *self.file.lock().unwrap() = entries;
    }

    /// The token of the provider in use.
    async fn in_use(&self) -> String {
        let scope = self.clouds[0].cloud.provider().check().await.unwrap();
        scope.as_str().to_owned()
    }

    fn event(&self) -> Vec<String> {
        std::mem::take(&mut self.event.0.lock().unwrap())
    }

    fn exposes(&self, line: &str) -> bool {
        let text = self.metrics.expose(Format::Plain).unwrap();
        text.lines().any(|exposed| exposed == line)
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_built_while_nothing_changes() {
    let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
    lab.check_all().await;
    lab.check_all().await;
    assert_eq!(lab.accounts.builds.load(Ordering::SeqCst), 1);
    assert_eq!(lab.event(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_new_configuration_is_proven_and_takes_over() {
    let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
    lab.write(Ok(vec![entry("a", json!({"token": "good too"}))]));
    lab.check_all().await;
    assert_eq!(lab.in_use().await, "good too");
    assert_eq!(lab.event(), ["a: taken"]);
    assert!(lab.exposes("cloudkeel_cloud_reloads_total{cloud=\"a\",result=\"success\"} 1"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        lab.accounts.closed.load(Ordering::SeqCst),
        1,
        "the old one ends its sessions"
    );
}

#[tokio::test(start_paused = true)]
async fn settings_that_do_not_work_are_reported_once_and_the_current_ones_stay() {
    for (case, broken, expected) in [
        (
            "the cloud does not accept it",
            Ok(vec![entry("a", json!({"token": "bad"}))]),
            "the cloud does not accept them: check",
        ),
        (
            "it cannot be built",
            Ok(vec![entry("a", json!({"tokenFile": "/does/not/exist"}))]),
            "could not init cloud provider \"account\": its settings are wrong:\ntokenFile",
        ),
        (
            "the provider panics",
            Ok(vec![entry("a", json!({"token": "panic"}))]),
            "the provider panicked",
        ),
        ("the file is broken", Err("line 3".to_owned()), "line 3"),
        (
            "another cloud more",
            Ok(vec![
                entry("a", json!({"token": "good"})),
                entry("b", json!({"token": "good"})),
            ]),
            "can only change with a restart",
        ),
        (
            "another name",
            Ok(vec![entry("b", json!({"token": "good"}))]),
            "can only change with a restart",
        ),
    ] {
        let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
        lab.write(broken);
        for _ in 0..3 {
            lab.check_all().await;
        }
        let event = lab.event();
        assert!(
            matches!(event.as_slice(), [only] if only.contains(expected)),
            "{case}: {event:?}"
        );
        assert_eq!(lab.in_use().await, "good", "{case}");
        assert!(
            lab.exposes("cloudkeel_cloud_settings_stale{cloud=\"a\"} 1.0"),
            "{case}"
        );
        lab.write(Ok(vec![entry("a", json!({"token": "good"}))]));
        lab.check_all().await;
        assert!(
            lab.exposes("cloudkeel_cloud_settings_stale{cloud=\"a\"} 0.0"),
            "{case}"
        );
        assert_eq!(lab.event(), [""; 0], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_panics_is_tried_again_and_the_next_settings_are_taken() {
    let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
    lab.write(Ok(vec![entry("a", json!({"token": "good too"}))]));
    let (file, loads) = (&lab.file, AtomicUsize::new(0));
    let load = || {
        let load = loads.fetch_add(1, Ordering::SeqCst);
        assert!(load > 1, "planted");
        let clouds = file.lock().unwrap().clone()?;
        Ok(Setup { clouds, file: None })
    };
    let parts = ReloadParts {
        build: &lab.accounts,
        load: &load,
        report: &lab.event,
        metrics: &lab.metrics.reloads,
        period: Duration::from_secs(10),
    };
    let cloud = Arc::clone(&lab.clouds[0].cloud);
    let reloading = keep_reloading(std::mem::take(&mut lab.clouds), parts);
    let limit = Duration::from_mins(1);
    assert!(tokio::time::timeout(limit, reloading).await.is_err());
    let scope = cloud.provider().check().await.unwrap();
    assert_eq!(scope.as_str(), "good too");
}

#[tokio::test(start_paused = true)]
async fn settings_that_were_refused_are_tried_again_after_growing_pauses() {
    let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
    lab.write(Ok(vec![entry("a", json!({"token": "bad"}))]));
    let mut attempts = Vec::new();
    for check_all in 0..30 {
        let before = lab.accounts.builds.load(Ordering::SeqCst);
        lab.check_all().await;
        if lab.accounts.builds.load(Ordering::SeqCst) > before {
            attempts.push(check_all * 10);
        }
        tokio::time::advance(Duration::from_secs(10)).await;
    }
    assert_eq!(attempts, [0, 30, 90, 210], "seconds");
}

#[tokio::test(start_paused = true)]
async fn a_credential_in_a_file_is_followed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "good").unwrap();
    let config = json!({"tokenFile": path});
    let mut lab = Lab::with(config, vec![]).await;
    std::fs::write(&path, "good and new\n").unwrap();
    lab.check_all().await;
    assert_eq!(lab.in_use().await, "good and new");
    std::fs::remove_file(&path).unwrap();
    lab.check_all().await;
    assert_eq!(lab.in_use().await, "good and new");
    std::fs::write(&path, "good again").unwrap();
    lab.check_all().await;
    assert_eq!(lab.in_use().await, "good again");
    assert_eq!(lab.event().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_a_variable_names_is_followed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "first").unwrap();
    let mut lab = Lab::with(json!({"token": "good"}), vec![path.clone()]).await;
    std::fs::write(&path, "second").unwrap();
    lab.check_all().await;
    assert_eq!(lab.accounts.builds.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_uid_that_is_learnt_later_reaches_the_provider() {
    let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
    lab.check_all().await;
    assert_eq!(lab.accounts.builds.load(Ordering::SeqCst), 1);
    lab.accounts.uid.set("u-1".to_owned()).unwrap();
    for _ in 0..2 {
        lab.check_all().await;
        assert_eq!(lab.accounts.builds.load(Ordering::SeqCst), 2, "once");
    }
}

/// A cloud that could not be built, and what is reported while it is retried.
async fn recovering(config: serde_json::Value, minutes: u64, then: impl FnOnce(&Lab)) -> Lab {
    let mut lab = Lab::with(json!({"token": "good"}), vec![]).await;
    lab.accounts.builds.store(0, Ordering::SeqCst);
    let entries = vec![entry("a", config)];
    let availability = Arc::new(Availability::default());
    let now = jiff::Timestamp::UNIX_EPOCH;
    availability.failed(now, ErrorKind::Unauthenticated, "bad token");
    let (clock, nothing) = (Arc::new(SystemClock), Arc::new(Nothing));
    let cloud = Cloud::configured(
        "a",
        nothing,
        (None, Vec::new()),
        clock,
        Arc::clone(&availability),
    );
    let cloud = Reloadable::unavailable(cloud, entries[0].clone(), &lab.accounts).await;
    let in_use = Arc::clone(&cloud.cloud);
    lab.known.clone_from(&entries);
    lab.write(Ok(entries));
    {
        let file = &lab.file;
        let load = || {
            let clouds = file.lock().unwrap().clone()?;
            Ok(Setup { clouds, file: None })
        };
        let parts = ReloadParts {
            build: &lab.accounts,
            load: &load,
            report: &lab.event,
            metrics: &lab.metrics.reloads,
            period: Duration::from_secs(10),
        };
        let mut kept = std::pin::pin!(keep_reloading(vec![cloud], parts));
        let some = Duration::from_mins(minutes);
        assert!(tokio::time::timeout(some, &mut kept).await.is_err());
        then(&lab);
        assert!(tokio::time::timeout(some, &mut kept).await.is_err());
    }
    lab.clouds[0].cloud = in_use;
    lab
}

/// Stands in for what could not be built.
struct Nothing;

impl CloudProvider for Nothing {
    fn name(&self) -> &'static str {
        "account"
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_rejects_the_credential_at_the_start_is_retried_seldom_and_reported_once() {
    let lab = recovering(json!({"token": "bad"}), 10, |lab| {
        assert!(lab.exposes("cloudkeel_cloud_available{cloud=\"a\"} 0.0"));
    });
    let lab = lab.await;
    // After 30, 90, 210 and 450 s, then every 300 s.
    assert_eq!(lab.accounts.builds.load(Ordering::SeqCst), 6);
    let unavailable = lab.clouds[0].cloud.availability.unavailable().unwrap();
    assert_eq!(unavailable.attempts, 7);
    let event = lab.event();
    assert_eq!(event.len(), 2, "another cause is reported: {event:?}");
    assert_eq!(event[0], "a: unavailable: bad token");
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_corrected_is_used_without_waiting_for_the_next_retry() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "bad").unwrap();
    let new = folder.path().join("new");
    std::fs::write(&new, "good").unwrap();
    // In one step, as a kubelet does it: a file that is half written is another change.
    let lab = recovering(json!({"tokenFile": path}), 2, |_| {
        std::fs::rename(&new, &path).unwrap();
    });
    let lab = lab.await;
    assert_eq!(lab.in_use().await, "good");
    assert_eq!(lab.clouds[0].cloud.availability.unavailable(), None);
    assert_eq!(lab.event().last().unwrap(), "a: available");
    assert!(lab.exposes("cloudkeel_cloud_available{cloud=\"a\"} 1.0"));
}

#[tokio::test(start_paused = true)]
async fn settings_that_are_corrected_in_the_configuration_are_used_at_once() {
    let lab = recovering(json!({"token": "bad"}), 2, |lab| {
        lab.write(Ok(vec![entry("a", json!({"token": "good"}))]));
    });
    assert_eq!(lab.await.in_use().await, "good");
}
