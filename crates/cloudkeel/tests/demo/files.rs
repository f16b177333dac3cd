//! What the demo writes is for its user alone.

use std::fs::symlink_metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::process::{Demo, control_plane_assets};

/// Everything in a folder, the folder too, that others may read, write or enter.
fn open_to_others(path: &Path) -> Vec<(PathBuf, String)> {
    let Ok(metadata) = symlink_metadata(path) else {
        // It went while this looked.
        return Vec::new();
    };
    let mode = metadata.permissions().mode() & 0o777;
    let mut open = Vec::new();
    if mode & 0o077 != 0 {
        open.push((path.to_owned(), format!("{mode:o}")));
    }
    if metadata.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        open.extend(entries.flat_map(|entry| open_to_others(&entry.path())));
    }
    open
}

#[tokio::test]
async fn nothing_in_the_folder_is_open_to_other_users_whatever_the_umask() {
    let assets = control_plane_assets().await;
    for control_plane in ["embedded", "real"] {
        let words = ["--scenario", "none", "--control-plane", control_plane];
        let demo = Demo::start_without_umask(&words, |command| {
            command.env("KUBEBUILDER_ASSETS", &assets);
        });
        let folder = demo.folder();
        for file in ["kubeconfig", "clouds.yaml", "manager-a.log"] {
            assert!(folder.join(file).is_file(), "{control_plane}: {file}");
        }
        assert_eq!(open_to_others(&folder), [], "{control_plane}");
    }
}
