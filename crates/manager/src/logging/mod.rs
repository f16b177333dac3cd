//! Logging: one line per change of state, as text or JSON, with a level that can be changed while the program runs.

mod level;
mod one_line;

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer, Registry, reload};

use self::one_line::OneLine;
pub use level::{VerbosityError, targets_for};

use crate::log_messages::PANIC;
use crate::options::{LogFormat, LoggingOptions, ModuleLevel};
use crate::panics;
use crate::serving::LogLevel;

/// Changes the log level while the program runs.
#[derive(Debug, Clone)]
pub struct LogControl {
    modules: Vec<ModuleLevel>,
    handle: reload::Handle<Targets, Registry>,
}

impl LogControl {
    /// Sets the verbosity, as `-v` does; the levels of single modules stay.
    pub fn set_verbosity(&self, verbosity: u16) -> Result<(), VerbosityError> {
        let targets = targets_for(verbosity, &self.modules)?;
        self.handle
            .reload(targets)
            .map_err(|error| VerbosityError::Gone(error.to_string()))
    }
}

/// Starts logging for the whole process. A second call changes nothing and is an error.
pub fn start(options: &LoggingOptions) -> Result<LogControl, VerbosityError> {
    let targets = targets_for(options.verbosity, &options.modules)?;
    let (filter, handle) = reload::Layer::new(targets);
    let subscriber = Registry::default().with(lines(options).with_filter(filter));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| VerbosityError::Gone(error.to_string()))?;
    Ok(LogControl {
        modules: options.modules.clone(),
        handle,
    })
}

/// Logs panics, too, and counts them: printed as they are, they would break a JSON log.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        tracing::error!(panic = text, "{PANIC}");
        panics::note(text);
    }));
}

fn lines(options: &LoggingOptions) -> Box<dyn Layer<Registry> + Send + Sync> {
    let writer = if options.split_stream {
        BoxMakeWriter::new(io::stderr.with_max_level(Level::WARN).or_else(io::stdout))
    } else {
        BoxMakeWriter::new(io::stderr)
    };
    let layer = tracing_subscriber::fmt::layer();
    match options.format {
        LogFormat::Text => {
            let has_colours = io::stderr().is_terminal();
            let writer = OneLine {
                writer,
                has_colours,
            };
            layer.with_writer(writer).with_ansi(has_colours).boxed()
        }
        // It escapes what is in strings itself.
        LogFormat::Json => layer.with_writer(writer).json().flatten_event(true).boxed(),
    }
}

impl LogLevel for LogControl {
    fn set_verbosity(&self, verbosity: u32) -> Result<(), String> {
        let verbosity = u16::try_from(verbosity).unwrap_or(u16::MAX);
        Self::set_verbosity(self, verbosity).map_err(|error| error.to_string())
    }
}
