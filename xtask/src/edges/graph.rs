//! Ways through the graph of what is built.

use std::collections::{BTreeMap, VecDeque};

use crate::metadata::{Metadata, NodeDep};

/// The shortest chain of normal dependencies from a package to one of the given name, in words:
/// `cloudkeel-api → helper → reqwest`. `None` if the package does not build it.
pub(crate) fn path_to(metadata: &Metadata, from: &str, name: &str) -> Option<String> {
    let names: BTreeMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|p| (p.id.as_str(), p.name.as_str()))
        .collect();
    let uses: BTreeMap<&str, &[NodeDep]> = metadata
        .resolve
        .nodes
        .iter()
        .map(|n| (n.id.as_str(), n.deps.as_slice()))
        .collect();

    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(id) = queue.pop_front() {
        if id != from && names.get(id) == Some(&name) {
            return Some(in_words(id, &came_from, &names));
        }
        for dependency in uses.get(id).copied().unwrap_or_default() {
            let next = dependency.pkg.as_str();
            if is_normal(dependency) && next != from && !came_from.contains_key(next) {
                came_from.insert(next, id);
                queue.push_back(next);
            }
        }
    }
    None
}

fn is_normal(dependency: &NodeDep) -> bool {
    dependency.dep_kinds.iter().any(|dep| dep.kind.is_none())
}

fn in_words(end: &str, came_from: &BTreeMap<&str, &str>, names: &BTreeMap<&str, &str>) -> String {
    let name = |id| names.get(id).copied().unwrap_or(id);
    let mut words = name(end).to_owned();
    let mut here = end;
    while let Some(&before) = came_from.get(here) {
        words = format!("{} → {words}", name(before));
        here = before;
    }
    words
}
