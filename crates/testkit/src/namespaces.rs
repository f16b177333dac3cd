//! Tests in namespaces of their own. They need root, which is known only when they run, so each is a
//! program with a `main` of its own that tells like every test whether it passed or was ignored, and why.
//!
//! Such a program has several roles, given by [`ROLE`]: unset for the program that starts it, `inside` for
//! the test itself, and the name of a node for a node.

use std::net::IpAddr;
use std::process::{Child, Command, ExitCode, Output, Stdio};

/// The variable that tells the program which part it plays.
pub const ROLE: &str = "CLOUDKEEL_NAMESPACE_ROLE";

/// A test that is a program.
#[derive(Debug, Clone, Copy)]
pub struct Alone {
    /// The name under which it is listed and chosen.
    pub name: &'static str,
    /// What it has to itself, as flags of `unshare`.
    pub unshared: &'static [&'static str],
    /// Programs that it cannot do without, each with a flag by which it does nothing.
    pub needs: &'static [(&'static str, &'static str)],
}

impl Alone {
    /// Runs the test if it is meant and possible, and tells how it ended in the words of every other test.
    pub async fn run(&self, passes: impl Future<Output = bool>) -> ExitCode {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let name = self.name;
        if words.iter().any(|word| word == "--list") {
            println!("{name}: test");
            return ExitCode::SUCCESS;
        }
        if !self.is_meant_by(&words) {
            println!("\nrunning 0 tests\n");
            return end(0, 0, 0);
        }
        println!("\nrunning 1 test");
        if let Err(why) = self.possible() {
            println!("test {name} ... ignored, {why}\n");
            return end(0, 0, 1);
        }
        if passes.await {
            println!("test {name} ... ok\n");
            return end(1, 0, 0);
        }
        println!("test {name} ... FAILED\n");
        end(0, 1, 0)
    }

    fn is_meant_by(&self, words: &[String]) -> bool {
        let filter = words.iter().find(|word| !word.starts_with('-'));
        let is_named = filter.is_none_or(|filter| self.name.contains(filter.as_str()));
        is_named && !words.iter().any(|word| word == "--ignored")
    }

    fn possible(&self) -> Result<(), String> {
        let unshared = [self.unshared, &["true"]].concat();
        let needs = self
            .needs
            .iter()
            .map(|(program, flag)| (*program, vec![*flag]));
        for (program, arguments) in std::iter::once(("unshare", unshared)).chain(needs) {
            let output = Command::new(program).args(arguments).output();
            let output = output.map_err(|error| format!("needs `{program}`: {error}"))?;
            if !output.status.success() {
                let why = said(&output);
                return Err(format!("needs root and namespaces: {program}: {why}"));
            }
        }
        Ok(())
    }

    /// This program in namespaces of its own, in the part of the test.
    pub fn inside(&self) -> Result<Command, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("unshare");
        command
            .args(self.unshared)
            .arg("--")
            .arg(program)
            .env(ROLE, "inside");
        Ok(command)
    }
}

fn end(passed: u8, failed: u8, ignored: u8) -> ExitCode {
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         0 filtered out; finished in 0.00s\n"
    );
    ExitCode::from(failed)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// What `ip` of iproute2 answers to this line. On failure: what it says about it.
pub fn ip(line: &str) -> Result<String, String> {
    let output = Command::new("ip").args(line.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if !output.status.success() {
        return Err(format!("ip {line}: {}", said(&output)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Mounts a folder over `/run`, so that the names of namespaces, which are files there, go with the test.
pub fn hide_names() -> Result<(), String> {
    let mount = ["-t", "tmpfs", "tmpfs", "/run"];
    let output = Command::new("mount").args(mount).output();
    let output = output.map_err(|error| format!("mount: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("mount: {}", said(&output)))
}

/// A node: a namespace with a cable to ours, and this program in it, in the part of the node. It runs
/// until this is dropped.
#[derive(Debug)]
pub struct NodeProcess {
    /// Its name, which is that of its namespace.
    pub name: String,
    /// The number that is in its name, its addresses and the name of its cable, such as `v1`.
    pub number: u8,
    child: Child,
}

impl NodeProcess {
    /// Starts it, with an address of the node and one of a Pod.
    pub fn start(number: u8) -> Result<Self, String> {
        let name = format!("node-{number}");
        for line in [
            format!("netns add {name}"),
            format!("link add v{number} type veth peer name eth0 netns {name}"),
            format!("addr add 10.9.{number}.1/24 dev v{number}"),
            format!("link set v{number} up"),
            format!("-n {name} addr add 10.9.{number}.2/24 dev eth0"),
            format!("-n {name} link set eth0 up"),
            format!("-n {name} link set lo up"),
            format!("-n {name} addr add 10.244.{number}.5/32 dev lo"),
        ] {
            ip(&line)?;
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new("ip")
            .args(["netns", "exec", &name])
            .arg(program)
            .env(ROLE, &name)
            .stdin(Stdio::null())
            .spawn();
        Ok(Self {
            child: child.map_err(|error| format!("{name}: {error}"))?,
            name,
            number,
        })
    }

    /// Its address.
    pub fn address(&self) -> IpAddr {
        [10, 9, self.number, 2].into()
    }

    /// The network of its Pods.
    pub fn pods(&self) -> String {
        format!("10.244.{}.0/24", self.number)
    }

    /// The address of its Pod.
    pub fn pod(&self) -> IpAddr {
        [10, 244, self.number, 5].into()
    }

    /// Pulls the cable out, or puts it in again.
    pub fn plug(&self, is_in: bool) -> Result<(), String> {
        let state = if is_in { "up" } else { "down" };
        ip(&format!("-n {} link set eth0 {state}", self.name)).map(drop)
    }

    /// Ends the program in it. The namespace stays.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
