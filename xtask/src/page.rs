//! The tier that clicks through the live page in a browser.

use anyhow::Result;

use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::programs;
use crate::workspace::{Workspace, output_of};

/// What Debian and Ubuntu call the browser and its driver.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let has_driver = || Machine::this().has_program("chromedriver");
    if !has_driver() {
        install(workspace);
    }
    if !has_driver() {
        let packages = PACKAGES.join(" ");
        let reason = format!("needs `chromedriver` on PATH: `apt-get install {packages}`");
        return Ok(Outcome::skipped(reason));
    }
    programs::ignored(workspace, "page")
}

/// Installs the browser where that is allowed. Where it is not, the tier says what is missing.
fn install(workspace: &Workspace) {
    if !Machine::this().has_program("apt-get") || !is_root(workspace) {
        return;
    }
    let screen = workspace.screen();
    screen.line("chromedriver is not on PATH: trying apt-get");
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    for arguments in [
        &["update", "--quiet"][..],
        &[&install[..], &PACKAGES].concat(),
    ] {
        let mut apt = workspace.command("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if let Err(error) = workspace.check(apt) {
            screen.line(&format!("{error:#}"));
        }
    }
}

fn is_root(workspace: &Workspace) -> bool {
    let mut ask = workspace.command("id");
    ask.arg("-u");
    output_of(ask).is_ok_and(|answer| answer.trim_ascii() == b"0")
}
