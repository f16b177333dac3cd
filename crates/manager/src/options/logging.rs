//! Options of logging.

use serde::Serialize;

use super::reader::OptionReader;
use crate::flags;

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// A level for one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleLevel {
    /// The module's path, such as `cloudkeel_http::limit`.
    pub module: String,
    /// Its verbosity.
    pub verbosity: u16,
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggingOptions {
    /// `-v`
    pub verbosity: u16,
    /// `--vmodule`
    pub modules: Vec<ModuleLevel>,
    /// `--logging-format`
    pub format: LogFormat,
    /// `--log-…-split-stream`: errors to stderr, the rest to stdout.
    pub split_stream: bool,
}

impl LoggingOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let verbosity = reader.value(&flags::VERBOSITY);
        let modules = read_modules(reader);
        let format = read_format(reader);
        let split_text = reader.value(&flags::LOG_TEXT_SPLIT_STREAM);
        let split_json = reader.value(&flags::LOG_JSON_SPLIT_STREAM);
        let format = format?;
        Some(Self {
            verbosity: verbosity?,
            modules: modules?,
            format,
            split_stream: match format {
                LogFormat::Text => split_text?,
                LogFormat::Json => split_json?,
            },
        })
    }
}

fn read_format(reader: &mut OptionReader<'_>) -> Option<LogFormat> {
    let text = reader.value(&flags::LOGGING_FORMAT)?;
    match text.as_str() {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => {
            reader.refuse("--logging-format", text, "text or json");
            None
        }
    }
}

fn read_modules(reader: &mut OptionReader<'_>) -> Option<Vec<ModuleLevel>> {
    let mut modules = Vec::new();
    for item in reader.list(&flags::VMODULE)? {
        let parsed = item
            .split_once('=')
            .and_then(|(module, level)| Some((module, level.parse().ok()?)))
            .filter(|(module, _)| !module.is_empty());
        match parsed {
            Some((module, verbosity)) => modules.push(ModuleLevel {
                module: module.to_owned(),
                verbosity,
            }),
            None => reader.refuse("--vmodule", item, "`module=number`"),
        }
    }
    Some(modules)
}
