//! What the Dockerfile promises, as far as that can be checked without a container engine.

use std::path::PathBuf;
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
    let chart = crate::permissions::documents(&crate::helm::chart().join("Chart.yaml")).remove(0);
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
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

/// Both ways to build the image build the same program.
#[test]
fn the_dockerfile_builds_what_xtask_builds() {
    let by_xtask = read("xtask/src/image/build.rs");
    let features = instructions()
        .iter()
        .find_map(|line| line.strip_prefix("ARG FEATURES=").map(str::to_owned));
    let features = features.expect("the features of the image");
    assert!(by_xtask.contains(&format!("FEATURES: &str = \"{features}\"")));
    for left_out in ["demo", "emulators", "local-cloud"] {
        assert!(!features.split(',').any(|it| it == left_out), "{left_out}");
    }
    let build = instructions()
        .into_iter()
        .find(|line| line.contains("cargo build "))
        .expect("a build");
    for argument in ["--locked", "--profile=image", "--package=cloudkeel"] {
        assert!(build.contains(argument), "{build}");
        assert!(by_xtask.contains(&format!("\"{argument}\"")), "{argument}");
    }
    assert!(build.contains("--no-default-features"), "{build}");
    for label in ["source", "licenses", "version", "revision"] {
        let label = format!("org.opencontainers.image.{label}");
        let labels = instructions()
            .into_iter()
            .find(|it| it.starts_with("LABEL "));
        assert!(labels.is_some_and(|it| it.contains(&label)), "{label}");
        assert!(
            read("xtask/src/image/layout.rs").contains(&label),
            "{label}"
        );
    }
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program}: {}", text(&output));
    output
}

/// The archive that `cargo xtask image` has just written, as skopeo reads it, and its program where nothing else is.
#[test]
#[ignore = "builds a release for musl: cargo xtask test --tier image"]
fn the_image_is_whole_and_its_program_runs_where_nothing_else_is() {
    let archive = root().join("target/cloudkeel.oci.tar");
    let image = format!("oci-archive:{}", archive.display());
    let config = run("skopeo", &["inspect", "--config", &image]).stdout;
    let config: serde_json::Value = serde_json::from_slice(&config).expect("JSON");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/cloudkeel");
    let labels = &config["config"]["Labels"];
    assert_eq!(
        labels["org.opencontainers.image.version"],
        env!("CARGO_PKG_VERSION")
    );

    let folder = TempDir::new().expect("a temporary folder");
    let copy = folder.path().join("copy");
    let to = format!("dir:{}", copy.display());
    run("skopeo", &["--insecure-policy", "copy", &image, &to]);
    let manifest = std::fs::read(copy.join("manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let layer = manifest["layers"][0]["digest"].as_str().expect("a digest");
    let layer = copy.join(layer.trim_start_matches("sha256:"));
    let scratch = folder.path().join("root");
    std::fs::create_dir(&scratch).expect("a folder");
    let (layer, scratch) = (layer.display().to_string(), scratch.display().to_string());
    run("tar", &["xf", &layer, "-C", &scratch]);

    let binary = format!("{scratch}/cloudkeel");
    let linked = text(&Command::new("ldd").arg(&binary).output().expect("ldd runs"));
    let is_static = ["statically linked", "not a dynamic executable"];
    assert!(is_static.iter().any(|it| linked.contains(it)), "{linked}");
    let size = std::fs::metadata(&binary).expect("the program").len();
    assert!(
        size <= 20_000_000,
        "{size} bytes are more than docs/install.md promises"
    );

    let inside = |arguments: &[&str]| {
        let root = format!("--root={scratch}");
        run(
            "unshare",
            &[&["--map-root-user", &root], arguments].concat(),
        )
    };
    let version = text(&inside(&["/cloudkeel", "--version"]));
    let expected = format!("cloudkeel v{}", env!("CARGO_PKG_VERSION"));
    assert!(version.contains(&expected), "{version}");
    // Each link leads to a cloud that is in the program.
    let names = text(&inside(&["/cloudkeel", "providers", "--replaces"]));
    let mut names: Vec<_> = names.split_whitespace().collect();
    names.sort_unstable();
    let links = std::fs::read_dir(format!("{scratch}/bin")).expect("a folder");
    let mut links: Vec<_> = links
        .map(|link| {
            link.expect("a link")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    links.sort_unstable();
    assert_eq!(links, names);
    for name in names {
        let version = text(&inside(&[&format!("/usr/local/bin/{name}"), "--version"]));
        assert!(version.contains(&expected), "{name}: {version}");
    }
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}
