//! `cloudkeel doctor`

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use cloudkeel_api::Registry;
use cloudkeel_diagnose::{Area, Diagnosis, Finding, Severity, diagnose};

use super::manager_flags::ReadArgs;
use super::{CommandError, OutputFormat, Screen};
use crate::diagnose::Scope;

/// Arguments of `cloudkeel doctor`. It exits with 0 if nothing is wrong, with 2 after a warning, with 3 after an error,
/// and with 1 if the command line cannot be understood.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(
    args: &DoctorArgs,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<ExitCode, CommandError> {
    let diagnosis = diagnose(&args.read.collect(registry, Scope::All)?);
    match args.read.output.output {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&diagnosis)?)?,
        OutputFormat::Text => write!(out, "{}", render(&diagnosis, Screen::detect()))?,
    }
    Ok(ExitCode::from(exit_code(diagnosis.worst)))
}

/// The exit code of a diagnosis.
const fn exit_code(worst: Option<Severity>) -> u8 {
    match worst {
        None | Some(Severity::Info) => 0,
        Some(Severity::Warning) => 2,
        Some(Severity::Error) => 3,
    }
}

/// Of one kind so many are shown: what is wrong with a thousand Nodes is one problem.
const SHOWN_OF_A_KIND: usize = 5;

/// What was looked at, what was found, and how many of each severity.
fn render(diagnosis: &Diagnosis, screen: Screen) -> String {
    let mut text = overview(diagnosis, screen);
    let kinds = diagnosis
        .findings
        .chunk_by(|one, other| one.id() == other.id());
    for kind in kinds {
        for finding in kind.iter().take(SHOWN_OF_A_KIND) {
            text.push('\n');
            text.push_str(&block(finding, screen));
        }
        let more = kind.len().saturating_sub(SHOWN_OF_A_KIND);
        if let Some(first) = kind.first()
            && more > 0
        {
            let id = first.id();
            let _ = writeln!(
                text,
                "\n  … and {more} more {id}; --output json lists them all"
            );
        }
    }
    let _ = match diagnosis.findings.len() {
        0 => writeln!(text, "\n{}", screen.good("Nothing is wrong.")),
        _ => writeln!(text, "\n{}", totals(diagnosis)),
    };
    text
}

/// Such as `1 error, 2 warnings, 0 notes`.
fn totals(diagnosis: &Diagnosis) -> String {
    let count = |severity: Severity, word: &str| {
        let count = diagnosis
            .counts
            .get(severity.as_str())
            .copied()
            .unwrap_or(0);
        let ending = if count == 1 { "" } else { "s" };
        format!("{count} {word}{ending}")
    };
    [
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
        count(Severity::Info, "note"),
    ]
    .join(", ")
}

/// One line for each area, with a sign for the worst of its findings.
fn overview(diagnosis: &Diagnosis, screen: Screen) -> String {
    let mut text = String::new();
    for area in Area::ALL {
        let findings = diagnosis.findings.iter().filter(|it| it.rule.area == area);
        let worst = findings.map(Finding::severity).min();
        let sign = match worst {
            None => screen.good("✔"),
            Some(severity) => sign(severity, screen),
        };
        let mut sentences = diagnosis.state.iter().filter(|(of, _)| *of == area);
        let first = sentences.next().map(|(_, text)| text.as_str());
        if first.is_none() && worst.is_none() {
            continue;
        }
        let line = format!("{sign} {:26}{}", area.as_str(), first.unwrap_or_default());
        let _ = writeln!(text, "{}", line.trim_end());
        for (_, sentence) in sentences {
            let _ = writeln!(text, "{:28}{sentence}", "");
        }
    }
    text
}

pub(super) fn sign(severity: Severity, screen: Screen) -> String {
    match severity {
        Severity::Error => screen.bad("✖"),
        Severity::Warning => screen.warning("!"),
        Severity::Info => screen.faint("i"),
    }
}

/// One finding: what, why it matters, what fixes it.
pub(super) fn block(finding: &Finding, screen: Screen) -> String {
    let (sign, object) = (
        sign(finding.severity(), screen),
        screen.heading(&finding.object),
    );
    let id = screen.faint(finding.id());
    format!(
        "{sign} {object}  {id}\n    {}\n    {} {}\n    {} {}\n",
        finding.what,
        screen.faint("why:"),
        finding.rule.why,
        screen.faint("fix:"),
        finding.fix
    )
}

#[cfg(test)]
mod tests {
    use cloudkeel_diagnose::{RULES, Rule};

    use super::*;

    fn rule(id: &str) -> &'static Rule {
        let mut rules = RULES.iter();
        rules.find(|rule| rule.id == id).copied().unwrap()
    }

    fn diagnosis(findings: Vec<Finding>) -> Diagnosis {
        Diagnosis {
            worst: findings.iter().map(Finding::severity).min(),
            counts: [("error", findings.len())].into(),
            state: vec![(Area::Nodes, "1: 0 Ready, 1 not initialized".to_owned())],
            findings,
        }
    }

    #[test]
    fn every_finding_is_shown_with_reason_and_remedy() {
        let finding = rule("node-no-machine").found("Node a", "tainted for 3m: no machine");
        let shown = render(&diagnosis(vec![finding.fix("rename it")]), Screen::plain());
        assert_eq!(
            shown,
            "✖ Nodes                     1: 0 Ready, 1 not initialized\n\n\
             ✖ Node a  node-no-machine\n    tainted for 3m: no machine\n    why: No Pod is scheduled there. \
             A machine is found by its name until the Node has a provider ID.\n    fix: rename it\n\n\
             1 error, 0 warnings, 0 notes\n"
        );
    }

    #[test]
    fn of_many_findings_of_a_kind_a_few_are_shown() {
        let many = (0..1000).map(|n| rule("node-not-ready").found(format!("Node {n}"), "x"));
        let shown = render(&diagnosis(many.collect()), Screen::plain());
        assert_eq!(shown.matches("node-not-ready").count(), SHOWN_OF_A_KIND + 1);
        assert!(shown.contains("… and 995 more node-not-ready"), "{shown}");
    }

    #[test]
    fn a_healthy_cluster_is_said_to_be_so() {
        let shown = render(&diagnosis(Vec::new()), Screen::plain());
        assert!(shown.ends_with("\nNothing is wrong.\n"), "{shown}");
        assert!(shown.starts_with("✔ Nodes"), "{shown}");
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_finding() {
        for (worst, code) in [
            (None, 0),
            (Some(Severity::Info), 0),
            (Some(Severity::Warning), 2),
            (Some(Severity::Error), 3),
        ] {
            assert_eq!(exit_code(worst), code);
        }
    }
}
