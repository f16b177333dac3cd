//! The decision where a program comes from, as a function of the environment.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Located, Origin, Tool, ToolError, cache};

/// The variable that names a directory with ready-made programs, as other Kubernetes test suites use it.
pub(super) const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// What the search depends on.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    assets: Option<PathBuf>,
    path: Vec<PathBuf>,
    cache: Option<PathBuf>,
}

impl Surroundings {
    pub(super) fn of_this_process() -> Self {
        Self::from_env(&|key: &str| std::env::var_os(key))
    }

    fn from_env(env: &impl Fn(&str) -> Option<OsString>) -> Self {
        Self {
            // Servers run in a directory of their own, where a relative path would lead elsewhere.
            assets: env(ASSETS).and_then(|dir| std::path::absolute(dir).ok()),
            path: env("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect()),
            cache: cache::root(env),
        }
    }
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The program itself.
    Program(Located),
    /// Go, and the directory to build the program into.
    Buildable {
        /// The `go` command.
        go: PathBuf,
        /// The directory for the built program.
        into: PathBuf,
    },
}

/// Searches `KUBEBUILDER_ASSETS`, then on `PATH`, then in the cache, and last for Go to build with.
pub(super) fn find(tool: Tool, surroundings: &Surroundings) -> Result<Found, ToolError> {
    let program = |path, origin| Ok(Found::Program(Located { path, origin }));
    if let Some(path) = program_in(surroundings.assets.iter(), tool.name()) {
        return program(path, Origin::Assets);
    }
    if let Some(path) = program_in(surroundings.path.iter(), tool.name()) {
        return program(path, Origin::Path);
    }
    let built_into = surroundings.cache.as_deref();
    let built_into = built_into.map(|root| cache::programs_in(root, tool.module()));
    if let Some(path) = program_in(built_into.iter(), tool.name()) {
        return program(path, Origin::Built);
    }
    let Some(go) = program_in(surroundings.path.iter(), "go") else {
        let assets = surroundings.assets.clone();
        return Err(ToolError::Missing { tool, assets });
    };
    let into = built_into.ok_or(ToolError::NoCache { tool })?;
    Ok(Found::Buildable { go, into })
}

fn program_in<'a>(mut dirs: impl Iterator<Item = &'a PathBuf>, name: &str) -> Option<PathBuf> {
    dirs.find_map(|dir| {
        let path = dir.join(name);
        is_executable(&path).then_some(path)
    })
}

/// A directory or a file without the execute bit is not a program.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::run_dir::RunDir;

    /// A directory tree with programs at the given paths.
    struct Tree(RunDir);

    impl Tree {
        fn with(programs: &[&str]) -> Self {
            let tree = Self(RunDir::create().unwrap());
            for program in programs {
                tree.file(program, 0o755);
            }
            tree
        }

        fn file(&self, name: &str, mode: u32) {
            let path = self.dir(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }

        fn dir(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn built(&self) -> PathBuf {
            cache::programs_in(&self.dir("cache"), &cache::CONTROL_PLANE)
        }

        /// A machine with the three directories, whatever is in them.
        fn surroundings(&self) -> Surroundings {
            Surroundings {
                assets: Some(self.dir("assets")),
                path: vec![self.dir("bin"), self.dir("go-bin")],
                cache: Some(self.dir("cache")),
            }
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            std::fs::remove_dir_all(self.0.path()).unwrap();
        }
    }

    #[test]
    fn the_first_place_that_has_the_program_wins() {
        let built = cache::programs_in(Path::new("cache"), &cache::CONTROL_PLANE).join("etcd");
        let built = built.to_str().unwrap();
        for (case, programs, expected) in [
            (
                "all places",
                vec!["assets/etcd", "bin/etcd", built, "go-bin/go"],
                ("assets/etcd", Origin::Assets),
            ),
            (
                "no assets",
                vec!["bin/etcd", built, "go-bin/go"],
                ("bin/etcd", Origin::Path),
            ),
            (
                "only the cache",
                vec![built, "go-bin/go"],
                (built, Origin::Built),
            ),
            ("a cache needs no Go", vec![built], (built, Origin::Built)),
            (
                "assets with another program",
                vec!["assets/kube-apiserver", "bin/etcd"],
                ("bin/etcd", Origin::Path),
            ),
        ] {
            let tree = Tree::with(&programs);
            let (path, origin) = expected;
            let path = tree.dir(path);
            let found = find(Tool::Etcd, &tree.surroundings()).unwrap();
            assert_eq!(found, Found::Program(Located { path, origin }), "{case}");
        }
    }

    #[test]
    fn with_nothing_but_go_the_program_is_to_be_built() {
        let tree = Tree::with(&["go-bin/go"]);
        let found = find(Tool::KubeApiserver, &tree.surroundings()).unwrap();
        let (go, into) = (tree.dir("go-bin/go"), tree.built());
        assert_eq!(found, Found::Buildable { go, into });
    }

    #[test]
    fn a_file_that_cannot_run_is_not_the_program() {
        let tree = Tree::with(&["go-bin/go", "bin/etcd/inside-a-directory-called-etcd"]);
        tree.file("assets/etcd", 0o644);
        let found = find(Tool::Etcd, &tree.surroundings()).unwrap();
        assert!(matches!(found, Found::Buildable { .. }), "{found:?}");
    }

    #[test]
    fn without_assets_and_go_the_error_names_both_remedies() {
        let tree = Tree::with(&[]);
        let error = find(Tool::KubeApiserver, &tree.surroundings())
            .unwrap_err()
            .to_string();
        for part in [
            "kube-apiserver was not found",
            tree.dir("assets").to_str().unwrap(),
            "set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver",
            "install Go 1.25 or newer",
        ] {
            assert!(error.contains(part), "{part:?} is missing in: {error}");
        }
        let unset = find(Tool::Etcd, &Surroundings::default())
            .unwrap_err()
            .to_string();
        assert!(unset.contains("KUBEBUILDER_ASSETS (not set)"), "{unset}");
    }

    #[test]
    fn without_a_cache_directory_the_error_names_the_variables() {
        let tree = Tree::with(&["go-bin/go"]);
        let homeless = Surroundings {
            cache: None,
            ..tree.surroundings()
        };
        let error = find(Tool::Etcd, &homeless).unwrap_err().to_string();
        assert!(
            error.contains("set CLOUDKEEL_CACHE, XDG_CACHE_HOME or HOME"),
            "{error}"
        );
    }

    #[test]
    fn the_environment_is_read_by_its_usual_names() {
        let vars = [
            (ASSETS, "/assets"),
            ("PATH", "/usr/bin:/bin"),
            ("CLOUDKEEL_CACHE", "/cache"),
        ];
        let env = |key: &str| {
            vars.iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value.into())
        };
        let read = Surroundings::from_env(&env);
        assert_eq!(read.assets, Some(PathBuf::from("/assets")));
        assert_eq!(
            read.path,
            [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]
        );
        assert_eq!(read.cache, Some(PathBuf::from("/cache")));

        let empty = Surroundings::from_env(&|key: &str| (key == ASSETS).then(OsString::new));
        assert_eq!(empty.assets, None, "an empty variable is not set");
        let relative = Surroundings::from_env(&|key: &str| (key == ASSETS).then(|| "bin".into()));
        assert_eq!(
            relative.assets,
            Some(std::env::current_dir().unwrap().join("bin"))
        );
    }
}
