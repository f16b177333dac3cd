//! The folder for what takes long to build, shared by runs and by clones.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::machine::Machine;

/// `$CLOUDKEEL_CACHE`, else `$XDG_CACHE_HOME/cloudkeel`, else `~/.cache/cloudkeel`.
pub(crate) fn folder(machine: &Machine) -> Result<PathBuf> {
    let inside = |variable: &str, path: &str| {
        machine
            .variable(variable)
            .map(|base| Path::new(base).join(path))
    };
    let chosen = machine
        .variable("CLOUDKEEL_CACHE")
        .map(PathBuf::from)
        .or_else(|| inside("XDG_CACHE_HOME", "cloudkeel"))
        .or_else(|| inside("HOME", ".cache/cloudkeel"))
        .context("no place for the cache: set CLOUDKEEL_CACHE, XDG_CACHE_HOME or HOME")?;
    // Children run in the root of the workspace, so a relative path would mean another place there.
    std::path::absolute(&chosen)
        .with_context(|| format!("cannot make {} an absolute path", chosen.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_variable_names_the_cache() {
        for (case, variables, expected) in [
            (
                "all three",
                vec![
                    ("CLOUDKEEL_CACHE", "/own"),
                    ("XDG_CACHE_HOME", "/xdg"),
                    ("HOME", "/home/me"),
                ],
                "/own",
            ),
            (
                "no own",
                vec![("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/me")],
                "/xdg/cloudkeel",
            ),
            (
                "only home",
                vec![("HOME", "/home/me")],
                "/home/me/.cache/cloudkeel",
            ),
            (
                "own is empty",
                vec![("CLOUDKEEL_CACHE", ""), ("HOME", "/h")],
                "/h/.cache/cloudkeel",
            ),
        ] {
            let folder = folder(&Machine::with(&variables)).unwrap();
            assert_eq!(folder, PathBuf::from(expected), "{case}");
        }
    }

    #[test]
    fn a_relative_cache_becomes_absolute() {
        let folder = folder(&Machine::with(&[("CLOUDKEEL_CACHE", "here")])).unwrap();
        assert!(
            folder.is_absolute() && folder.ends_with("here"),
            "{}",
            folder.display()
        );
    }

    #[test]
    fn without_any_variable_the_error_names_them() {
        let error = folder(&Machine::with(&[])).unwrap_err().to_string();
        assert!(error.contains("CLOUDKEEL_CACHE"), "{error}");
    }
}
