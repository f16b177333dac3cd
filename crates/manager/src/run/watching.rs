//! How long a watch lasts.

use std::time::Duration;

use kube::runtime::watcher;

/// So much sooner a watch ends by itself than its connection is given up.
const SOONER: Duration = Duration::from_secs(3);

/// No watch lasts longer, as the client has it.
const LONGEST: u64 = 290;

/// Asks the API server to end every watch before its connection would be given up. Nothing may happen for hours,
/// and nothing else tells a watch that is quiet from one that is dead.
pub(super) fn watch_config(read_timeout: Option<Duration>) -> watcher::Config {
    let config = watcher::Config::default();
    let Some(read_timeout) = read_timeout else {
        return config;
    };
    let seconds = read_timeout.saturating_sub(SOONER).as_secs();
    let seconds = u32::try_from(seconds.clamp(1, LONGEST));
    seconds.map_or(config.clone(), |seconds| config.timeout(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_before_its_connection_is_given_up() {
        for (read_timeout, expected) in [
            (None, None),
            (Some(60), Some(57)),
            (Some(3), Some(1)),
            (Some(1), Some(1)),
            (Some(3600), Some(290)),
        ] {
            let config = watch_config(read_timeout.map(Duration::from_secs));
            assert_eq!(config.timeout, expected, "{read_timeout:?}");
        }
    }
}
