//! The page of log messages, printed from the tables that the call sites use.

use std::fmt::Write as _;

use cloudkeel_api::LogMessage;

use super::Page;

/// A crate whose documented messages are on the page. Every warning and error that it logs has to be in its table.
struct LogSource {
    title: &'static str,
    /// Where the messages are declared and logged, from the root of the repository.
    sources: &'static str,
    messages: &'static [LogMessage],
}

/// To add a crate, declare its messages with `cloudkeel_api::log_messages!` and add a row.
const SOURCES: [LogSource; 3] = [
    LogSource {
        title: "Manager",
        sources: "crates/manager/src",
        messages: crate::log_messages::MESSAGES,
    },
    LogSource {
        title: "Controllers",
        sources: "crates/controllers/src",
        messages: cloudkeel_controllers::LOG_MESSAGES,
    },
    LogSource {
        title: "Cloud API client",
        sources: "crates/http/src",
        messages: cloudkeel_http::LOG_MESSAGES,
    },
];

pub(super) fn page() -> Page {
    let mut body = String::from(
        "The log messages that matter, by crate. A line is a level, a message and fields such as `node`, `service`, \
         `cloud`, `lease`, `err` (the cause) and `retry_after`. Search for the message without its fields. \
         `--logging-format=json` and `-v` are described on the page of [flags](flags.md).\n",
    );
    for source in &SOURCES {
        let _ = write!(
            body,
            "\n## {}\n\nDeclared in `{}/log_messages.rs`.\n\n\
             | level | message | meaning | what to do |\n|---|---|---|---|\n",
            source.title, source.sources
        );
        for message in source.messages {
            let _ = writeln!(
                body,
                "| {} | `{}` | {} | {} |",
                message.severity.as_str(),
                message.text,
                message.meaning.replace('|', "\\|"),
                message.remedy.replace('|', "\\|"),
            );
        }
    }
    Page::new("logs", "Log messages", &body)
}

#[cfg(test)]
mod tests;
