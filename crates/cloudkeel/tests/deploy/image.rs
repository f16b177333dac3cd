//! What the Dockerfile promises, as far as that can be checked without a container engine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{harness, workload};

fn root() -> PathBuf {
    harness::package().join("../..")
}

fn read(file: &str) -> String {
    let path = root().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The instructions of the Dockerfile, each on one line, without comments.
fn instructions() -> Vec<String> {
    let text = read("Dockerfile");
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    joined
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

/// What is sent to the builder: everything that `.dockerignore` does not leave out.
fn context() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let ignored = read(".dockerignore");
    let mut lines = ignored.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(
        lines.next(),
        Some("*"),
        "nothing is sent unless it is named"
    );
    for line in lines {
        let Some(entry) = line.strip_prefix('!') else {
            assert_eq!(line, "**/target", "this test knows nothing else");
            continue;
        };
        let copied = Command::new("cp")
            .arg("-r")
            .arg(root().join(entry))
            .arg(folder.path())
            .status();
        assert!(copied.expect("cp runs").success(), "{entry}");
    }
    folder
}

#[test]
fn the_image_is_made_from_scratch_for_a_user_without_rights() {
    let instructions = instructions();
    let stages: Vec<_> = instructions
        .iter()
        .filter(|line| line.starts_with("FROM "))
        .collect();
    assert_eq!(
        stages[1..],
        ["FROM scratch AS bare", "FROM bare"],
        "of the first stage nothing stays but what is copied"
    );
    let user = workload::pod(workload::FILES[0])["spec"]["securityContext"]["runAsUser"].clone();
    for expected in [
        format!("USER {user}:{user}"),
        "ENTRYPOINT [\"/cloudkeel\"]".to_owned(),
        "COPY --from=build /image /".to_owned(),
    ] {
        assert!(instructions.contains(&expected), "{expected}");
    }
}

#[test]
fn versions_are_the_same_everywhere() {
    let toolchain = read("rust-toolchain.toml");
    let built_with = instructions()
        .iter()
        .find_map(|line| line.strip_prefix("ARG RUST_VERSION=").map(str::to_owned));
    let channel = format!("channel = \"{}\"", built_with.expect("a version"));
    assert!(toolchain.contains(&channel), "{channel}: {toolchain}");
    for file in workload::FILES {
        let image = &workload::pod(file)["spec"]["containers"][0]["image"];
        let expected = format!("cloudkeel:{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(*image, expected, "{file}");
    }
}

/// The builder gets every file that the workspace is made of.
#[test]
fn what_is_sent_to_the_builder_is_a_whole_workspace() {
    let context = context();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(context.path())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", text(&output));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(
        packages
            .iter()
            .any(|package| package["name"] == "cloudkeel")
    );
    assert!(!context.path().join("target").exists());
}

/// The names under which the image has the program, by the Dockerfile's own commands with this program.
fn links() -> Vec<String> {
    let instructions = instructions();
    let linking = instructions
        .iter()
        .find(|line| line.contains("for name in "));
    let linking = linking.expect("an instruction that makes links");
    let commands = linking.split(" && ");
    let commands: Vec<_> = commands
        .skip_while(|it| !it.starts_with("mkdir "))
        .collect();
    let folder = TempDir::new().expect("a temporary folder");
    let image = folder.path().join("image");
    std::fs::create_dir(&image).expect("a folder");
    let program = env!("CARGO_BIN_EXE_cloudkeel");
    std::os::unix::fs::symlink(program, image.join("cloudkeel")).expect("a link");
    let script = commands.join(" && ");
    let script = script.replace("/image/", &format!("{}/", image.display()));
    let run = Command::new("sh").args(["-ec", &script]).output();
    let run = run.expect("sh runs");
    assert!(run.status.success(), "{script}: {}", text(&run));
    let entries = std::fs::read_dir(image.join("bin")).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[test]
fn the_image_has_the_names_of_the_go_binaries_that_are_replaced_and_no_others() {
    let output = Command::new(env!("CARGO_BIN_EXE_cloudkeel"))
        .args(["providers", "--output", "json"])
        .output()
        .expect("the program runs");
    let providers: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let providers = providers.as_array().expect("a list");
    let mut replaced: Vec<_> = providers
        .iter()
        .flat_map(|provider| provider["replaces"].as_array().expect("a list of names"))
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    replaced.sort();
    assert_eq!(links(), replaced);
    #[cfg(feature = "hetzner")]
    assert!(replaced.contains(&"hcloud-cloud-controller-manager".to_owned()));
}

/// The very command of the Dockerfile, on the very files that the builder gets.
#[test]
#[ignore = "builds a release for musl: cargo xtask test --tier image"]
fn the_binary_is_static_and_runs_where_nothing_else_is() {
    let context = context();
    let build = instructions()
        .into_iter()
        .find_map(|line| {
            Some(line.strip_prefix("RUN ")?.to_owned()).filter(|it| it.starts_with("cargo build"))
        })
        .expect("a build");
    // What was compiled for this target before is used again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = target.parent().expect("the target folder");
    let built = Command::new("sh")
        .args(["-ec", &build])
        .current_dir(context.path())
        .env("CARGO_TARGET_DIR", target)
        .env("CC_x86_64_unknown_linux_musl", "cc")
        .env("CC_aarch64_unknown_linux_musl", "cc")
        .status();
    assert!(built.expect("sh runs").success(), "{build}");
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let binary = target.join(triple).join("release/cloudkeel");

    let linked = text(&Command::new("ldd").arg(&binary).output().expect("ldd runs"));
    let is_static = ["statically linked", "not a dynamic executable"];
    assert!(is_static.iter().any(|it| linked.contains(it)), "{linked}");

    let scratch = TempDir::new().expect("a temporary folder");
    std::fs::copy(&binary, scratch.path().join("cloudkeel")).expect("the binary is copied");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--root"])
        .arg(scratch.path())
        .args(["/cloudkeel", "--version"])
        .output()
        .expect("unshare runs");
    let expected = format!("cloudkeel v{}", env!("CARGO_PKG_VERSION"));
    assert!(text(&output).contains(&expected), "{}", text(&output));
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}
