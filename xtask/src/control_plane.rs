//! One etcd and kube-apiserver for all test programs of a run.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use crate::build::{Built, TestProgram};
use crate::machine::{Machine, Requirement};
use crate::workspace::Workspace;

/// What a control plane needs. Without it, the tests that use one are skipped, and no others.
pub(crate) const REQUIREMENT: Requirement = Requirement::AnyOf(&[
    Requirement::Program("go"),
    Requirement::FolderWith {
        variable: "KUBEBUILDER_ASSETS",
        files: &["etcd", "kube-apiserver"],
    },
]);

/// Test programs whose tests tolerate objects of other tests in their cluster, because their own have unique names.
/// Every other program starts a control plane if it needs one, because its managers see all Nodes and Services of
/// a cluster, and its tests look at all that a manager says.
const SHARING: &[&str] = &[
    "crates/controllers service_patches",
    "crates/embedded semantics",
    "crates/manager election",
    "crates/manager serving",
];

/// The variable by which the test kit finds a control plane that runs already.
const VARIABLE: &str = "CLOUDKEEL_CONTROL_PLANE";

/// The program of the test kit that starts a control plane and keeps it until its input ends.
const PROGRAM: &str = "control-plane";

/// A control plane that runs until this value is dropped, or this process ends.
pub(crate) struct ControlPlane {
    program: Child,
    run_dir: String,
}

impl ControlPlane {
    /// Starts one if one of the test programs shares it, building etcd and kube-apiserver with Go if need be.
    /// `None` where it cannot run.
    pub(crate) fn start<'a>(
        workspace: &Workspace,
        built: &Built,
        mut programs: impl Iterator<Item = &'a TestProgram>,
    ) -> Result<Option<Self>> {
        let screen = workspace.screen();
        if !programs.any(|program| SHARING.contains(&&*program.name())) {
            return Ok(None);
        }
        if let Some(missing) = REQUIREMENT.missing(&Machine::this()) {
            screen.line(&format!(
                "tests against a real control plane are skipped: they need {missing}"
            ));
            return Ok(None);
        }
        let path = built
            .programs
            .get(PROGRAM)
            .with_context(|| format!("cargo did not build the program {PROGRAM}"))?;
        screen.line("starting one etcd and kube-apiserver for all test programs");
        let mut program = workspace
            .command(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", path.display()))?;
        let output = program.stdout.take().context("the program has no stdout")?;
        let mut run_dir = String::new();
        BufReader::new(output)
            .read_line(&mut run_dir)
            .context("cannot read the directory of the control plane")?;
        let plane = Self {
            program,
            run_dir: run_dir.trim_end().to_owned(),
        };
        // It has said why on stderr, which is shown.
        (!plane.run_dir.is_empty())
            .then_some(Some(plane))
            .context("the control plane did not start")
    }

    /// Lets a test program find it, if its tests can share it with others.
    pub(crate) fn hand_to(&self, program: &str, command: &mut Command) {
        if SHARING.contains(&program) {
            command.env(VARIABLE, &self.run_dir);
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        // It ends by itself, now that its input has ended; the only failure is that it did before.
        let _ = self.program.wait();
    }
}
