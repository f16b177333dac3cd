//! A watch as a body that goes on.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Response, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch as signal;
use tokio::time::{Instant, sleep_until};

use super::EmbeddedApi;
use super::answer::{Answer, AnswerBody, respond};
use super::watch::{Event, Watch};
use crate::interpose::{Call, Interposer, Passage, Watched};
use crate::refusal::Refusal;
use crate::request::{Accepted, Encoding};

/// How often a quiet watch says that nothing was missed.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// So long before its end a watch says it too, so that the next one begins as late as possible.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lasts that does not say it.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// How long a watch lasts at most, whatever it says.
const LONGEST: Duration = Duration::from_hours(24);

/// A request of a client with an interposer.
#[derive(Clone)]
pub(crate) struct InterposedCall {
    pub(crate) call: Call,
    pub(crate) interposer: Arc<dyn Interposer>,
}

impl EmbeddedApi {
    /// An answer on the wire.
    pub(crate) fn respond(
        &self,
        answer: Answer,
        accepted: Accepted,
        interposed: Option<InterposedCall>,
    ) -> Response<AnswerBody> {
        let Answer::Watch(watch) = answer else {
            return respond(answer, accepted);
        };
        let content_type = match watch.encoding {
            Encoding::Json => "application/json",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        };
        let follower = Follower::new(self.follow(), *watch, interposed);
        let frames = stream::unfold(Some(follower), |follower| async move {
            let mut follower = follower?;
            match follower.step().await {
                Step::Line(bytes) => Some((Ok(Frame::data(bytes)), Some(follower))),
                Step::LastLine(bytes) => Some((Ok(Frame::data(bytes)), None)),
                Step::Broken => Some((Err(io::ErrorKind::UnexpectedEof.into()), None)),
                Step::Over => None,
            }
        });
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        let content_type = HeaderValue::from_static(content_type);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        response
    }
}

/// What happens next on a watch.
enum Step {
    Line(Bytes),
    LastLine(Bytes),
    /// The connection breaks.
    Broken,
    /// The watch ends as it should.
    Over,
}

/// Why a watch that had nothing to say stirs.
enum WakeReason {
    /// There may be something new.
    NewData,
    /// It was quiet for so long that it says so.
    Quiet,
    /// The time is over.
    Over,
}

/// When the next bookmark is due; never, if the watch is about to end.
fn next_bookmark(ends: Instant) -> Option<Instant> {
    let now = Instant::now();
    let last = ends.checked_sub(BOOKMARK_BEFORE_END)?;
    (last > now).then(|| last.min(now + BOOKMARK_EVERY))
}

struct Follower {
    version: signal::Receiver<u64>,
    watch: Watch,
    interposed: Option<InterposedCall>,
    /// Lines that go out before anything else.
    ready: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Option<Instant>,
}

impl Follower {
    fn new(
        version: signal::Receiver<u64>,
        watch: Watch,
        interposed: Option<InterposedCall>,
    ) -> Self {
        let timeout = watch.timeout_seconds.map_or(DEFAULT_TIMEOUT, |seconds| {
            Duration::from_secs(seconds).min(LONGEST)
        });
        let ends = Instant::now() + timeout;
        Self {
            version,
            next_bookmark: watch.bookmarks.then(|| next_bookmark(ends)).flatten(),
            watch,
            interposed,
            ready: VecDeque::new(),
            ends,
        }
    }

    async fn step(&mut self) -> Step {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Step::Line(line);
            }
            self.version.mark_unchanged();
            match self.watch.next() {
                Err(refusal) => return self.last(&refusal),
                Ok(Some(event)) => {
                    if let Some(step) = self.deliver(event).await {
                        return step;
                    }
                }
                Ok(None) => match self.wait().await {
                    WakeReason::NewData => {}
                    WakeReason::Quiet => {
                        let mark = self.watch.bookmark();
                        if let Some(step) = self.deliver(mark).await {
                            return step;
                        }
                    }
                    WakeReason::Over => return Step::Over,
                },
            }
        }
    }

    /// The error that ends the watch.
    fn last(&self, refusal: &Refusal) -> Step {
        let error = Event::error(refusal);
        Step::LastLine(error.encoded(self.watch.encoding).into())
    }

    /// Waits until there may be something to say.
    async fn wait(&mut self) -> WakeReason {
        let bookmark = self.next_bookmark;
        tokio::select! {
            biased;
            changed = self.version.changed() => match changed {
                Ok(()) => WakeReason::NewData,
                Err(_) => WakeReason::Over,
            },
            () = sleep_until(self.ends) => WakeReason::Over,
            () = sleep_until(bookmark.unwrap_or(self.ends)), if bookmark.is_some() => {
                self.next_bookmark = next_bookmark(self.ends);
                WakeReason::Quiet
            }
        }
    }

    /// Sends an event through the interposer; the step, unless it simply waits to go out.
    async fn deliver(&mut self, event: Event) -> Option<Step> {
        let passage = match &self.interposed {
            None => Passage::Deliver,
            Some(interposed) => {
                let watched = Watched {
                    kind: event.kind,
                    object: &event.object,
                };
                interposed
                    .interposer
                    .watched(&interposed.call, &watched)
                    .await
            }
        };
        let line = Bytes::from(event.encoded(self.watch.encoding));
        match passage {
            Passage::Deliver => self.ready.push_back(line),
            Passage::Twice => self.ready.extend([line.clone(), line]),
            Passage::Disconnect => return Some(Step::Broken),
            Passage::Refuse(refusal) => {
                return Some(self.last(&refusal));
            }
        }
        None
    }
}
