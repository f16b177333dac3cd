//! Which test runs which command.

use std::collections::BTreeSet;

use crate::commands::commands;
use crate::shell::workspace;
use crate::{installing, managers, programs};

/// A command, and the test that runs it.
struct Proof {
    command: &'static str,
    file: &'static str,
    test: &'static str,
}

const PROGRAMS: &str = "crates/cloudkeel/tests/readme/programs.rs";
const INSTALLING: &str = "crates/cloudkeel/tests/readme/installing.rs";
const MANAGERS: &str = "crates/cloudkeel/tests/readme/managers.rs";

/// All commands of the README. One that is not here has no place there.
const PROOFS: [Proof; 12] = [
    Proof {
        command: programs::DEMO,
        file: PROGRAMS,
        test: "the_demo_says_where_it_is_answers_there_and_ends_by_ctrl_c",
    },
    Proof {
        command: programs::WHOLE_DEMO,
        file: "crates/cloudkeel/tests/demo/scenario.rs",
        test: "every_step_passes_and_no_request_is_lost_while_nodes_roll_and_leaders_die",
    },
    Proof {
        command: programs::HETZNER_DEMO,
        file: PROGRAMS,
        test: "the_demo_does_the_same_on_the_emulated_hetzner_cloud",
    },
    Proof {
        command: programs::PROVIDERS,
        file: PROGRAMS,
        test: "providers_are_listed_and_one_is_shown_with_its_keys",
    },
    Proof {
        command: programs::PROVIDER,
        file: PROGRAMS,
        test: "providers_are_listed_and_one_is_shown_with_its_keys",
    },
    Proof {
        command: programs::TEST,
        file: PROGRAMS,
        test: "the_checks_of_the_repository_run_by_one_command",
    },
    Proof {
        command: programs::CHECK,
        file: PROGRAMS,
        test: "the_checks_of_the_repository_run_by_one_command",
    },
    Proof {
        command: programs::EMULATE,
        file: PROGRAMS,
        test: "an_emulator_says_how_to_reach_it_and_answers",
    },
    Proof {
        command: managers::WITH_CLOUDS,
        file: MANAGERS,
        test: "a_manager_with_a_file_of_clouds_initialises_nodes",
    },
    Proof {
        command: managers::LOCAL,
        file: MANAGERS,
        test: "a_manager_with_the_local_cloud_starts_it_and_leaves_it_to_be_stopped",
    },
    Proof {
        command: managers::STOP,
        file: MANAGERS,
        test: "a_manager_with_the_local_cloud_starts_it_and_leaves_it_to_be_stopped",
    },
    // What is left out depends on the CCM; each one's chart says it.
    Proof {
        command: "cloudkeel --cloud-provider=… --cloud-config=… --leader-elect …",
        file: "crates/cloudkeel/tests/swap/charts.rs",
        test: "every_chart_works_as_it_is",
    },
];

/// A page of which every command is run by a test, or says why not.
struct Page {
    file: &'static str,
    proofs: &'static [Proof],
    /// Commands that no test runs, and why.
    not_run: &'static [(&'static str, &'static str)],
}

const INSTALLED: &str = "the_chart_is_installed_upgraded_and_rolled_back";
const APPLIED: &str = "the_manifests_are_applied_beside_a_secret";
const DESCRIBED: &str = "the_program_describes_itself";
const COMPLETED: &str = "completions_are_put_where_shells_read_them";
const PLAN: &str = "crates/cloudkeel/tests/manager/plan.rs";
const ORPHANS: &str = "crates/cloudkeel/tests/manager/plan_orphans.rs";

const fn proof(command: &'static str, file: &'static str, test: &'static str) -> Proof {
    Proof {
        command,
        file,
        test,
    }
}

