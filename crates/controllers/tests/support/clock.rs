//! The clock of the API server, which can be turned back for a moment.

use std::sync::Mutex;

use cloudkeel_api::{Clock, TokioClock};
use jiff::Timestamp;
use tokio::time::Duration;

/// The server says when an object was made, so a test that needs an old one turns the clock of the server back.
pub(super) struct ServerClock {
    everybodys: TokioClock,
    behind: Mutex<Duration>,
}

impl ServerClock {
    pub(super) fn new(everybodys: TokioClock) -> Self {
        let behind = Mutex::default();
        Self { everybodys, behind }
    }

    /// Does something as if it were so long ago.
    pub(super) fn ago<T>(&self, time: Duration, deed: impl FnOnce() -> T) -> T {
        *self.behind.lock().unwrap() = time;
        let done = deed();
        *self.behind.lock().unwrap() = Duration::ZERO;
        done
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.everybodys.now() - *self.behind.lock().unwrap()
    }
}
