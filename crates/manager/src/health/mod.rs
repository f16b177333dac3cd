//! Whether this process is alive, healthy and ready.
//!
//! A check is registered under a name and counts for some of `/healthz`, `/livez` and `/readyz`. A deletion stop is not
//! a check: restarting the process would not end it, only hide it.

mod report;
mod slis;
mod status;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;

use crate::metrics::Format;
pub use report::Report;
use report::{Examined, ShownResult};
use slis::Slis;
pub(crate) use status::{CloudStatus, ControllerStatus, Watched};
pub use status::{LeaderStatus, Status, StatusReport};

/// A health endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/healthz`, the one that upstream has.
    Healthz,
    /// `/livez`: whether a restart would help.
    Livez,
    /// `/readyz`: whether it can do its work, as leader or as standby.
    Readyz,
}

impl Endpoint {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// Its name, which is its path without the slash.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// For which endpoints a check counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For all.
    Everywhere,
    /// For `/healthz` and `/livez`: failing means that the process should be restarted.
    Liveness,
    /// For `/readyz` only: failing means that the process needs time.
    Readiness,
}

impl Scope {
    fn covers(self, endpoint: Endpoint) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Liveness => endpoint != Endpoint::Readyz,
            Self::Readiness => endpoint == Endpoint::Readyz,
        }
    }
}

/// The result of a check: nothing, or what is wrong.
pub type CheckResult = Result<(), String>;

type CheckFn = Arc<dyn Fn() -> CheckResult + Send + Sync>;

#[derive(Clone)]
struct Check {
    name: String,
    scope: Scope,
    run: CheckFn,
}

/// All checks of this process.
pub struct Health {
    checks: RwLock<Vec<Check>>,
    slis: Slis,
    status_report: StatusReport,
}

impl Health {
    /// No checks yet, of a process that started at this moment.
    pub fn new(started: Timestamp) -> Self {
        Self {
            checks: RwLock::default(),
            slis: Slis::new(started),
            status_report: StatusReport::default(),
        }
    }

    /// The status of this process, for `/status`.
    pub const fn status_report(&self) -> &StatusReport {
        &self.status_report
    }

    /// Adds a check, or replaces the one of the same name. It must return at once: a probe is waiting.
    pub fn register(
        &self,
        name: impl Into<String>,
        scope: Scope,
        check: impl Fn() -> CheckResult + Send + Sync + 'static,
    ) {
        let check = Check {
            name: name.into(),
            scope,
            run: Arc::new(check),
        };
        let mut checks = self.checks.write().unwrap_or_else(PoisonError::into_inner);
        match checks.iter_mut().find(|known| known.name == check.name) {
            Some(known) => *known = check,
            None => checks.push(check),
        }
    }

    /// Runs the checks of an endpoint, except for those excluded by name.
    pub fn examine(&self, endpoint: Endpoint, excluded: &[String]) -> Report {
        let examined = self
            .checks_of(endpoint)
            .into_iter()
            .map(|check| self.examine_one(endpoint, &check, excluded))
            .collect();
        let notes = match endpoint {
            Endpoint::Readyz => self.notes(),
            Endpoint::Healthz | Endpoint::Livez => Vec::new(),
        };
        Report::new(endpoint, examined, excluded).with_notes(notes)
    }

    /// Notes that are no reason to restart or wait.
    fn notes(&self) -> Vec<String> {
        let unavailable = self.status_report.unavailable().into_iter();
        let unavailable = unavailable.map(|(cloud, kind)| {
            format!("cloud {cloud:?} is unavailable since the start ({kind}); /status says why")
        });
        let stopped = self.status_report.stopped().into_iter();
        let stopped = stopped.map(|cloud| {
            format!("node deletions of cloud {cloud:?} are stopped; /status says why")
        });
        unavailable.chain(stopped).collect()
    }

    /// Runs one check by name; `None` if the endpoint has no such check.
    pub fn examine_named(&self, endpoint: Endpoint, name: &str) -> Option<CheckResult> {
        let checks = self.checks_of(endpoint);
        let check = checks.iter().find(|check| check.name == name)?;
        Some((check.run)())
    }

    /// The results of past checks as text, for `/metrics/slis`.
    pub fn expose_slis(&self, format: Format) -> Result<String, std::fmt::Error> {
        self.slis.expose(format)
    }

    /// Resets the results of past checks.
    pub fn reset_slis(&self) {
        self.slis.reset();
    }

    fn examine_one(&self, endpoint: Endpoint, check: &Check, excluded: &[String]) -> Examined {
        let result = if excluded.contains(&check.name) {
            ShownResult::Excluded
        } else {
            let result = (check.run)();
            self.slis.observe(&check.name, endpoint, result.is_ok());
            match result {
                Ok(()) => ShownResult::Passed,
                Err(err) => {
                    tracing::debug!(
                        check = check.name,
                        endpoint = endpoint.as_str(),
                        err,
                        "health check failed"
                    );
                    ShownResult::Failed
                }
            }
        };
        Examined {
            name: check.name.clone(),
            result,
        }
    }

    /// The checks of an endpoint in the order of their registration. If there are none, a check that always passes
    /// shows that the endpoint works.
    fn checks_of(&self, endpoint: Endpoint) -> Vec<Check> {
        let checks = self.checks.read().unwrap_or_else(PoisonError::into_inner);
        let mut covered: Vec<Check> = checks
            .iter()
            .filter(|check| check.scope.covers(endpoint))
            .cloned()
            .collect();
        if covered.is_empty() {
            covered.push(Check {
                name: "ping".to_owned(),
                scope: Scope::Everywhere,
                run: Arc::new(|| Ok(())),
            });
        }
        covered
    }
}
