//! The workspace under test: where it is, and how commands run in it.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::build::Artifact;
use crate::cache;
use crate::count::Unit;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::screen::{Palette, Screen};
use crate::session::Session;
use crate::test_log::{TestLog, Tests};

pub(crate) struct Workspace {
    root: PathBuf,
    cache: PathBuf,
    cargo: OsString,
    environment: Vec<(&'static str, OsString)>,
    /// Variables that no command inherits.
    removed: Vec<OsString>,
    screen: Screen,
    session: Session,
}

/// `cargo run` sets these for xtask, about xtask. A build script that watches one of them (ring's does)
/// would see it change whenever xtask and a plain cargo take turns, and half of the dependencies would
/// build again.
const ABOUT_XTASK: &[&str] = &["CARGO_MANIFEST_", "CARGO_PKG_"];

/// Makes cargo say in JSON what it built, and people still read its diagnostics.
const MESSAGES: &str = "--message-format=json-render-diagnostics";

impl Workspace {
    pub(crate) fn open(machine: &Machine, screen: Screen) -> Result<Self> {
        let cargo = machine
            .variable("CARGO")
            .cloned()
            .unwrap_or_else(|| "cargo".into());
        let cache = cache::folder(machine)?;
        let environment = environment(machine, &cache, screen.palette());
        let removed = machine.variables_like(ABOUT_XTASK);
        Ok(Self {
            root: root(&cargo)?,
            cache,
            cargo,
            environment,
            removed,
            screen,
            session: Session::new(machine),
        })
    }

    /// The same workspace with another session.
    pub(crate) fn with(self, session: Session) -> Self {
        Self { session, ..self }
    }

    /// A workspace with nothing in it, whose output goes nowhere.
    #[cfg(test)]
    pub(crate) fn made_up() -> Self {
        Self {
            root: here(),
            cache: "/nowhere".into(),
            cargo: "cargo".into(),
            environment: vec![("GREETING", "hello".into())],
            removed: vec!["CARGO_PKG_NAME".into()],
            screen: Screen::new(Box::new(io::sink()), Palette::Plain),
            session: Session::default(),
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

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The path of cargo itself.
    pub(crate) fn cargo_program(&self) -> &OsStr {
        &self.cargo
    }

    /// Sets a variable for every command from now on, in place of one that is there.
    pub(crate) fn set(&mut self, name: &'static str, value: OsString) {
        self.environment.retain(|(present, _)| *present != name);
        self.environment.push((name, value));
    }

    /// A cargo command that builds, and reports what in a way that [`Self::build`] reads.
    pub(crate) fn cargo_building(&self, subcommand: &str) -> Command {
        self.cargo(&[subcommand, MESSAGES])
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
        for name in &self.removed {
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
        let Streamed { problem, .. } = self.stream(&mut command)?;
        Ok(problem.map_or_else(Outcome::passed, Outcome::failed))
    }

    /// Runs a `cargo test` and counts its tests.
    pub(crate) fn tests(&self, unit: Unit, mut command: Command) -> Result<Outcome> {
        let Streamed { problem, tests, .. } = self.stream(&mut command)?;
        Ok(Outcome::of_tests(unit, problem, tests))
    }

    /// Runs a command of [`Self::cargo_building`]. Returns what went wrong, if anything, and what is built.
    pub(crate) fn build(&self, mut command: Command) -> Result<(Option<String>, Vec<Artifact>)> {
        let streamed = self.stream(&mut command)?;
        Ok((streamed.problem, streamed.artifacts))
    }

    /// Runs a command in full view.
    fn stream(&self, command: &mut Command) -> Result<Streamed> {
        let name = in_words(command);
        self.screen.line(&format!("$ {name}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run `{name}`"))?;
        let output = child.stdout.take().context("the child has no stdout")?;
        let (tests, messages) = tee(BufReader::new(output), |bytes| self.screen.bytes(bytes))
            .with_context(|| format!("cannot read what `{name}` prints"))?;
        let status = child
            .wait()
            .with_context(|| format!("cannot wait for `{name}`"))?;
        let problem = (!status.success()).then(|| format!("`{name}` ended with {status}"));
        let artifacts = self.session.take_note_of(&messages)?;
        Ok(Streamed {
            problem,
            tests,
            artifacts,
        })
    }
}

/// What came of a command that ran in full view.
struct Streamed {
    /// What went wrong with it, if anything.
    problem: Option<String>,
    tests: Tests,
    artifacts: Vec<Artifact>,
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

/// Hands every line on as it comes and counts the tests in it. Messages of cargo in JSON are kept instead.
fn tee(mut output: impl BufRead, mut show: impl FnMut(&[u8])) -> io::Result<(Tests, Vec<String>)> {
    let mut log = TestLog::default();
    let mut messages = Vec::new();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        if text.starts_with("{\"reason\":") {
            messages.push(text.into_owned());
        } else {
            show(&line);
            log.read(&text);
        }
        line.clear();
    }
    Ok((log.finish(), messages))
}

/// The variables of every command, beyond those of the caller, whose own values win.
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
    if machine.is_ci() {
        all.push(("CARGO_TARGET_DIR", cache.join("target").into_os_string()));
        // What rustc keeps to build a crate again in parts is good for one folder only, grows to tens of
        // gigabytes, and takes a third more work to write.
        all.push(("CARGO_INCREMENTAL", "0".into()));
    }
    all.retain(|(name, _)| machine.variable(name).is_none());
    // Tests find the cache by the same variables; an absolute path leaves them no other choice.
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

/// A command as typed in a shell: `cargo test --test '*'`.
fn in_words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args().filter(|argument| *argument != MESSAGES))
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
