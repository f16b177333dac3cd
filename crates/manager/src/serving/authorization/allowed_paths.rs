//! Paths that need no authorization.

use crate::serving::ServingError;

/// Exact paths, and prefixes.
#[derive(Debug, Clone, Default)]
pub(in crate::serving) struct AllowedPaths {
    whole: Vec<String>,
    prefixes: Vec<String>,
}

impl AllowedPaths {
    /// `/path` matches itself, `/path*` everything that begins with it. The leading slash is optional.
    pub(in crate::serving) fn parse(patterns: &[String]) -> Result<Self, ServingError> {
        let mut paths = Self::default();
        for pattern in patterns {
            let path = pattern.strip_prefix('/').unwrap_or(pattern);
            let (path, list) = match path.strip_suffix('*') {
                Some(beginning) => (beginning, &mut paths.prefixes),
                None => (path, &mut paths.whole),
            };
            if path.contains('*') {
                return Err(ServingError::AllowedPath {
                    path: pattern.clone(),
                });
            }
            list.push(path.to_owned());
        }
        Ok(paths)
    }

    pub(in crate::serving) fn contain(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.whole.iter().any(|whole| whole == path)
            || self.prefixes.iter().any(|start| path.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(patterns: &[&str]) -> Result<AllowedPaths, ServingError> {
        let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        AllowedPaths::parse(&patterns)
    }

    #[test]
    fn a_path_is_matched_whole_unless_its_pattern_ends_with_a_star() {
        for (patterns, path, matched) in [
            (vec!["/healthz"], "/healthz", true),
            (vec!["healthz"], "/healthz", true),
            (vec!["/healthz"], "/healthz/", false),
            (vec!["/healthz"], "/healthz/leaderElection", false),
            (vec!["/healthz*"], "/healthz/leaderElection", true),
            (vec!["/healthz/*"], "/healthz/leaderElection", true),
            (vec!["/healthz/*"], "/healthz", false),
            (vec!["*"], "/metrics", true),
            (vec!["/"], "/", true),
            (vec!["/"], "/metrics", false),
            (vec![], "/healthz", false),
        ] {
            assert_eq!(
                paths(&patterns).unwrap().contain(path),
                matched,
                "{patterns:?} {path}"
            );
        }
    }

    #[test]
    fn a_star_inside_is_refused() {
        let error = paths(&["/healthz", "/debug/*/v"]).unwrap_err().to_string();
        assert!(error.contains("/debug/*/v"), "{error}");
    }
}
