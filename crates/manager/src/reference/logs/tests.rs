use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cloudkeel_api::LogSeverity;

use super::*;

/// A call of a logging macro: its level, and its message as written in the source.
struct Call {
    place: String,
    severity: Option<LogSeverity>,
    message: String,
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs")
            && name != "tests.rs"
            && name != "log_messages.rs"
        {
            found.push(path);
        }
    }
}

/// Everything that the sources log, tests left out.
fn calls(sources: &str) -> Vec<Call> {
    const MACROS: [(&str, Option<LogSeverity>); 5] = [
        ("error!(", Some(LogSeverity::Error)),
        ("warn!(", Some(LogSeverity::Warn)),
        ("info!(", Some(LogSeverity::Info)),
        ("debug!(", None),
        ("trace!(", None),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    rust_files(&root.join(sources), &mut files);
    let mut calls = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        for (name, severity) in MACROS {
            for (at, _) in text.match_indices(name) {
                let arguments = &text[at + name.len()..];
                calls.push(Call {
                    place: format!("{}:{}", file.display(), text[..at].lines().count()),
                    severity,
                    message: last_text(arguments),
                });
            }
        }
    }
    calls
}

/// The last string literal of a macro call, which is its message.
fn last_text(arguments: &str) -> String {
    let (mut depth, mut last, mut current) = (1, String::new(), None::<String>);
    let mut characters = arguments.chars();
    while let Some(character) = characters.next() {
        match (&mut current, character) {
            (Some(text), '"') => {
                last = std::mem::take(text);
                current = None;
            }
            (Some(text), '\\') => {
                text.push(character);
                text.extend(characters.next());
            }
            (Some(text), _) => text.push(character),
            (None, '"') => current = Some(String::new()),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
        if depth == 0 {
            break;
        }
    }
    last
}

fn is_call_of(call: &Call, message: &LogMessage) -> bool {
    call.message == format!("{{{}}}", message.name)
}

#[test]
fn every_warning_and_error_is_documented() {
    for source in &SOURCES {
        let found = calls(source.sources);
        assert!(!found.is_empty(), "{}", source.sources);
        for call in found {
            let is_listed = source.messages.iter().any(|it| is_call_of(&call, it));
            let must_be_listed = call.severity >= Some(LogSeverity::Warn);
            assert!(
                is_listed || !must_be_listed,
                "{}: {:?} is not in the log messages of its crate",
                call.place,
                call.message
            );
        }
    }
}

#[test]
fn every_documented_message_is_logged_at_its_level_and_never_higher() {
    for source in &SOURCES {
        let calls = calls(source.sources);
        for message in source.messages {
            let levels = calls.iter().filter(|call| is_call_of(call, message));
            let highest = levels.map(|call| call.severity).max().flatten();
            assert_eq!(highest, Some(message.severity), "{}", message.name);
        }
    }
}

#[test]
fn messages_are_distinct_plain_and_explained() {
    let mut texts = BTreeSet::new();
    for message in SOURCES.iter().flat_map(|source| source.messages) {
        let LogMessage {
            text,
            meaning,
            remedy,
            ..
        } = message;
        assert!(texts.insert(text), "{text}");
        assert!(!text.ends_with('.') && !text.contains('{'), "{text}");
        for sentence in [meaning, remedy] {
            assert!(sentence.ends_with('.'), "{text}: {sentence}");
        }
    }
}
