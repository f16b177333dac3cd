//! How a plan is printed for people.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use cloudkeel_api::StepAction;
use cloudkeel_controllers::ControllerName;

use crate::commands::Screen;
use crate::dry_run::{DryRunReport, DryRunStep};

/// Colours of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painter(pub(crate) Screen);

impl Painter {
    /// The sign of an action.
    pub(crate) fn sign(self, action: StepAction) -> String {
        let sign = action.sign().to_string();
        match action {
            StepAction::Create => self.0.good(&sign),
            StepAction::Change => self.0.warning(&sign),
            StepAction::Delete => self.0.bad(&sign),
        }
    }
}

/// A plan, controller by controller.
pub(crate) fn plan_text(
    report: &DryRunReport,
    controllers: &[ControllerName],
    screen: Screen,
) -> String {
    let mut text = String::new();
    for name in controllers {
        let name = name.canonical();
        let steps: Vec<_> = of(report, name).collect();
        let waiting = report.waiting.iter().filter(|it| it.controller == name);
        let waiting: Vec<_> = waiting.map(|it| it.what.as_str()).collect();
        let _ = write!(text, "{}", screen.heading(name));
        if steps.is_empty() && waiting.is_empty() {
            let nothing = if report.complete {
                "nothing to do"
            } else {
                "nothing found"
            };
            let _ = writeln!(text, "  {}", screen.faint(nothing));
            continue;
        }
        text.push('\n');
        text.push_str(&steps_text(&steps, screen));
        for what in waiting {
            let _ = writeln!(text, "  {} {}", screen.faint("waits:"), what);
        }
    }
    section(&mut text, "Problems", &report.problems, screen);
    section(&mut text, "Not read", &report.failures, screen);
    section(&mut text, "Not planned", &report.not_planned, screen);
    let _ = write!(text, "\n{}", summary(report, screen));
    text
}

fn of<'a>(report: &'a DryRunReport, name: &'a str) -> impl Iterator<Item = &'a DryRunStep> {
    report
        .steps
        .iter()
        .filter(move |step| step.controller == name)
}

/// Steps in columns: the sign, the object, the cloud, what is done.
fn steps_text(steps: &[&DryRunStep], screen: Screen) -> String {
    let width = |text: &dyn Fn(&DryRunStep) -> usize| {
        steps
            .iter()
            .map(|step| text(step))
            .max()
            .unwrap_or_default()
    };
    let object = width(&|step| step.object.chars().count());
    let place = width(&|step| place_of(step).chars().count());
    let mut text = String::new();
    for step in steps {
        let sign = Painter(screen).sign(step.action);
        let at = screen.faint(&format!("{:place$}", place_of(step)));
        let _ = writeln!(
            text,
            "  {sign} {:object$}  {at}  {}",
            step.object, step.text
        );
    }
    text
}

/// Where a step is done.
fn place_of(step: &DryRunStep) -> &str {
    step.cloud.as_deref().unwrap_or("cluster")
}

pub(super) fn section(text: &mut String, heading: &str, lines: &[String], screen: Screen) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", screen.heading(heading));
    for line in lines {
        let _ = writeln!(text, "  {} {line}", screen.warning("!"));
    }
}

/// The last lines: how many steps and calls.
fn summary(report: &DryRunReport, screen: Screen) -> String {
    let mut text = String::new();
    let counts = StepAction::ALL.map(|action| (action, report.count(action)));
    let head = if report.is_empty() && report.complete {
        "Nothing to do.".to_owned()
    } else if report.is_empty() {
        "Nothing found to do so far.".to_owned()
    } else {
        let [(_, create), (_, change), (_, delete)] = counts;
        format!("To do: {create} to create, {change} to change, {delete} to delete.")
    };
    let _ = writeln!(text, "{}", screen.heading(&head));
    for calls in &report.clouds {
        let (cloud, made, planned) = (&calls.cloud, calls.made, calls.planned);
        let _ = writeln!(
            text,
            "Cloud {cloud}: {made} calls made to plan, {planned} to carry it out."
        );
    }
    let writes = report.api_writes;
    let _ = writeln!(text, "Cluster: {writes} writes to carry it out.");
    if !report.complete {
        let _ = writeln!(text, "{}", screen.bad("The plan is incomplete."));
    }
    text
}

/// One line while it works.
pub(crate) fn progress_text(report: &DryRunReport) -> String {
    let calls: u64 = report.clouds.iter().map(|calls| calls.made).sum();
    let steps = report.steps.len();
    format!("planning: {calls} cloud calls, {steps} steps so far")
}
