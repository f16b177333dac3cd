//! `--controllers`: which controllers run.

use cloudkeel_api::nearest;

use crate::ControllerName;

/// Items of `--controllers`, checked. The first item that names a controller decides; without `*`,
/// only those that are named run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSelection {
    items: Vec<String>,
}

/// An item that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", text(item, *nearest, kind))]
pub struct SelectionError {
    /// What the list is of: `controllers` or `webhooks`.
    pub kind: &'static str,
    /// As given.
    pub item: String,
    /// What was probably meant.
    pub nearest: Option<&'static str>,
}

fn text(item: &str, nearest: Option<&str>, kind: &str) -> String {
    let hint = nearest.map_or_else(String::new, |near| format!(": did you mean {near:?}?"));
    format!("{item:?} is not in the list of known {kind}{hint}")
}

impl ControllerSelection {
    /// Checks all items. `more` are the names of controllers that providers bring along.
    pub fn new(items: &[String], more: &[&'static str]) -> Result<Self, Vec<SelectionError>> {
        let mut known = more.to_vec();
        for controller in ControllerName::ALL {
            known.extend([controller.canonical(), controller.alias()]);
            known.extend(controller.migration_names());
        }
        check("controllers", items, &known)?;
        let items = items.to_vec();
        Ok(Self { items })
    }

    /// Whether a controller of the framework runs.
    pub fn runs(&self, controller: ControllerName) -> bool {
        let is_it = |name: &str| ControllerName::find(name) == Some(controller);
        is_selected(&self.items, is_it, true)
    }

    /// Whether a controller of the framework is asked for by name, not only by `*`.
    pub fn names(&self, controller: ControllerName) -> bool {
        let is_it = |name: &str| ControllerName::find(name) == Some(controller);
        is_selected(&self.items, is_it, false)
    }

    /// Whether a controller that a provider brings along runs.
    pub fn runs_provided(&self, name: &str, on_by_default: bool) -> bool {
        is_selected(&self.items, |item| item == name, on_by_default)
    }
}

/// The grammar of `--controllers` and `--webhooks`: the first item with the name decides; without one, `*` stands for
/// all that are on by default.
pub fn is_selected(items: &[String], is_meant: impl Fn(&str) -> bool, on_by_default: bool) -> bool {
    let named = items.iter().find(|item| is_meant(bare(item)));
    match named {
        Some(item) => !item.starts_with('-'),
        None => on_by_default && items.iter().any(|item| item == "*"),
    }
}

/// Checks the items of `--webhooks`: each must name one that a provider brings along.
pub fn check_webhooks(items: &[String], known: &[&'static str]) -> Result<(), Vec<SelectionError>> {
    check("webhooks", items, known)
}

fn check(
    kind: &'static str,
    items: &[String],
    known: &[&'static str],
) -> Result<(), Vec<SelectionError>> {
    let items = items.iter().map(|item| bare(item));
    let errors: Vec<_> = items
        .filter(|item| *item != "*" && !known.contains(item))
        .map(|item| SelectionError {
            kind,
            item: item.to_owned(),
            nearest: nearest(item, known.iter().copied()),
        })
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn bare(item: &str) -> &str {
    item.strip_prefix('-').unwrap_or(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(items: &[&str]) -> Result<ControllerSelection, Vec<SelectionError>> {
        let items: Vec<_> = items.iter().map(ToString::to_string).collect();
        ControllerSelection::new(&items, &["tagging"])
    }

    #[test]
    fn the_first_item_that_names_a_controller_decides() {
        use ControllerName::{CloudNode, Route, Service};
        for (items, controller, expected) in [
            (&["*"][..], Route, true),
            (&["*", "-route"], Route, false),
            (&["*", "-node-route-controller"], Route, false),
            (&["-route", "*"], Route, false),
            (&["route", "-route"], Route, true),
            (&["service"], Service, true),
            (&["service"], CloudNode, false),
            (&[], CloudNode, false),
            (&["-service"], CloudNode, false),
        ] {
            let selection = selection(items).unwrap();
            assert_eq!(
                selection.runs(controller),
                expected,
                "{items:?} {controller}"
            );
        }
    }

    #[test]
    fn a_star_runs_a_controller_but_does_not_name_it() {
        let star = selection(&["*"]).unwrap();
        assert!(star.runs(ControllerName::NodeIpam) && !star.names(ControllerName::NodeIpam));
        let named = selection(&["*", "nodeipam"]).unwrap();
        assert!(named.names(ControllerName::NodeIpam));
        let refused = selection(&["*", "-nodeipam"]).unwrap();
        assert!(!refused.names(ControllerName::NodeIpam));
    }

    #[test]
    fn a_providers_controller_is_off_unless_named_or_on_by_default() {
        let star = selection(&["*"]).unwrap();
        assert!(!star.runs_provided("tagging", false));
        assert!(star.runs_provided("tagging", true));
        let named = selection(&["*", "tagging"]).unwrap();
        assert!(named.runs_provided("tagging", false));
        let refused = selection(&["*", "-tagging"]).unwrap();
        assert!(!refused.runs_provided("tagging", true));
    }

    #[test]
    fn every_unknown_item_is_named_with_the_nearest() {
        let errors = selection(&["*", "-rout", "zzz"]).unwrap_err();
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "\"rout\" is not in the list of known controllers: did you mean \"route\"?",
                "\"zzz\" is not in the list of known controllers",
            ]
        );
    }

    #[test]
    fn an_unknown_webhook_is_refused_with_the_nearest() {
        let check = |items: &[&str]| {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            let checked = check_webhooks(&items, &["pv-labels"]);
            checked.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(check(&["*", "-pv-labels", "pv-labels"]), Ok(()));
        let known = "is not in the list of known webhooks";
        assert_eq!(
            check(&["pv-label", "-zzz"]),
            Err(vec![
                format!("\"pv-label\" {known}: did you mean \"pv-labels\"?"),
                format!("\"zzz\" {known}"),
            ])
        );
    }
}
