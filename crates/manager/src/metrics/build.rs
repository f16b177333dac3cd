//! The build information of this program.

use serde::Serialize;

/// The commit that this program was built from, if the build set `CLOUDKEEL_COMMIT`.
pub const COMMIT: Option<&str> = match option_env!("CLOUDKEEL_COMMIT") {
    Some(commit) if !commit.is_empty() => Some(commit),
    _ => None,
};

/// The version of Kubernetes whose cloud-controller-manager this program behaves like.
pub const KUBERNETES_VERSION: &str = "v1.37";

/// The version of this program, shown at `/version` and in `kubernetes_build_info`. The fields are
/// those of every Kubernetes component; what has no meaning for Rust is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildInfo {
    /// `1` of `v1.2.3`.
    pub major: String,
    /// `2` of `v1.2.3`.
    pub minor: String,
    /// The full version, with a leading `v`.
    pub git_version: String,
    /// The commit it was built from.
    pub git_commit: String,
    /// `clean` or `dirty`.
    pub git_tree_state: String,
    /// When it was built.
    pub build_date: String,
    /// Always empty: there is no Go in it.
    pub go_version: String,
    /// The compiler and its version.
    pub compiler: String,
    /// `linux/amd64`
    pub platform: String,
}

impl BuildInfo {
    /// A build of this version, such as `0.1.0`.
    pub fn of_version(version: &str) -> Self {
        let mut parts = version.trim_start_matches('v').splitn(3, '.');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        Self {
            major: part(),
            minor: part(),
            git_version: format!("v{}", version.trim_start_matches('v')),
            git_commit: COMMIT.unwrap_or_default().to_owned(),
            platform: platform(),
            ..Self::default()
        }
    }
}

/// The platform by the names that Kubernetes uses.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_and_minor_come_from_the_version() {
        for (version, major, minor, full) in [
            ("0.1.0", "0", "1", "v0.1.0"),
            ("v1.35.4-rc.1", "1", "35", "v1.35.4-rc.1"),
            ("7", "7", "", "v7"),
        ] {
            let build = BuildInfo::of_version(version);
            assert_eq!(
                (&*build.major, &*build.minor, &*build.git_version),
                (major, minor, full)
            );
        }
    }
}
