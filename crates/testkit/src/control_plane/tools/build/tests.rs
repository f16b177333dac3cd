use std::sync::Mutex;

use super::*;
use crate::control_plane::run_dir::RunDir;

/// A cache directory and a shell script in the place of Go.
struct Workshop {
    dir: RunDir,
    said: Mutex<Vec<String>>,
}

/// Notes each run, waits a moment and writes the file named after `-o`.
const DILIGENT: &str = r#"
echo run >>"$0.runs"
while [ "$1" != -o ]; do shift; done
sleep 0.2
echo '#!/bin/sh' >"$2"
chmod +x "$2"
"#;

impl Workshop {
    fn with_go(script: &str) -> Self {
        let workshop = Self {
            dir: RunDir::create().unwrap(),
            said: Mutex::default(),
        };
        workshop.replace_go(script);
        workshop
    }

    /// Lets a child write the file: a file that we have open for writing cannot be run, and any other test's
    /// child may inherit it for a moment.
    fn replace_go(&self, script: &str) {
        let status = std::process::Command::new("sh")
            .args([
                "-c",
                r#"printf '#!/bin/sh\n%s' "$1" >"$0" && chmod +x "$0""#,
            ])
            .arg(self.go())
            .arg(script)
            .status();
        assert!(status.unwrap().success());
    }

    fn go(&self) -> PathBuf {
        self.dir.path().join("go")
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.dir.path().join("go.runs")).unwrap_or_default();
        runs.lines().count()
    }

    async fn build(&self) -> Result<Located, ToolError> {
        let (go, into) = (self.go(), self.cache());
        let build = Build {
            tool: Tool::Etcd,
            go: &go,
            into: &into,
            say: &|line| self.said.lock().unwrap().push(line.to_owned()),
        };
        build.run().await
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        fs::remove_dir_all(self.dir.path()).unwrap();
    }
}

#[tokio::test]
async fn those_who_need_the_same_program_wait_for_one_build() {
    let workshop = Workshop::with_go(DILIGENT);
    let (first, second) = tokio::join!(workshop.build(), workshop.build());
    let third = workshop.build().await;
    let path = workshop.cache().join("etcd");
    for outcome in [first, second, third] {
        let located = outcome.unwrap();
        assert_eq!(
            (located.path, located.origin),
            (path.clone(), Origin::Built)
        );
    }
    assert_eq!(workshop.runs(), 1);
    let said = workshop.said.lock().unwrap();
    let beginnings = [
        "building etcd",
        "waiting for another process that builds etcd",
        "built etcd in",
    ];
    assert_eq!(said.len(), beginnings.len(), "{said:?}");
    for (line, beginning) in said.iter().zip(beginnings) {
        assert!(line.starts_with(beginning), "{said:?}");
    }
}

#[tokio::test]
async fn a_build_that_is_cut_short_leaves_no_program_and_no_lock() {
    let workshop = Workshop::with_go(
        "while [ \"$1\" != -o ]; do shift; done; echo half >\"$2\"; exec sleep 600",
    );
    let half = workshop
        .cache()
        .join(format!(".etcd.{}.partial", std::process::id()));
    let half_done = async {
        while !half.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        outcome = workshop.build() => panic!("the build cannot end by itself: {outcome:?}"),
        () = half_done => {}
    }
    assert!(!workshop.cache().join("etcd").exists());
    fs::rename(&half, half.with_file_name(".etcd.1.partial")).unwrap();
    workshop.replace_go(DILIGENT);
    workshop.build().await.unwrap();
    assert!(
        !half.with_file_name(".etcd.1.partial").exists(),
        "the rest of another process's build"
    );
}

#[tokio::test]
async fn a_failed_build_repeats_what_go_said_and_names_the_way_out() {
    let workshop = Workshop::with_go("echo 'go.mod requires go >= 1.25.0' >&2; exit 1");
    let error = workshop.build().await.unwrap_err().to_string();
    for part in [
        "`go build go.etcd.io/etcd/server/v3` failed",
        "go.mod requires go >= 1.25.0",
        "Go 1.25 or newer",
        "set KUBEBUILDER_ASSETS",
    ] {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
    assert!(!workshop.cache().join("etcd").exists());
}

#[tokio::test]
async fn go_is_given_the_pinned_module_and_all_its_flags() {
    let workshop = Workshop::with_go(&format!(
        "echo \"$@\" >\"$0.args\"; pwd >\"$0.pwd\"; {DILIGENT}"
    ));
    workshop.build().await.unwrap();
    let read = |name: &str| fs::read_to_string(workshop.dir.path().join(name)).unwrap();
    let source = PathBuf::from(read("go.pwd").trim());
    for (name, text) in cache::CONTROL_PLANE.files {
        assert_eq!(
            fs::read_to_string(source.join(name)).unwrap(),
            *text,
            "{name}"
        );
    }
    let arguments = read("go.args");
    assert!(
        arguments.starts_with("build -mod=readonly -buildvcs=false -trimpath -ldflags"),
        "{arguments}"
    );
    assert!(
        arguments.trim_end().ends_with("go.etcd.io/etcd/server/v3"),
        "{arguments}"
    );
}
