//! Building what goes into the image.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::layout::{Commit, Contents, image};
use crate::outcome::Outcome;
use crate::workspace::{Workspace, output_of};

/// The features of the image: every cloud, and nothing that only laptops and tests need.
pub(crate) const FEATURES: &str = "aws,digitalocean,hetzner,local,openstack,vsphere";

/// Where Debian, Ubuntu and Alpine keep the certificate authorities of the public.
pub(crate) const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Where the archive is written, and the tier looks for it.
const OUTPUT: &str = "target/cloudkeel.oci.tar";

/// What `cargo xtask image` was asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// Which clouds are in it.
    #[arg(long, value_name = "FEATURE,…", default_value = FEATURES)]
    features: String,
    /// A program that is built already, in place of a build.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The certificate authorities that it trusts, as PEM.
    #[arg(long, value_name = "FILE", default_value = AUTHORITIES)]
    ca_certificates: PathBuf,
    /// Where the archive is written.
    #[arg(long, value_name = "FILE", default_value = OUTPUT)]
    output: PathBuf,
}

impl Default for ImageArgs {
    fn default() -> Self {
        Self {
            features: FEATURES.to_owned(),
            program: None,
            ca_certificates: AUTHORITIES.into(),
            output: OUTPUT.into(),
        }
    }
}

/// Writes the image as an OCI archive.
pub(crate) fn write(workspace: &Workspace, args: &ImageArgs) -> Result<Outcome> {
    let commit = commit(workspace)?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => match build(workspace, &args.features, &commit)? {
            Ok(program) => program,
            Err(failed) => return Ok(failed),
        },
    };
    let authorities = read(&args.ca_certificates)?;
    if !authorities.windows(BEGIN.len()).any(|it| it == BEGIN) {
        bail!(
            "{} has no certificate: it should be PEM",
            args.ca_certificates.display()
        );
    }
    let contents = Contents {
        names: names(workspace, &program)?,
        program: read(&program)?,
        authorities,
        architecture: architecture()?.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit,
    };
    let image = image(&contents).map_err(anyhow::Error::msg)?;
    let path = workspace.root().join(&args.output);
    fs::write(&path, &image.archive).with_context(|| format!("cannot write {}", path.display()))?;
    let size = contents.program.len();
    let summary = format!(
        "{}: {} ({size} bytes of program)",
        path.display(),
        image.digest
    );
    workspace.screen().line(&summary);
    Ok(Outcome::passed())
}

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Builds the program, so that its bytes do not depend on where.
fn build(
    workspace: &Workspace,
    features: &str,
    commit: &Commit,
) -> Result<Result<PathBuf, Outcome>> {
    if let Some(reason) = super::missing_target(workspace)? {
        bail!(reason);
    }
    let target = super::target();
    let mut build = workspace.cargo(&[
        "build",
        "--locked",
        "--profile=image",
        "--package=cloudkeel",
    ]);
    build.args(["--no-default-features", "--features", features]);
    build.args(["--target", &target]);
    let folder = workspace.root().join("target/image");
    build.env("CARGO_TARGET_DIR", &folder);
    let home = std::env::var("CARGO_HOME").ok();
    let home = home.or_else(|| Some(format!("{}/.cargo", std::env::var("HOME").ok()?)));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let root = workspace.root().display();
    let remapped = format!("--remap-path-prefix={root}=/src --remap-path-prefix={home}=/cargo");
    build.env("RUSTFLAGS", remapped);
    build.env("CLOUDKEEL_COMMIT", &commit.id);
    build.env(format!("CC_{}", target.replace('-', "_")), "cc");
    let outcome = workspace.check(build)?;
    if outcome.problem.is_some() {
        return Ok(Err(outcome));
    }
    Ok(Ok(folder.join(target).join("image/cloudkeel")))
}

/// The names that the program itself says it answers to: a link for a cloud that is not in it would only fail later.
fn names(workspace: &Workspace, program: &Path) -> Result<Vec<String>> {
    let mut ask = workspace.command(program);
    ask.args(["providers", "--replaces"]);
    let names = output_of(ask).context("the program must run here to be asked for its names")?;
    let names = String::from_utf8(names).context("the names of the program")?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// As OCI calls the architecture of this machine.
fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("{other}: an image is built on x86_64 or aarch64"),
    }
}

/// The commit that is checked out; one with changes says so.
fn commit(workspace: &Workspace) -> Result<Commit> {
    let ask = |arguments: &[&str]| -> Result<String> {
        let mut git = workspace.command("git");
        git.args(arguments).env("TZ", "UTC");
        let answer = String::from_utf8(output_of(git)?).context("git says something else")?;
        Ok(answer.trim().to_owned())
    };
    let dirty = !ask(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    let id = ask(&["rev-parse", "HEAD"])?;
    let seconds = ask(&["log", "-1", "--format=%ct"])?;
    let format = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";
    Ok(Commit {
        id: if dirty { id + "-dirty" } else { id },
        seconds: seconds
            .parse()
            .with_context(|| format!("the time of the commit: {seconds}"))?,
        time: ask(&["log", "-1", format, "--format=%cd"])?,
    })
}
