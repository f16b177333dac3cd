use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::*;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("xtask-stack-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, before + text).unwrap();
}

/// The smallest stack: software that says how often it was installed, a state that says how often it was used.
const TOY: Stack = Stack {
    name: "toy",
    inputs: &["Cargo.toml"],
    cost: "nothing",
    install: |site| {
        append(&site.software().join("version"), "installed\n");
        site.step("checking the shell", shell("true"))
    },
    prepare: Some(|site| {
        append(&site.state().join("data"), "prepared\n");
        Ok(())
    }),
    serve: |site| {
        let data = site.state().join("data");
        let data = data.display();
        shell(&format!(
            "echo used >> {data}; echo TOY_DATA={data}; echo TOY_MODE=a=b; echo; cat > /dev/null; echo ended >> {data}"
        ))
    },
};

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn software_is_installed_once_and_every_run_begins_with_the_same_state() {
    let folder = Folder::new("runs");
    let workspace = Workspace::made_up();
    let site = Site::of(&workspace, &TOY, &folder.0).unwrap();
    for round in 0..2 {
        site.ensure(&TOY).unwrap();
        assert_eq!(
            read(site.state().join("data")),
            "prepared\n",
            "round {round}"
        );
        let running = Running::start(&site, (TOY.serve)(&site)).unwrap();
        let data = site.state().join("data").display().to_string();
        let expected = [("TOY_DATA", &*data), ("TOY_MODE", "a=b")];
        let variables = running
            .variables()
            .iter()
            .map(|(name, value)| (&**name, &**value));
        assert_eq!(variables.collect::<Vec<_>>(), expected);
        running.stop();
        assert_eq!(read(site.state().join("data")), "prepared\nused\nended\n");
    }
    assert_eq!(read(site.software().join("version")), "installed\n");
}

#[test]
fn other_inputs_are_another_version_and_the_old_one_goes() {
    const OTHER: Stack = Stack {
        inputs: &["src/main.rs"],
        ..TOY
    };
    let folder = Folder::new("versions");
    let workspace = Workspace::made_up();
    let [old, new] = [&TOY, &OTHER].map(|stack| Site::of(&workspace, stack, &folder.0).unwrap());
    old.ensure(&TOY).unwrap();
    new.ensure(&OTHER).unwrap();
    assert!(!old.software().exists() && new.software().exists());
}

#[test]
fn an_installation_that_was_broken_off_begins_again() {
    let folder = Folder::new("broken");
    let workspace = Workspace::made_up();
    let site = Site::of(&workspace, &TOY, &folder.0).unwrap();
    let broken = Stack {
        install: |site| {
            append(&site.software().join("version"), "half\n");
            site.step("failing", shell("exit 3"))
        },
        ..TOY
    };
    let error = site.ensure(&broken).unwrap_err().to_string();
    assert!(error.starts_with("failing: "), "{error}");
    site.ensure(&TOY).unwrap();
    assert_eq!(read(site.software().join("version")), "installed\n");
}

#[test]
fn a_stack_that_does_not_get_ready_says_why_and_leaves_nothing_running() {
    let folder = Folder::new("late");
    let workspace = Workspace::made_up();
    let site = Site::of(&workspace, &TOY, &folder.0).unwrap();
    site.ensure(&TOY).unwrap();
    let start = |script: &str| {
        let running = Running::start_within(&site, shell(script), Duration::from_millis(300));
        format!("{:#}", running.err().expect("it does not get ready"))
    };
    let died = start("echo no port >&2; exit 1");
    assert!(
        died.contains("ended before it was ready") && died.contains("no port"),
        "{died}"
    );
    let garbled = start("echo hello; cat");
    assert!(
        garbled.contains("`hello` instead of NAME=value"),
        "{garbled}"
    );
    // The shell waits for its input, and its child for nothing at all.
    let pid = site.state().join("pid");
    let late = start(&format!(
        "sleep 600 & echo $! > {}; cat > /dev/null",
        pid.display()
    ));
    assert!(late.contains("not ready within"), "{late}");
    let child = format!("/proc/{}/cmdline", read(pid).trim());
    let left = fs::read(child).unwrap_or_default();
    assert!(
        !String::from_utf8_lossy(&left).contains("sleep"),
        "{left:?}"
    );
}
