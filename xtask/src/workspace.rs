//! The workspace under test: where it is, how its commands run, and what they are told.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::cache;
use crate::count::{Count, TestLog};
use crate::machine::Machine;
use crate::screen::{Palette, Screen};

pub(crate) struct Workspace {
    root: PathBuf,
    cache: PathBuf,
    cargo: OsString,
    environment: Vec<(&'static str, OsString)>,
    forgotten: Vec<OsString>,
    screen: Screen,
}

/// `cargo run` tells these to xtask about xtask. Passed on to another cargo they would be news to
/// build scripts that watch them (ring's does), and half of the dependencies would build again
/// whenever xtask and a plain cargo take turns.
const ABOUT_XTASK: &[&str] = &["CARGO_MANIFEST_", "CARGO_PKG_"];

/// What a tier found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) count: Count,
    /// Why it failed; `None` when it passed.
    pub(crate) problem: Option<String>,
    /// Why it could not run after all.
    pub(crate) skipped: Option<String>,
}

impl Outcome {
    pub(crate) fn passed() -> Self {
        Self {
            count: Count::ONE_PASSED,
            ..Self::default()
        }
    }

    pub(crate) fn failed(problem: String) -> Self {
        Self {
            count: Count::ONE_FAILED,
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// Something is missing that only showed when the tier began.
    pub(crate) fn skipped(reason: String) -> Self {
        Self {
            skipped: Some(reason),
            ..Self::default()
        }
    }

    /// Both outcomes as one; the first problem is the one worth reading.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            problem: self.problem.or(other.problem),
            skipped: self.skipped.or(other.skipped),
        }
    }
}

impl Workspace {
    pub(crate) fn open(machine: &Machine, screen: Screen) -> Result<Self> {
        let cargo = machine
            .variable("CARGO")
            .cloned()
            .unwrap_or_else(|| "cargo".into());
        let cache = cache::folder(machine)?;
        let environment = environment(machine, &cache, screen.palette());
        let forgotten = machine.variables_like(ABOUT_XTASK);
        Ok(Self {
            root: root(&cargo)?,
            cache,
            cargo,
            environment,
            forgotten,
            screen,
        })
    }

    /// A workspace with nothing in it, whose screen nobody sees.
    #[cfg(test)]
    pub(crate) fn made_up() -> Self {
        Self {
            root: here(),
            cache: "/nowhere".into(),
            cargo: "cargo".into(),
            environment: vec![("GREETING", "hello".into())],
            forgotten: vec!["CARGO_PKG_NAME".into()],
            screen: Screen::new(Box::new(io::sink()), Palette::Plain),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.cargo);
        command.args(arguments);
        command
    }

    /// A command that runs in the root of the workspace, with the environment of the checks.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        for name in &self.forgotten {
            command.env_remove(name);
        }
        command.envs(
            self.environment
                .iter()
                .map(|(name, value)| (*name, value.as_os_str())),
        );
        command
    }

    /// Runs a command that counts as one check: it succeeds or it does not.
    pub(crate) fn check(&self, mut command: Command) -> Result<Outcome> {
        let (problem, _) = self.stream(&mut command)?;
        Ok(problem.map_or_else(Outcome::passed, Outcome::failed))
    }

    /// Runs a `cargo test` and counts its tests.
    pub(crate) fn tests(&self, mut command: Command) -> Result<Outcome> {
        let (problem, count) = self.stream(&mut command)?;
        Ok(judge(problem, count))
    }

    /// Runs a command in full view. Says what went wrong with it, if anything, and what tests it ran.
    fn stream(&self, command: &mut Command) -> Result<(Option<String>, Count)> {
        let name = in_words(command);
        self.screen.line(&format!("$ {name}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run `{name}`"))?;
        let output = child.stdout.take().context("the child has no stdout")?;
        let count = tee(BufReader::new(output), |bytes| self.screen.bytes(bytes))
            .with_context(|| format!("cannot read what `{name}` prints"))?;
        let status = child
            .wait()
            .with_context(|| format!("cannot wait for `{name}`"))?;
        let problem = (!status.success()).then(|| format!("`{name}` ended with {status}"));
        Ok((problem, count))
    }
}

/// Runs a command for what it prints on stdout; fails if it fails.
pub(crate) fn output_of(mut command: Command) -> Result<Vec<u8>> {
    let name = in_words(&command);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command
        .output()
        .with_context(|| format!("cannot run `{name}`"))?;
    if !output.status.success() {
        bail!("`{name}` ended with {}", output.status);
    }
    Ok(output.stdout)
}

/// Hands every line on as it comes and counts the tests in it.
fn tee(mut output: impl BufRead, mut show: impl FnMut(&[u8])) -> io::Result<Count> {
    let mut log = TestLog::default();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        show(&line);
        log.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(log.finish())
}

/// A test run failed if its command says so, if a test did, or if it tested nothing.
fn judge(problem: Option<String>, mut count: Count) -> Outcome {
    let problem = match (problem, count) {
        (_, Count { failed: 1, .. }) => Some("1 test failed".to_owned()),
        (_, Count { failed: 2.., .. }) => Some(format!("{} tests failed", count.failed)),
        (Some(problem), _) => Some(problem),
        (None, _) if !count.ran_any() => Some("ran no test".to_owned()),
        (None, _) => None,
    };
    // What broke without a failing test (a compile error, say) must still show in the numbers.
    if problem.is_some() && count.failed == 0 {
        count.failed = 1;
    }
    Outcome {
        count,
        problem,
        skipped: None,
    }
}

/// What every command is told beyond the environment of the caller, whose own choices win.
fn environment(machine: &Machine, cache: &Path, palette: Palette) -> Vec<(&'static str, OsString)> {
    let colour = if palette == Palette::Colours {
        "always"
    } else {
        "never"
    };
    let mut all = vec![
        ("CARGO_TERM_COLOR", OsString::from(colour)),
        ("RUST_BACKTRACE", OsString::from("1")),
    ];
    // A CI machine builds a fresh clone each time, so `target/` would always be cold. Its cache
    // outlives the clone; a developer's own `target/` is warm already and stays where cargo puts it.
    if machine.variable("CI").is_some_and(|value| value == "true") {
        all.push(("CARGO_TARGET_DIR", cache.join("target").into_os_string()));
        // What rustc keeps to build a crate again in parts is good for one folder only, grows to tens of
        // gigabytes, and takes a third more work to write.
        all.push(("CARGO_INCREMENTAL", "0".into()));
    }
    all.retain(|(name, _)| machine.variable(name).is_none());
    // Tests look for the cache by the same variables; told outright, they cannot find another one.
    all.push(("CLOUDKEEL_CACHE", cache.as_os_str().to_owned()));
    all
}

/// The folder of this crate. Read when a test runs: a target folder that several clones share keeps what
/// was compiled in another one.
#[cfg(test)]
pub(crate) fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from)
}

fn root(cargo: &OsStr) -> Result<PathBuf> {
    let mut locate = Command::new(cargo);
    locate.args(["locate-project", "--workspace", "--message-format", "plain"]);
    let manifest = output_of(locate).context("run this inside the repository")?;
    let manifest = String::from_utf8(manifest).context("the path of the workspace")?;
    let root = Path::new(manifest.trim_end())
        .parent()
        .context("the workspace has no folder")?;
    Ok(root.to_owned())
}

/// A command as a person would type it: `cargo test --test '*'`.
fn in_words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(as_typed)
        .collect::<Vec<_>>()
        .join(" ")
}

fn as_typed(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if word.bytes().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{word}'")
    }
}

#[cfg(test)]
mod tests;
