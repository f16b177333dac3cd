//! The cache of built programs: outside the checkout, one directory for each set of pinned modules.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The Kubernetes version that is built from the pinned modules.
pub const KUBERNETES_VERSION: &str = "v1.35.4";

/// What Go needs to build programs, carried inside this crate.
#[derive(Debug)]
pub(super) struct Module {
    /// The directory of the cache for its programs.
    pub(super) directory: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// The programs of the control plane, from their own modules.
pub(super) static CONTROL_PLANE: Module = Module {
    directory: "control-plane",
    files: &[
        (
            "go.mod",
            include_str!("../../../control-plane-build/go.mod"),
        ),
        (
            "go.sum",
            include_str!("../../../control-plane-build/go.sum"),
        ),
        (
            IMPORTS_ONLY,
            include_str!("../../../control-plane-build/tools.go"),
        ),
    ],
};

/// kube-controller-manager, in a module of its own: it needs modules that the control plane does not, and with those the
/// control plane would be built again.
pub(super) static KUBE_CONTROLLER_MANAGER: Module = Module {
    directory: "kube-controller-manager",
    files: &[
        (
            "go.mod",
            include_str!("../../../go/kube-controller-manager/go.mod"),
        ),
        (
            "go.sum",
            include_str!("../../../go/kube-controller-manager/go.sum"),
        ),
        (
            IMPORTS_ONLY,
            include_str!("../../../go/kube-controller-manager/tools.go"),
        ),
    ],
};

/// A candidate for a Lease that runs Go's own leader election.
pub(super) static LEASE_CANDIDATE: Module = Module {
    directory: "lease-candidate",
    files: &[
        ("go.mod", include_str!("../../../go/lease-candidate/go.mod")),
        ("go.sum", include_str!("../../../go/lease-candidate/go.sum")),
        (
            "main.go",
            include_str!("../../../go/lease-candidate/main.go"),
        ),
    ],
};

/// The calls of Hetzner's CCM, made with Hetzner's own client.
pub(super) static HCLOUD_PROBE: Module = Module {
    directory: "hcloud-probe",
    files: &[
        ("go.mod", include_str!("../../../go/hcloud-probe/go.mod")),
        ("go.sum", include_str!("../../../go/hcloud-probe/go.sum")),
        ("main.go", include_str!("../../../go/hcloud-probe/main.go")),
    ],
};

/// The calls of DigitalOcean's CCM, made with DigitalOcean's own client.
pub(super) static GODO_PROBE: Module = Module {
    directory: "godo-probe",
    files: &[
        ("go.mod", include_str!("../../../go/godo-probe/go.mod")),
        ("go.sum", include_str!("../../../go/godo-probe/go.sum")),
        ("main.go", include_str!("../../../go/godo-probe/main.go")),
    ],
};

/// A cloud-controller-manager on the Go framework, to measure ours against.
pub(super) static GO_PEER: Module = Module {
    directory: "go-peer",
    files: &[
        (
            "go.mod",
            include_str!("../../../../../bench/go-peer/go.mod"),
        ),
        (
            "go.sum",
            include_str!("../../../../../bench/go-peer/go.sum"),
        ),
        (
            "main.go",
            include_str!("../../../../../bench/go-peer/main.go"),
        ),
        (
            "cloud.go",
            include_str!("../../../../../bench/go-peer/cloud.go"),
        ),
        (
            "client.go",
            include_str!("../../../../../bench/go-peer/client.go"),
        ),
        (
            "instances.go",
            include_str!("../../../../../bench/go-peer/instances.go"),
        ),
        (
            "routes.go",
            include_str!("../../../../../bench/go-peer/routes.go"),
        ),
        (
            "balancers.go",
            include_str!("../../../../../bench/go-peer/balancers.go"),
        ),
    ],
};

/// The program that renders our chart.
pub(super) static HELM: Module = Module {
    directory: "helm",
    files: &[
        ("go.mod", include_str!("../../../go/helm/go.mod")),
        ("go.sum", include_str!("../../../go/helm/go.sum")),
        (IMPORTS_ONLY, include_str!("../../../go/helm/tools.go")),
    ],
};

/// A file that keeps requirements in `go.mod` and is part of no program.
const IMPORTS_ONLY: &str = "tools.go";

/// The user's cache directory for this project: `CLOUDKEEL_CACHE`, else `XDG_CACHE_HOME/cloudkeel`, else
/// `~/.cache/cloudkeel`. A relative path would land in the checkout, so it counts as not set.
pub(super) fn root(env: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |key| {
        env(key)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("CLOUDKEEL_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|dir| dir.join("cloudkeel")))
        .or_else(|| absolute("HOME").map(|dir| dir.join(".cache/cloudkeel")))
}

/// The directory of the programs that this module and the flags yield.
pub(super) fn programs_in(root: &Path, module: &Module) -> PathBuf {
    let sources = module
        .files
        .iter()
        .filter(|(name, _)| *name != IMPORTS_ONLY);
    let inputs = sources
        .map(|(_, text)| (*text).to_owned())
        .chain(build_flags());
    let digest = inputs.fold(FNV_OFFSET, |digest, text| fnv1a(digest, text.as_bytes()));
    root.join(module.directory)
        .join(format!("{KUBERNETES_VERSION}-{digest:016x}"))
}

/// The flags of `go build`, all stated, so that a `GOFLAGS` of the machine decides nothing.
pub(super) fn build_flags() -> Vec<String> {
    ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags"]
        .map(str::to_owned)
        .into_iter()
        .chain([link_flags()])
        .collect()
}

/// Without a version from its linker kube-apiserver calls itself v0.0.0-master, which clients refuse to compare.
fn link_flags() -> String {
    let mut numbers = KUBERNETES_VERSION.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    let packages = [
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ];
    let settings = [
        ("gitVersion", KUBERNETES_VERSION),
        ("gitMajor", major),
        ("gitMinor", minor),
    ];
    let flags = packages.iter().flat_map(|package| {
        settings.map(|(variable, value)| format!("-X {package}.{variable}={value}"))
    });
    ["-s".to_owned(), "-w".to_owned()]
        .into_iter()
        .chain(flags)
        .collect::<Vec<_>>()
        .join(" ")
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a: the key must be the same in every build of this crate, which the standard hasher does not promise.
fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_modules_are_the_version_we_name() {
        for module in [&CONTROL_PLANE, &KUBE_CONTROLLER_MANAGER] {
            let (_, go_mod) = module.files[0];
            assert!(go_mod.contains(&format!("k8s.io/kubernetes {KUBERNETES_VERSION}\n")));
        }
        let library = KUBERNETES_VERSION.replace("v1.", "v0.");
        for (module, package) in [
            (&LEASE_CANDIDATE, "client-go"),
            (&GO_PEER, "cloud-provider"),
        ] {
            let (_, go_mod) = module.files[0];
            assert!(go_mod.contains(&format!("k8s.io/{package} {library}\n")));
        }
    }

    #[test]
    fn programs_live_in_a_directory_keyed_by_version_and_content() {
        for module in [&CONTROL_PLANE, &LEASE_CANDIDATE, &GO_PEER] {
            let dir = programs_in(Path::new("/cache"), module);
            let name = dir.file_name().unwrap().to_str().unwrap();
            let digest = name
                .strip_prefix("v1.35.4-")
                .expect("the version comes first");
            let parent = Path::new("/cache").join(module.directory);
            assert_eq!(dir.parent(), Some(parent.as_path()));
            assert_eq!(digest.len(), 16, "{digest}");
            let again = programs_in(Path::new("/cache"), module);
            assert_eq!(dir, again, "the key is stable");
        }
    }

    #[test]
    fn the_hash_is_fnv1a() {
        for (text, digest) in [
            ("", FNV_OFFSET),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(FNV_OFFSET, text.as_bytes()), digest, "{text:?}");
        }
    }

    #[test]
    fn both_version_packages_learn_all_three_numbers() {
        let flags = link_flags();
        for package in [
            "k8s.io/component-base/version",
            "k8s.io/client-go/pkg/version",
        ] {
            for setting in ["gitVersion=v1.35.4", "gitMajor=1", "gitMinor=35"] {
                assert!(
                    flags.contains(&format!("-X {package}.{setting}")),
                    "{package} {setting}: {flags}"
                );
            }
        }
    }

    #[test]
    fn the_cache_is_the_first_absolute_path_that_is_set() {
        for (case, vars, expected) in [
            (
                "our own variable wins",
                vec![
                    ("CLOUDKEEL_CACHE", "/c"),
                    ("XDG_CACHE_HOME", "/x"),
                    ("HOME", "/h"),
                ],
                Some("/c"),
            ),
            (
                "then the desktop's",
                vec![("XDG_CACHE_HOME", "/x"), ("HOME", "/h")],
                Some("/x/cloudkeel"),
            ),
            (
                "then the home",
                vec![("HOME", "/h")],
                Some("/h/.cache/cloudkeel"),
            ),
            (
                "a relative path is not a cache",
                vec![("CLOUDKEEL_CACHE", "target/cache"), ("HOME", "/h")],
                Some("/h/.cache/cloudkeel"),
            ),
            (
                "an empty value is not set",
                vec![("CLOUDKEEL_CACHE", ""), ("HOME", "/h")],
                Some("/h/.cache/cloudkeel"),
            ),
            ("nothing at all", vec![], None),
        ] {
            let env = |key: &str| {
                vars.iter()
                    .find(|(name, _)| *name == key)
                    .map(|(_, value)| OsString::from(value))
            };
            assert_eq!(root(&env), expected.map(PathBuf::from), "{case}");
        }
    }
}
