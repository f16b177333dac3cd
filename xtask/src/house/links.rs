//! Every relative link of a page leads to a file, and every anchor to a heading.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{markdown, tracked_files};
use crate::workspace::Workspace;

/// Every link that leads nowhere.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in tracked_files(workspace, &["*.md"])? {
        let page = fs::read_to_string(workspace.root().join(&path))
            .with_context(|| format!("cannot read {path}"))?;
        pages.insert(path, page);
    }
    let exists = |path: &Path| workspace.root().join(path).exists();
    Ok(dead_links(&pages, exists))
}

fn dead_links(pages: &BTreeMap<String, String>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, page) in pages {
        for (index, line) in markdown::text_in(page).lines().enumerate() {
            for link in links(line) {
                let complaint = complaint(path, link, pages, &exists);
                found.extend(complaint.map(|why| format!("{path}:{}: `{link}`: {why}", index + 1)));
            }
        }
    }
    found
}

/// Why a link of a page leads nowhere.
fn complaint(
    page: &str,
    link: &str,
    pages: &BTreeMap<String, String>,
    exists: impl Fn(&Path) -> bool,
) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        PathBuf::from(page)
    } else {
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        let Some(target) = normalised(&folder.join(file)) else {
            return Some("it leads out of the repository".to_owned());
        };
        target
    };
    if !exists(&target) {
        return Some(format!("there is no {}", target.display()));
    }
    if anchor.is_empty() {
        return None;
    }
    let linked = target.to_str().and_then(|target| pages.get(target));
    let anchors = linked
        .map(|page| markdown::anchors(page))
        .unwrap_or_default();
    let is_there = anchors.iter().any(|known| known == anchor);
    (!is_there).then(|| format!("{} has no heading for #{anchor}", target.display()))
}

/// The path without `.` and `..`; `None` if it leads above the root.
fn normalised(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !parts.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts)
}

/// The relative targets of the links and pictures of a line: `[a](b.md)`, `[a]: b.md`, `src="b.png"`.
fn links(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| {
        let end = rest.find([')', ' '])?;
        Some(rest.split_at(end).0)
    });
    let reference = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split(' ').next());
    let html = ["src=\"", "href=\""]
        .into_iter()
        .flat_map(|attribute| line.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next());
    inline
        .chain(reference)
        .chain(html)
        .filter(|link| !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        let pages: BTreeMap<String, String> = [
            ("README.md", "# Top\n"),
            ("docs/a.md", "# First\n\n## Two words\n"),
            ("docs/b.md", line),
        ]
        .map(|(path, page)| (path.to_owned(), page.to_owned()))
        .into();
        let there = |path: &Path| {
            pages.contains_key(path.to_str().unwrap()) || path == Path::new("docs/images/a.png")
        };
        dead_links(&pages, there)
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        for (case, line, dead) in [
            ("a page", "see [a](a.md)", 0),
            ("a page above", "see [a](../README.md)", 0),
            ("a heading", "see [a](a.md#two-words)", 0),
            ("a heading of its own", "# Here\n[a](#here)", 0),
            ("elsewhere", "see [a](https://example.com/a.md#b)", 0),
            ("a picture", "![a](images/a.png)", 0),
            ("a picture in HTML", "<img src=\"images/a.png\">", 0),
            ("in code", "`[a](none.md)`", 0),
            ("by reference", "[a]: a.md", 0),
            ("no such page", "see [a](none.md) and [b](none.md)", 2),
            ("no such heading", "see [a](a.md#three-words)", 1),
            ("no such heading of its own", "[a](#there)", 1),
            ("no such picture", "<img src=\"images/b.png\">", 1),
            ("no such reference", "[a]: none.md", 1),
            ("out of the repository", "see [a](../../a.md)", 1),
        ] {
            let found = found(line);
            assert_eq!(found.len(), dead, "{case}: {found:?}");
        }
        assert_eq!(
            found("[a](a.md#x)"),
            ["docs/b.md:1: `a.md#x`: docs/a.md has no heading for #x"]
        );
    }
}
