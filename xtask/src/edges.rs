//! Checks that the crates of the workspace depend on each other only as designed.

mod graph;
mod resolution;
mod rules;

use anyhow::Result;

use crate::metadata::{Kind, Metadata, Package};
use crate::outcome::Outcome;
use crate::workspace::Workspace;
pub(crate) use rules::matches;
use rules::{RULES, Rule};

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let metadata = Metadata::read(workspace)?;
    let mut violations = violations(&metadata, RULES);
    violations.extend(resolution::findings(workspace)?);
    for violation in &violations {
        workspace.screen().line(violation);
    }
    Ok(match violations.len() {
        0 => {
            let crates = metadata.members().count();
            workspace
                .screen()
                .line(&format!("{crates} crates depend on each other as designed"));
            Outcome::passed()
        }
        1 => Outcome::failed("1 crate edge is not as designed".to_owned()),
        several => Outcome::failed(format!("{several} crate edges are not as designed")),
    })
}

/// Every edge that breaks a rule, in words, with the manifest to change.
fn violations(metadata: &Metadata, rules: &[Rule]) -> Vec<String> {
    metadata
        .members()
        .flat_map(|member| violations_of(member, metadata, rules))
        .collect()
}

fn violations_of(member: &Package, metadata: &Metadata, rules: &[Rule]) -> Vec<String> {
    let place = metadata.place(member);
    let Some(rule) = rules.iter().find(|rule| matches(rule.place, place)) else {
        return vec![format!(
            "{place}/Cargo.toml: no rule says what the crate `{}` may depend on; add a row for \
             \"{place}\" to RULES in xtask/src/edges/rules.rs",
            member.name,
        )];
    };
    let mut found = forbidden_uses(member, place, rule, metadata);
    found.extend(rule.never_builds.iter().filter_map(|&name| {
        let chain = graph::path_to(metadata, &member.id, name)?;
        Some(format!(
            "{place}/Cargo.toml: `{}` must not build `{name}`: {chain}",
            member.name
        ))
    }));
    found
}

fn forbidden_uses(member: &Package, place: &str, rule: &Rule, metadata: &Metadata) -> Vec<String> {
    let ours = member.dependencies.iter().filter_map(|dependency| {
        let path = dependency.path.as_ref()?;
        let target = metadata
            .members()
            .find(|m| m.manifest_path.parent() == Some(path))?;
        // A crate may name itself, to switch on its own features for its tests.
        (target.id != member.id).then_some((dependency.kind, target))
    });
    ours.filter(|(kind, target)| !rule.allows(*kind, metadata.place(target)))
        .map(|(kind, target)| {
            format!(
                "{place}/Cargo.toml: `{}` may not have the {} `{}` ({}); {}",
                member.name,
                in_words(kind),
                target.name,
                metadata.place(target),
                rule.allowed_in_words(),
            )
        })
        .collect()
}

fn in_words(kind: Option<Kind>) -> &'static str {
    match kind {
        None => "dependency",
        Some(Kind::Dev) => "dev-dependency",
        Some(Kind::Build) => "build-dependency",
    }
}

#[cfg(test)]
mod tests;
