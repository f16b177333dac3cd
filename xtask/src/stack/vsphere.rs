//! vCenters: the simulator of govmomi, in a program of our own.

use std::process::Command;

use super::Stack;

/// The folder of the program.
const SOURCE: &str = "xtask/stacks/vsphere";

pub(crate) const STACK: Stack = Stack {
    name: "vsphere",
    inputs: &[
        "xtask/stacks/vsphere/certificate.go",
        "xtask/stacks/vsphere/go.mod",
        "xtask/stacks/vsphere/go.sum",
        "xtask/stacks/vsphere/machines.go",
        "xtask/stacks/vsphere/main.go",
        "xtask/stacks/vsphere/vcenter.go",
    ],
    cost: "about a minute and 50 MB",
    install: |site| {
        let mut build = Command::new("go");
        build
            .args(["build", "-trimpath", "-buildvcs=false", "-o"])
            .arg(site.software().join("vcsim"))
            .arg(".")
            .current_dir(site.workspace().root().join(SOURCE))
            // The same static program on every machine, with or without a C compiler or a surrounding workspace.
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env_remove("GOFLAGS");
        site.step("building the simulator of vCenters with Go", build)
    },
    prepare: None,
    serve: |site| Command::new(site.software().join("vcsim")),
};
