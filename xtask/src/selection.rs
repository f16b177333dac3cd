//! Which tiers run: the command's, narrowed by `--tier` and `--skip`.

use anyhow::{Result, bail};

use crate::tier::{ON_REQUEST, Tier};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Check,
    Test,
}

impl Scope {
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Test => "test",
        }
    }

    fn includes(self, tier: &Tier) -> bool {
        self == Self::Test || tier.in_check
    }
}

/// What the caller typed.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) only: Vec<String>,
    pub(crate) without: Vec<String>,
}

impl Selection {
    pub(crate) fn is_empty(&self) -> bool {
        self.only.is_empty() && self.without.is_empty()
    }
}

pub(crate) struct Chosen<'a> {
    pub(crate) tier: &'a Tier,
    /// Left out by `--skip`; still reported, so that the summary is honest.
    pub(crate) left_out: bool,
}

/// The tiers to run, in the order of the table.
pub(crate) fn select<'a>(
    tiers: &'a [Tier],
    scope: Scope,
    selection: &Selection,
) -> Result<Vec<Chosen<'a>>> {
    for name in selection.only.iter().chain(&selection.without) {
        let tier = find(tiers, name)?;
        if !scope.includes(tier) {
            bail!("tier `{name}` is no part of `check`: use `cargo xtask test --tier {name}`");
        }
    }
    let is_in = |names: &[String], tier: &Tier| names.iter().any(|name| name == tier.name);
    Ok(tiers
        .iter()
        .filter(|tier| scope.includes(tier))
        .filter(|tier| {
            let by_itself = selection.only.is_empty() && !ON_REQUEST.contains(&tier.name);
            by_itself || is_in(&selection.only, tier)
        })
        .map(|tier| Chosen {
            tier,
            left_out: is_in(&selection.without, tier),
        })
        .collect())
}

/// What a run without selection leaves to another command.
pub(crate) fn elsewhere(tiers: &[Tier], scope: Scope, selection: &Selection) -> Vec<String> {
    if !selection.only.is_empty() {
        return Vec::new();
    }
    let is_on_request = |tier: &&Tier| ON_REQUEST.contains(&tier.name);
    let (on_request, usual): (Vec<&Tier>, Vec<&Tier>) = tiers
        .iter()
        .filter(|tier| is_on_request(tier) || !scope.includes(tier))
        .partition(is_on_request);
    let names: Vec<&str> = usual.iter().map(|tier| tier.name).collect();
    let usual =
        (!names.is_empty()).then(|| format!("`cargo xtask test` also runs {}", names.join(", ")));
    let on_request = on_request.iter().map(|tier| {
        let name = tier.name;
        format!("`cargo xtask test --tier {name}` runs {name}, which nothing else does")
    });
    usual.into_iter().chain(on_request).collect()
}

fn find<'a>(tiers: &'a [Tier], name: &str) -> Result<&'a Tier> {
    if let Some(tier) = tiers.iter().find(|tier| tier.name == name) {
        return Ok(tier);
    }
    let names: Vec<&str> = tiers.iter().map(|tier| tier.name).collect();
    let hint =
        nearest(&names, name).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    bail!(
        "there is no tier `{name}`{hint} (tiers: {})",
        names.join(", ")
    )
}

/// The most similar name, unless even that one has little in common with what was typed.
fn nearest<'a>(names: &[&'a str], typed: &str) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(name, typed);
    let near = names.iter().copied().min_by_key(|name| distance(name))?;
    (distance(near) <= near.len().max(typed.len()) / 2).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::TIERS;

    fn names(scope: Scope, only: &[&str], without: &[&str]) -> Result<Vec<String>> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let selection = Selection {
            only: owned(only),
            without: owned(without),
        };
        Ok(select(TIERS, scope, &selection)?
            .iter()
            .map(|chosen| {
                format!(
                    "{}{}",
                    if chosen.left_out { "-" } else { "" },
                    chosen.tier.name
                )
            })
            .collect())
    }

    #[test]
    fn without_a_selection_test_runs_all_but_what_is_on_request_and_check_its_half() {
        let all = names(Scope::Test, &[], &[]).unwrap();
        assert_eq!(all.len(), TIERS.len() - ON_REQUEST.len());
        assert!(!all.contains(&"image".to_owned()));
        assert_eq!(names(Scope::Test, &["image"], &[]).unwrap(), ["image"]);
        let check = names(Scope::Check, &[], &[]).unwrap();
        assert!(check.contains(&"unit".to_owned()) && !check.contains(&"integration".to_owned()));
    }

    #[test]
    fn what_a_run_leaves_out_is_named_with_the_command_for_it() {
        let left_out = |scope, selection: &Selection| elsewhere(TIERS, scope, selection);
        let only =
            |tier| format!("`cargo xtask test --tier {tier}` runs {tier}, which nothing else does");
        let on_request = ["go-ccm-aws", "openstack-kit", "image", "minors", "long"].map(only);
        let all = Selection::default();
        assert_eq!(left_out(Scope::Test, &all), on_request);
        let rest = "`cargo xtask test` also runs deny, integration, simulation, fuzz, aws, openstack, page, \
                    vsphere";
        let left = left_out(Scope::Check, &all);
        assert_eq!(
            left.split_first(),
            Some((&rest.to_owned(), &on_request[..]))
        );
        let some = Selection {
            only: vec!["fmt".to_owned()],
            ..Selection::default()
        };
        assert!(
            left_out(Scope::Check, &some).is_empty(),
            "they chose themselves"
        );
    }

    #[test]
    fn a_selection_narrows_the_table_and_keeps_its_order() {
        let picked = names(Scope::Test, &["unit", "fmt", "deny"], &["deny"]).unwrap();
        assert_eq!(picked, ["fmt", "-deny", "unit"]);
    }

    #[test]
    fn an_unknown_tier_is_refused_with_the_nearest_name() {
        for (typed, expected) in [
            (
                "untit",
                "there is no tier `untit`; did you mean `unit`? (tiers: fmt, ",
            ),
            (
                "integrations",
                "there is no tier `integrations`; did you mean `integration`? ",
            ),
            (
                "clipyp",
                "there is no tier `clipyp`; did you mean `clippy`? ",
            ),
            ("x", "there is no tier `x` (tiers: fmt, "),
        ] {
            let error = names(Scope::Test, &[typed], &[]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(
                names(Scope::Test, &[], &[typed]).unwrap_err().to_string(),
                error
            );
        }
    }

    #[test]
    fn check_refuses_a_tier_that_only_test_has() {
        let error = names(Scope::Check, &["integration"], &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("use `cargo xtask test --tier integration`"),
            "{error}"
        );
    }
}
