//! The part of `cargo metadata` that the checks read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::workspace::{Workspace, output_of};

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) workspace_root: PathBuf,
    /// Where cargo puts what it builds.
    #[serde(default)]
    pub(crate) target_directory: PathBuf,
    pub(crate) resolve: Resolve,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// A dependency as the manifest declares it, optional or not, for any platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Dependency {
    /// A normal dependency has no kind.
    pub(crate) kind: Option<Kind>,
    /// The folder of a dependency in this repository.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Dev,
    Build,
}

/// The graph of what is really built, over all packages.
#[derive(Debug, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<NodeDep>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NodeDep {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<DepKind>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DepKind {
    pub(crate) kind: Option<Kind>,
}

impl Metadata {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let command = workspace.cargo(&["metadata", "--format-version", "1", "--all-features"]);
        let json = output_of(command)?;
        serde_json::from_slice(&json).context("cannot read the output of `cargo metadata`")
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The folder of a member, relative to the root: `crates/api`.
    pub(crate) fn place<'a>(&self, member: &'a Package) -> &'a str {
        let folder = member.manifest_path.parent().unwrap_or(Path::new(""));
        folder
            .strip_prefix(&self.workspace_root)
            .unwrap_or(folder)
            .to_str()
            .unwrap_or_default()
    }
}

/// A made-up member of the workspace `/repo`.
#[cfg(test)]
pub(crate) fn package(name: &str, place: &str) -> Package {
    Package {
        id: name.to_owned(),
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        manifest_path: Path::new("/repo").join(place).join("Cargo.toml"),
        dependencies: Vec::new(),
        features: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_prints_is_read() {
        let metadata: Metadata = serde_json::from_value(serde_json::json!({
            "packages": [
                {
                    "id": "path+file:///repo/crates/api#cloudkeel-api@0.1.0", "name": "cloudkeel-api",
                    "version": "0.1.0",
                    "manifest_path": "/repo/crates/api/Cargo.toml", "features": {"x": []},
                    "dependencies": [
                        {"name": "serde", "kind": null},
                        {"name": "kit", "kind": "dev", "path": "/repo/crates/kit"},
                    ],
                },
                {
                    "id": "registry+index#serde@1.0.0", "name": "serde", "version": "1.0.0",
                    "manifest_path": "/registry/serde/Cargo.toml", "features": {}, "dependencies": [],
                },
            ],
            "workspace_members": ["path+file:///repo/crates/api#cloudkeel-api@0.1.0"],
            "workspace_root": "/repo",
            "resolve": {"nodes": [{"id": "a", "deps": [{"pkg": "b", "dep_kinds": [
                {"kind": null, "target": null}, {"kind": "build", "target": null},
            ]}]}]},
        }))
        .unwrap();

        let members: Vec<&Package> = metadata.members().collect();
        assert_eq!(members.len(), 1);
        assert_eq!(metadata.place(members[0]), "crates/api");
        assert_eq!(members[0].dependencies[1].kind, Some(Kind::Dev));
        assert_eq!(
            metadata.resolve.nodes[0].deps[0].dep_kinds[1].kind,
            Some(Kind::Build)
        );
    }
}
