//! The output of the demo, as text or JSON.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Output;
use crate::scenario::{ScenarioResult, ScenarioStep};
use crate::settings::SHORTENED;
use crate::traffic::Count;

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const RED: &str = "31";
const BLUE: &str = "36";

/// Standard output, in the selected form.
#[derive(Debug)]
pub(crate) struct Terminal {
    output: Output,
    colours: bool,
}

/// The addresses of everything that runs.
pub(crate) struct Places {
    pub(crate) kubernetes: String,
    pub(crate) kubeconfig: String,
    pub(crate) cloud: String,
    pub(crate) page: Option<String>,
    pub(crate) folder: String,
    pub(crate) managers: Vec<ManagerPlace>,
    pub(crate) logs: Vec<String>,
}

/// The addresses of a manager.
#[derive(serde::Serialize)]
pub(crate) struct ManagerPlace {
    pub(crate) name: &'static str,
    pub(crate) pid: u32,
    pub(crate) page: String,
}

impl Terminal {
    pub(crate) fn new(output: Output) -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { output, colours }
    }

    /// Prints the addresses, once everything runs.
    pub(crate) fn places(&self, places: &Places) {
        if self.output == Output::Json {
            print_json(&json!({"started": {
                "kubernetes": places.kubernetes,
                "kubeconfig": places.kubeconfig,
                "cloud": places.cloud,
                "page": places.page,
                "folder": places.folder,
                "managers": places.managers,
            }}));
            return;
        }
        print(&self.paint(BOLD, "cloudkeel demo"));
        let page = places.page.as_deref().unwrap_or("off");
        let logs = places.logs.join(" ");
        for (name, value) in [
            ("page", page),
            ("Kubernetes", &places.kubernetes),
            (
                "kubectl",
                &format!("export KUBECONFIG={}", places.kubeconfig),
            ),
            ("cloud", &places.cloud),
            ("logs", &logs),
        ] {
            print(&format!(
                "  {} {value}",
                self.paint(BLUE, &format!("{name:10}"))
            ));
        }
        let flags = SHORTENED.join(" ");
        print(&self.paint(
            DIM,
            &format!(
                "  Times are shorter than in production, so that two minutes are enough: {flags}"
            ),
        ));
    }

    pub(crate) fn begin(&self, number: usize, step: ScenarioStep) {
        if self.output == Output::Text {
            let title = format!("{number}. {}", step.title());
            print(&format!("\n{}", self.paint(BOLD, &title)));
        }
    }

    /// Prints a detail of a step.
    pub(crate) fn detail(&self, line: &str) {
        if self.output == Output::Text {
            print(&format!("   {}", self.paint(DIM, line)));
        }
    }

    pub(crate) fn end(&self, step: ScenarioStep, outcome: &Result<String, String>, took: Duration) {
        let (passed, note) = match outcome {
            Ok(note) => (true, note),
            Err(why) => (false, why),
        };
        if self.output == Output::Json {
            print_json(&json!({"step": {
                "name": step.name(),
                "title": step.title(),
                "passed": passed,
                "note": note,
                "seconds": took.as_secs_f64(),
            }}));
            return;
        }
        let sign = if passed {
            self.paint(GREEN, "✔")
        } else {
            self.paint(RED, "✘")
        };
        print(&format!(" {sign} {note} ({:.1} s)", took.as_secs_f64()));
    }

    /// Prints the summary.
    pub(crate) fn sum_up(&self, result: ScenarioResult, count: &Count, first: Option<Duration>) {
        let first = first.map(|first| first.as_secs_f64());
        if self.output == Output::Json {
            print_json(&json!({"ended": {
                "passed": result.passed,
                "failed": result.failed,
                "requests": count.answered + count.lost,
                "lost": count.lost,
                "firstAnswerSeconds": first,
            }}));
            return;
        }
        let first = first.map_or_else(String::new, |first| {
            format!("; the first was answered {first:.1} s after the start")
        });
        let colour = if result.failed == 0 { GREEN } else { RED };
        let text = format!(
            "{} steps passed, {} failed; {} requests, {} lost{first}",
            result.passed,
            result.failed,
            count.answered + count.lost,
            count.lost,
        );
        print(&format!("\n{}", self.paint(colour, &text)));
    }

    /// Prints a remark.
    pub(crate) fn remark(&self, text: &str) {
        if self.output == Output::Text {
            print(text);
        }
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{colour}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

fn print_json(value: &Value) {
    print(&value.to_string());
}

/// A closed pipe is no reason to exit.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
