//! moto: EC2, both load balancing APIs, STS and IAM in one Python process, with the patches of `xtask/stacks/aws`.

use std::process::Command;

use anyhow::Result;

use super::{Site, Stack};
use crate::machine::Requirement;

/// What it needs that is not installed.
pub(crate) const REQUIRES: &[Requirement] = &[Requirement::Program("python3")];

const FOLDER: &str = "xtask/stacks/aws";

/// The stand-in for AWS.
pub(crate) const STACK: Stack = Stack {
    name: "aws",
    inputs: &["xtask/stacks/aws/requirements.txt"],
    cost: "about 30 seconds and 150 MB",
    install,
    prepare: None,
    serve,
};

fn install(site: &Site<'_>) -> Result<()> {
    let environment = site.software().join("venv");
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&environment);
    site.step("creating a Python environment", create)?;
    let mut install = Command::new(environment.join("bin/pip"));
    let list = site
        .workspace()
        .root()
        .join(FOLDER)
        .join("requirements.txt");
    install
        .args(["install", "--quiet", "--requirement"])
        .arg(list);
    site.step("installing moto", install)
}

/// Its scripts are read from the checkout, so that a change of them needs no installation.
fn serve(site: &Site<'_>) -> Command {
    let mut serve = Command::new(site.software().join("venv/bin/python"));
    let script = site.workspace().root().join(FOLDER).join("serve.py");
    serve.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    serve
}
