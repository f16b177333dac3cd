//! `cloudkeel explain`

use std::fmt::Write as _;
use std::io::Write;

use clap::{Args, ValueEnum};
use cloudkeel_api::{Registry, nearest};
use cloudkeel_diagnose::{
    Condition, Explanation, Met, ServiceState, Snapshot, explain_node, explain_service,
};

use super::doctor::block;
use super::manager_flags::ReadArgs;
use super::{CommandError, OutputFormat, Screen};
use crate::diagnose::Scope;

/// Arguments of `cloudkeel explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What kind of object.
    kind: Kind,
    /// The Node's NAME, or NAMESPACE/NAME of the Service.
    name: String,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    #[value(alias = "no", alias = "nodes")]
    Node,
    #[value(alias = "svc", alias = "services")]
    Service,
}

pub(super) fn run(
    args: &ExplainArgs,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let (scope, name) = match args.kind {
        Kind::Node => (Scope::Node(args.name.clone()), args.name.clone()),
        Kind::Service => {
            let name = with_namespace(&args.name);
            (Scope::Service(name.clone()), name)
        }
    };
    let snapshot = args.read.collect(registry, scope)?;
    let story = match args.kind {
        Kind::Node => explain_node(&snapshot, &name),
        Kind::Service => explain_service(&snapshot, &name),
    };
    let story = story.ok_or_else(|| missing(args.kind, &name, &snapshot))?;
    match args.read.output.output {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&story)?)?,
        OutputFormat::Text => write!(out, "{}", render(&story, Screen::detect()))?,
    }
    Ok(())
}

fn with_namespace(name: &str) -> String {
    if name.contains('/') {
        name.to_owned()
    } else {
        format!("default/{name}")
    }
}

/// Why there is no story: it could not be read, or there is no such object.
fn missing(kind: Kind, name: &str, snapshot: &Snapshot) -> CommandError {
    let (what, unread, names) = match kind {
        Kind::Node => {
            let nodes = snapshot.known_nodes().iter().map(|it| it.name().to_owned());
            (
                "Node",
                snapshot.nodes.as_ref().err(),
                nodes.collect::<Vec<_>>(),
            )
        }
        Kind::Service => {
            let services = snapshot.known_services().iter().map(ServiceState::key);
            (
                "Service",
                snapshot.services.as_ref().err(),
                services.collect(),
            )
        }
    };
    let unread = unread.or(snapshot.api_server.as_ref().err());
    if let Some(unread) = unread {
        return CommandError::NotFound(format!("{} cannot be read: {}", unread.what, unread.why));
    }
    let near = nearest(name, names.iter().map(String::as_str));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    CommandError::NotFound(format!("there is no {what} {name:?}{hint}"))
}

/// The story as text.
fn render(story: &Explanation, screen: Screen) -> String {
    let mut text = format!("{}\n", screen.heading(&story.object));
    for section in story.sections.iter().filter(|it| !it.lines.is_empty()) {
        let _ = writeln!(text, "\n{}", screen.heading(section.title));
        for line in &section.lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    if !story.deletion.is_empty() {
        let _ = writeln!(
            text,
            "\n{}",
            screen.heading("It is deleted if all of this holds")
        );
        for condition in &story.deletion {
            let _ = writeln!(text, "  {}", condition_line(condition, screen));
        }
    }
    let _ = writeln!(text, "\n{}\n  {}", screen.heading("Next"), story.next.what);
    if let Some(when) = &story.next.when {
        let _ = writeln!(text, "  {when}");
    }
    if !story.findings.is_empty() {
        let _ = writeln!(text, "\n{}", screen.heading("Wrong"));
        for finding in &story.findings {
            text.push_str(&block(finding, screen));
        }
    }
    if !story.events.is_empty() {
        let _ = writeln!(text, "\n{}", screen.heading("Events"));
        for event in &story.events {
            let _ = writeln!(text, "  {event}");
        }
    }
    text
}

fn condition_line(condition: &Condition, screen: Screen) -> String {
    let sign = match condition.met {
        Met::Yes => screen.good("✔"),
        Met::No => screen.bad("✖"),
        Met::Unknown => screen.faint("?"),
    };
    format!(
        "{sign} {}. {}: {}",
        condition.number, condition.rule, condition.value
    )
}

#[cfg(test)]
mod tests {
    use cloudkeel_diagnose::{NextStep, Section};

    use super::*;

    #[test]
    fn a_story_goes_by_topic_and_empty_topics_are_left_out() {
        let section = |title, lines: &[&str]| Section {
            title,
            lines: lines.iter().map(ToString::to_string).collect(),
        };
        let story = Explanation {
            object: "Node a".to_owned(),
            sections: vec![section("Owner", &["cloud x"]), section("Differs", &[])],
            deletion: vec![Condition {
                number: 2,
                rule: "it is not Ready",
                met: Met::No,
                value: "Ready for 3m".to_owned(),
            }],
            next: NextStep {
                what: "nothing".to_owned(),
                when: None,
            },
            findings: Vec::new(),
            events: vec!["3s ago  Synced: done".to_owned()],
        };
        let shown = render(&story, Screen::plain());
        assert_eq!(
            shown,
            "Node a\n\nOwner\n  cloud x\n\nIt is deleted if all of this holds\n  \
             ✖ 2. it is not Ready: Ready for 3m\n\nNext\n  nothing\n\nEvents\n  3s ago  Synced: done\n"
        );
    }

    #[test]
    fn a_service_without_a_namespace_is_in_default() {
        assert_eq!(with_namespace("web"), "default/web");
        assert_eq!(with_namespace("a/web"), "a/web");
    }
}
