//! moto: EC2, both load balancing APIs, STS and IAM in one Python process, with the patches of `xtask/stacks/aws`.

use std::process::Command;

use anyhow::Result;

use super::{Site, Stack};
use crate::machine::Requirement;

/// What it needs that is not installed.
pub(crate) const REQUIRES: &[Requirement] = &[Requirement::Program("python3")];

const FOLDER: &str = "xtask/stacks/aws";

/// The Go CCM that cloudkeel replaces, run beside it on request.
const GO_CCM: &str = "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager@v1.37.0";

/// The stand-in for AWS.
pub(crate) const STACK: Stack = Stack {
    name: "aws",
    inputs: &["xtask/stacks/aws/requirements.txt"],
    cost: "about 30 seconds and 150 MB",
    install,
    prepare: None,
    serve,
};

/// The same, with the Go CCM.
pub(crate) const WITH_GO_CCM: Stack = Stack {
    name: "go-ccm-aws",
    // This file says which Go CCM.
    inputs: &[
        "xtask/stacks/aws/requirements.txt",
        "xtask/src/stack/aws.rs",
    ],
    cost: "about 10 minutes and 300 MB, to build the Go CCM",
    install: |site| {
        install(site)?;
        let mut build = Command::new("go");
        build
            .args(["install", "-trimpath", "-buildvcs=false"])
            .args(["-ldflags=-s -w", GO_CCM])
            .env("GOBIN", site.software())
            .env("GOWORK", "off")
            .env_remove("GOFLAGS");
        site.step("building the Go CCM", build)
    },
    serve: |site| {
        let mut serve = serve(site);
        let program = site.software().join("aws-cloud-controller-manager");
        serve.env("GO_AWS_CCM", program);
        serve
    },
    ..STACK
};

/// What it needs besides.
pub(crate) const GO_CCM_REQUIRES: &[Requirement] = &[
    Requirement::Program("python3"),
    Requirement::Program("go"),
    Requirement::Program("unshare"),
];

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
