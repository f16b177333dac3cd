//! Which crate may depend on which: the one place to change when a crate is added.

use crate::metadata::Kind;

/// What the crates at one place may depend on. A place is a folder, or `folder/*` for all in it.
pub(crate) struct Rule {
    pub(crate) place: &'static str,
    /// Crates of ours it may build with.
    pub(crate) uses: &'static [&'static str],
    /// Crates of ours that its tests may use beyond that.
    pub(crate) tests_use: &'static [&'static str],
    /// Crates that its build must never contain, however deep.
    pub(crate) never_builds: &'static [&'static str],
}

/// The contract is for everyone, so it forces neither a Kubernetes client nor an HTTP stack on anyone.
const CLIENTS: &[&str] = &["axum", "hyper", "k8s-openapi", "kube", "reqwest", "tonic"];

/// A cloud sees domain values, never Kubernetes objects.
const KUBERNETES: &[&str] = &["k8s-openapi", "kube"];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        place: "crates/api",
        uses: &[],
        tests_use: &[],
        never_builds: CLIENTS,
    },
    Rule {
        place: "crates/http",
        uses: &["crates/api"],
        tests_use: &[],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "crates/toolkit",
        uses: &["crates/api", "crates/http"],
        tests_use: &[],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "crates/controllers",
        uses: &["crates/api"],
        tests_use: &["crates/embedded", "crates/testkit"],
        never_builds: &[],
    },
    Rule {
        place: "crates/diagnose",
        // It decides as the controllers do, by their own functions.
        uses: &["crates/api", "crates/controllers"],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "crates/manager",
        // Clients of the API server connect as those of clouds do: the same proxies, by the same rules.
        uses: &[
            "crates/api",
            "crates/controllers",
            "crates/diagnose",
            "crates/http",
            "crates/page",
        ],
        tests_use: &["crates/embedded", "crates/testkit"],
        never_builds: &[],
    },
    Rule {
        place: "crates/page",
        uses: &[],
        tests_use: &[],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "crates/embedded",
        uses: &["crates/api"],
        // The same cases run on the real control plane.
        tests_use: &["crates/testkit"],
        never_builds: &[],
    },
    Rule {
        place: "crates/demo",
        // The managers are processes of their own: it knows them only by their flags and endpoints.
        uses: &[
            "crates/api",
            "crates/embedded",
            "crates/local-cloud",
            "crates/page",
            // Those that `cloudkeel emulate` brings along anyway.
            "emulators/*",
            "providers/local",
        ],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "crates/emulation",
        // Clients of an emulated cloud use the shared HTTP client.
        uses: &["crates/api", "crates/http"],
        tests_use: &[],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "emulators/*",
        uses: &["crates/api", "crates/emulation", "crates/http"],
        // The cloud's own client program is built as the control plane is.
        tests_use: &["crates/testkit"],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "crates/local-cloud",
        // The cloud is reached by the one client that speaks its API.
        uses: &[
            "crates/api",
            "crates/emulation",
            "crates/http",
            "providers/local",
        ],
        tests_use: &["crates/testkit"],
        never_builds: &[],
    },
    Rule {
        place: "crates/testkit",
        // The simulated cloud is the local cloud without its proxies.
        uses: &[
            "crates/api",
            "crates/embedded",
            "crates/emulation",
            "crates/http",
            "crates/local-cloud",
            "providers/local",
        ],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "crates/simulation",
        uses: &[
            "crates/api",
            "crates/controllers",
            "crates/embedded",
            "crates/http",
            "crates/manager",
            "crates/testkit",
            "providers/local",
        ],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "crates/fuzz",
        uses: &[
            "crates/api",
            "crates/controllers",
            "crates/embedded",
            "crates/http",
            "crates/local-cloud",
            "crates/manager",
            "crates/page",
            "emulators/*",
            "providers/*",
        ],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "providers/*",
        uses: &["crates/api", "crates/http", "crates/toolkit"],
        tests_use: &["crates/testkit", "emulators/*"],
        never_builds: KUBERNETES,
    },
    Rule {
        // The client library of the simulated cloud, which speaks the local provider's words.
        place: "examples/sdk",
        uses: &[
            "crates/api",
            "crates/http",
            "crates/toolkit",
            "providers/local",
        ],
        tests_use: &[],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "examples/provider",
        uses: &[
            "crates/api",
            "crates/http",
            "crates/toolkit",
            "examples/sdk",
        ],
        tests_use: &["crates/testkit"],
        never_builds: KUBERNETES,
    },
    Rule {
        place: "crates/cloudkeel",
        uses: &[
            "crates/api",
            "crates/controllers",
            "crates/demo",
            "crates/embedded",
            "crates/http",
            "crates/local-cloud",
            "crates/manager",
            "crates/page",
            "emulators/*",
            "providers/*",
        ],
        tests_use: &["crates/diagnose", "crates/e2e", "crates/testkit"],
        never_builds: &[],
    },
    // It knows a cluster by what users see of it, so that it checks any manager.
    Rule {
        place: "crates/e2e",
        uses: &[],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "bench/*",
        uses: &["bench/arena", "crates/testkit", "emulators/*"],
        tests_use: &[],
        never_builds: &[],
    },
    Rule {
        place: "xtask",
        uses: &[],
        tests_use: &[],
        never_builds: &["tokio"],
    },
];

impl Rule {
    /// Whether a crate of this rule may have a dependency of this kind on the crate at `target`.
    pub(crate) fn allows(&self, kind: Option<Kind>, target: &str) -> bool {
        let among = |places: &[&str]| places.iter().any(|place| matches(place, target));
        among(self.uses) || (kind == Some(Kind::Dev) && among(self.tests_use))
    }

    /// `allowed: crates/api; in tests also crates/testkit`
    pub(crate) fn allowed_in_words(&self) -> String {
        let uses = if self.uses.is_empty() {
            "none of ours".to_owned()
        } else {
            self.uses.join(", ")
        };
        if self.tests_use.is_empty() {
            format!("allowed: {uses}")
        } else {
            format!(
                "allowed: {uses}; in tests also {}",
                self.tests_use.join(", ")
            )
        }
    }
}

/// Whether a folder is the place, or one directly inside it if the place ends in `/*`.
pub(crate) fn matches(place: &str, folder: &str) -> bool {
    match place.strip_suffix("/*") {
        None => place == folder,
        Some(parent) => folder
            .rsplit_once('/')
            .is_some_and(|(above, _)| above == parent),
    }
}
