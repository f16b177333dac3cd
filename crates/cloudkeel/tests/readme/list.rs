//! Which test runs which command.

use std::collections::BTreeSet;

use crate::commands::commands;
use crate::shell::workspace;
use crate::{managers, programs};

/// A command, and the test that runs it.
struct Proof {
    command: &'static str,
    file: &'static str,
    test: &'static str,
}

const PROGRAMS: &str = "crates/cloudkeel/tests/readme/programs.rs";
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
    } in &PROOFS
    {
        let path = workspace().join(file);
        let code = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
        let lines: Vec<_> = code.lines().collect();
        let is_test = lines.windows(2).any(|pair| {
            matches!(pair, [attribute, function]
                if attribute.ends_with("test]") && function.contains(&format!("fn {test}(")))
        });
        assert!(is_test, "{command}: no test {test} in {file}");
    }
}
