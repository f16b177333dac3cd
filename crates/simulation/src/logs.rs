//! What the managers log, with the simulated time.

use std::fmt;
use std::sync::OnceLock;

use tokio::time::Instant;
use tracing::Level;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Prints log lines of this level and above to standard error.
pub(crate) fn show_from(level: Level) {
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_timer(Simulated::default())
        .init();
}

/// Seconds since the first line; time stands still until something waits for it.
#[derive(Default)]
struct Simulated(OnceLock<Instant>);

impl FormatTime for Simulated {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let began = self.0.get_or_init(Instant::now);
        write!(writer, "{:8.2} s", began.elapsed().as_secs_f64())
    }
}
