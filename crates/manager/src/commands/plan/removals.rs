//! How resources that can be removed are printed for people.

use std::fmt::Write as _;

use super::render::{Painter, section};
use crate::commands::Screen;
use crate::orphans::{Found, RemovalResult};

/// What was found, object by object.
pub(crate) fn removals_text(found: &Found, screen: Screen) -> String {
    let mut text = String::new();
    for removal in &found.removals {
        let _ = write!(text, "{}", screen.heading(&removal.object()));
        let _ = writeln!(
            text,
            "  {}",
            screen.faint(&format!("cloud {}", removal.cloud))
        );
        for step in &removal.steps {
            let sign = Painter(screen).sign(step.action);
            let _ = writeln!(text, "  {sign} {}", step.text);
        }
    }
    section(&mut text, "Kept", &found.kept, screen);
    section(&mut text, "Cannot be listed", &found.not_listed, screen);
    section(&mut text, "Not read", &found.failures, screen);
    let steps: usize = found
        .removals
        .iter()
        .map(|removal| removal.steps.len())
        .sum();
    let summary = match found.removals.len() {
        0 => "Nothing to remove.".to_owned(),
        objects => format!("To remove: what {objects} objects have, in {steps} steps."),
    };
    let _ = writeln!(text, "{}", screen.heading(&summary));
    text
}

/// What became of one.
pub(crate) fn result_text(result: &RemovalResult, screen: Screen) -> String {
    let RemovalResult {
        cloud,
        object,
        error,
    } = result;
    match error {
        None => format!("{} {object}, cloud {cloud}\n", screen.good("removed")),
        Some(why) => format!(
            "{} {object}, cloud {cloud}: {why}\n",
            screen.bad("not removed")
        ),
    }
}
