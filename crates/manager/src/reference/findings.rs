//! The page of findings, printed from the catalogue that `doctor` uses.

use std::fmt::Write as _;

use cloudkeel_diagnose::{Area, RULES};

use super::Page;

pub(super) fn page() -> Page {
    let mut body = String::from(
        "What [`cloudkeel doctor`](../troubleshoot.md) reports, and what to do about it. It exits with 3 after an \
         error, with 2 after a warning, with 0 otherwise, and with 1 if the command line cannot be understood.\n",
    );
    for area in Area::ALL {
        let _ = write!(
            body,
            "\n## {}\n\n| finding | severity | what you see | why | what to do |\n|---|---|---|---|---|\n",
            area.as_str()
        );
        for rule in RULES.iter().filter(|rule| rule.area == area) {
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(
                body,
                "| `{}` | {} | {} | {} | {} |",
                rule.id,
                rule.severity,
                cell(rule.symptom),
                cell(rule.why),
                cell(rule.remedy)
            );
        }
    }
    Page::new("findings", "Findings of doctor", &body)
}
