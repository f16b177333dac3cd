//! OpenStack's own services on loopback: Keystone, placement, Glance, Nova with fake hypervisors, Neutron without agents,
//! and Octavia without machines. The programs are in `xtask/stacks/openstack`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Site, Stack};
use crate::machine::Requirement;

const FOLDER: &str = "xtask/stacks/openstack";

/// The one database that all services can use, without its installer.
const DATABASE: [&str; 4] = [
    "libaio1",
    "liburing2",
    "mariadb-server-core",
    "mariadb-client-core",
];

/// What has to be there: the database comes from Debian.
pub(crate) const REQUIRES: &[Requirement] = &[
    Requirement::Program("apt-get"),
    Requirement::Program("dpkg"),
    Requirement::Program("openssl"),
    Requirement::Program("python3"),
];

/// The stack.
pub(crate) const STACK: Stack = Stack {
    name: "openstack",
    inputs: &[
        "xtask/stacks/openstack/lock.txt",
        "xtask/stacks/openstack/configuration.py",
        "xtask/stacks/openstack/seed.py",
        "xtask/stacks/openstack/services.py",
        "xtask/stacks/openstack/stack.py",
    ],
    cost: "about 4 minutes and 700 MB",
    install,
    prepare: Some(|site| {
        site.step(
            "migrating databases and making networks",
            stack(site, "prepare"),
        )
    }),
    serve: |site| stack(site, "serve"),
};

fn install(site: &Site<'_>) -> Result<()> {
    let software = site.software();
    let environment = software.join("venv");
    site.step(
        "making a virtual environment",
        program("python3", &["-m", "venv"], &environment),
    )?;
    let mut packages = Command::new(environment.join("bin/pip"));
    packages
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "-r",
        ])
        .arg(site.workspace().root().join(FOLDER).join("lock.txt"));
    site.step("installing OpenStack from PyPI", packages)?;
    let packages = software.join("packages");
    std::fs::create_dir_all(&packages).context("cannot create the folder of packages")?;
    let mut download = Command::new("apt-get");
    download
        .args(["--quiet", "download"])
        .args(DATABASE)
        .current_dir(&packages);
    site.step("downloading MariaDB", download)?;
    for package in std::fs::read_dir(&packages).context("cannot read the folder of packages")? {
        let package = package
            .context("cannot read the folder of packages")?
            .path();
        let mut unpack = Command::new("dpkg");
        unpack.arg("-x").arg(package).arg(software.join("mariadb"));
        site.step("unpacking MariaDB", unpack)?;
    }
    Ok(())
}

fn program(name: &str, arguments: &[&str], path: &Path) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).arg(path);
    command
}

fn stack(site: &Site<'_>, what: &str) -> Command {
    let folder = site.workspace().root().join(FOLDER);
    let mut command = Command::new(site.software().join("venv/bin/python"));
    command
        .arg(folder.join("stack.py"))
        .arg(what)
        .args([site.software(), site.state()]);
    // Without compiled files, everything takes twice as long.
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    command
}
