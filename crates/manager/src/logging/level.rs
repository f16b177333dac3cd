//! What each verbosity logs.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::options::ModuleLevel;

/// Why a verbosity could not be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerbosityError {
    /// Not a module path of this program.
    #[error("--vmodule: {0:?}: expected a module path such as `cloudkeel_http`")]
    BadModule(String),
    /// Logging has not started, or has started already.
    #[error("the log cannot be changed: {0}")]
    Gone(String),
}

/// What `-v` and `--vmodule` log: our own modules at the verbosity, libraries two levels lower, because their
/// details rarely matter.
pub fn targets_for(verbosity: u16, modules: &[ModuleLevel]) -> Result<Targets, VerbosityError> {
    let mut targets = Targets::new()
        .with_default(level(verbosity.saturating_sub(4)))
        .with_target(ECHO, echo(verbosity))
        .with_target("cloudkeel", level(verbosity));
    for ModuleLevel { module, verbosity } in modules {
        let path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        if !module.chars().all(path) {
            return Err(VerbosityError::BadModule(module.clone()));
        }
        targets = targets.with_target(module.clone(), level(*verbosity));
    }
    Ok(targets)
}

/// Logs every failed request as an error. The caller logs what failed, why, and what happens next.
const ECHO: &str = "kube_client::client";

const fn echo(verbosity: u16) -> LevelFilter {
    match verbosity {
        0..4 => LevelFilter::OFF,
        _ => level(verbosity.saturating_sub(4)),
    }
}

const fn level(verbosity: u16) -> LevelFilter {
    match verbosity {
        0 | 1 => LevelFilter::INFO,
        2..=5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn our_modules_follow_the_verbosity_and_libraries_lag_behind() {
        for (verbosity, ours, theirs) in [
            (0, Level::INFO, Level::INFO),
            (2, Level::DEBUG, Level::INFO),
            (6, Level::TRACE, Level::DEBUG),
            (10, Level::TRACE, Level::TRACE),
        ] {
            let targets = targets_for(verbosity, &[]).unwrap();
            for (target, most) in [("cloudkeel_http::limit", ours), ("hyper", theirs)] {
                for level in [Level::INFO, Level::DEBUG, Level::TRACE] {
                    let shown = targets.would_enable(target, &level);
                    assert_eq!(shown, level <= most, "-v={verbosity} {target} {level}");
                }
            }
        }
    }

    #[test]
    fn failed_requests_are_logged_twice_only_at_a_high_verbosity() {
        for (verbosity, shown) in [(0, false), (3, false), (4, true)] {
            let targets = targets_for(verbosity, &[]).unwrap();
            let echo = targets.would_enable("kube_client::client::builder", &Level::ERROR);
            assert_eq!(echo, shown, "-v={verbosity}");
            assert!(targets.would_enable("kube_runtime", &Level::ERROR));
        }
    }

    #[test]
    fn a_single_module_can_be_louder() {
        let modules = [ModuleLevel {
            module: "cloudkeel_http".into(),
            verbosity: 6,
        }];
        let targets = targets_for(0, &modules).unwrap();
        assert!(targets.would_enable("cloudkeel_http::client", &Level::TRACE));
        assert!(!targets.would_enable("cloudkeel_api", &Level::DEBUG));
        let modules = [ModuleLevel {
            module: "a*".into(),
            verbosity: 6,
        }];
        assert!(targets_for(0, &modules).is_err());
    }
}