const PAGES: [Page; 6] = [
    Page {
        file: "docs/install.md",
        proofs: &[
            proof(installing::INSTALL, INSTALLING, INSTALLED),
            proof(installing::STATIC_POD, INSTALLING, INSTALLED),
            proof(installing::SECRET, INSTALLING, APPLIED),
            proof(installing::APPLY, INSTALLING, APPLIED),
            proof(installing::VERSION, INSTALLING, DESCRIBED),
            proof(installing::VERSION_AS_JSON, INSTALLING, DESCRIBED),
            proof("cloudkeel completion bash", INSTALLING, COMPLETED),
            proof(installing::IN_BASH, INSTALLING, COMPLETED),
            proof(installing::FOR_ZSH, INSTALLING, COMPLETED),
            proof(installing::FOR_FISH, INSTALLING, COMPLETED),
            PLANNED,
            // The tier writes the image first, and runs this test on it.
            proof(
                "cargo xtask image",
                "crates/cloudkeel/tests/deploy/image.rs",
                IMAGE,
            ),
            proof(
                "cargo xtask test --tier image",
                "crates/cloudkeel/tests/deploy/image.rs",
                IMAGE,
            ),
        ],
        not_run: &[
            (
                "cargo xtask image --features hetzner",
                "a build of many minutes",
            ),
            (
                "docker build -t registry.example/cloudkeel:0.1.0 .",
                "needs a container engine",
            ),
            (
                "docker build --build-arg FEATURES=hetzner",
                "needs a container engine",
            ),
        ],
    },
    Page {
        file: "docs/plan.md",
        proofs: &[
            PLANNED,
            proof(
                "cloudkeel plan --orphans",
                ORPHANS,
                "orphans_are_listed_and_removed_only_when_confirmed",
            ),
            proof(
                "cloudkeel plan --teardown",
                ORPHANS,
                "a_teardown_removes_what_is_this_clusters_and_nothing_else",
            ),
            proof(installing::CLUSTER_UID, INSTALLING, APPLIED),
        ],
        not_run: &[],
    },
    Page {
        file: "docs/migrate.md",
        proofs: &[
            PLANNED,
            proof(installing::REPLACED, INSTALLING, DESCRIBED),
            proof(
                "cloudkeel --cloud-provider=hcloud",
                "crates/cloudkeel/tests/swap/charts.rs",
                "every_chart_works_as_it_is",
            ),
        ],
        not_run: &[(
            "helm upgrade hccm hcloud/hcloud-cloud-controller-manager --namespace kube-system --reuse-values \
             --set image.repository=<registry>/cloudkeel --set image.tag=<version>",
            "needs the chart of the vendor",
        )],
    },
    Page {
        file: "docs/upgrade.md",
        proofs: &[
            proof(installing::UPGRADE, INSTALLING, INSTALLED),
            proof(installing::ROLLED_OUT, INSTALLING, INSTALLED),
            proof(installing::ROLL_BACK, INSTALLING, INSTALLED),
            proof(installing::APPLY, INSTALLING, APPLIED),
            proof(installing::HELP, INSTALLING, DESCRIBED),
        ],
        not_run: &[],
    },
    // No commands. One that is added needs a test.
    Page {
        file: "docs/leader-migration.md",
        proofs: &[],
        not_run: &[],
    },
    Page {
        file: "docs/several-clouds.md",
        proofs: &[],
        not_run: &[],
    },
];

const IMAGE: &str = "the_image_is_whole_and_its_program_runs_where_nothing_else_is";
const PLANNED: Proof = proof(
    "cloudkeel plan",
    PLAN,
    "a_plan_shows_what_would_be_done_and_changes_nothing",
);

#[test]
fn every_command_of_these_pages_is_run_by_a_test_or_says_why_not() {
    for page in PAGES {
        let text = std::fs::read_to_string(workspace().join(page.file)).expect("a page");
        let text = text.replace("\\\n", " ");
        let words = |command: &str| command.split_whitespace().collect::<Vec<_>>().join(" ");
        let written: BTreeSet<_> = commands(&text).iter().map(|it| words(it)).collect();
        let proofs = page.proofs.iter().map(|it| it.command);
        let not_run = page.not_run.iter().map(|(command, _)| *command);
        let listed: BTreeSet<_> = proofs.chain(not_run).map(str::to_owned).collect();
        assert_eq!(
            written, listed,
            "the commands of {} are on the left, those of list.rs on the right",
            page.file
        );
    }
}

#[test]
fn every_command_of_the_readme_is_run_by_a_test() {
    let page = std::fs::read_to_string(workspace().join("README.md")).expect("a README");
    let written = commands(&page);
    let listed: BTreeSet<_> = PROOFS.iter().map(|it| it.command.to_owned()).collect();
    assert_eq!(
        written, listed,
        "the commands of README.md are on the left, those with a test in list.rs on the right"
    );
}

#[test]
fn the_readme_says_at_its_top_how_mature_this_version_is() {
    let page = std::fs::read_to_string(workspace().join("README.md")).expect("a README");
    let (top, _) = page.split_once("\n## ").expect("a first section");
    let (version, _) = env!("CARGO_PKG_VERSION").rsplit_once('.').expect("x.y.z");
    for said in [
        format!("**Version {version}"),
        "never run against a real cloud account".to_owned(),
    ] {
        assert!(top.contains(&said), "{said:?} is missing at the top");
    }
}

#[test]
fn the_tests_that_run_them_exist() {
    for Proof {
        command,
        file,
        test,
    } in PROOFS.iter().chain(PAGES.iter().flat_map(|it| it.proofs))
    {
        let path = workspace().join(file);
        let code = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
        let lines: Vec<_> = code.lines().collect();
        let is_test = lines.windows(2).any(|pair| {
            matches!(pair, [attribute, function]
                if (attribute.ends_with("test]") || attribute.starts_with("#[ignore = ")) && function.contains(&format!("fn {test}(")))
        });
        assert!(is_test, "{command}: no test {test} in {file}");
    }
}
