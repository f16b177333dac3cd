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

/// How often a quiet watch says that nothing was missed.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long a watch lasts that does not say it.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// How long a watch lasts at most, whatever it says.
const LONGEST: Duration = Duration::from_hours(24);

/// The way from a client to the API, and who stands on it.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) call: Call,
    pub(crate) interposer: Arc<dyn Interposer>,
}

impl EmbeddedApi {
    /// An answer on the wire.
    pub(crate) fn respond(&self, answer: Answer, way: Option<Way>) -> Response<AnswerBody> {
        let Answer::Watch(watch) = answer else {
            return respond(answer);
        };
        let follower = Follower::new(self.follow(), *watch, way);
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
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
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
enum Woken {
    /// There may be something new.
    News,
    /// It was quiet for so long that it says so.
    Quiet,
    /// The time is over.
    Over,
}

struct Follower {
    version: signal::Receiver<u64>,
    watch: Watch,
    way: Option<Way>,
    /// Lines that go out before anything else.
    ready: VecDeque<Bytes>,
    ends: Instant,
    next_bookmark: Instant,
}

impl Follower {
    fn new(version: signal::Receiver<u64>, watch: Watch, way: Option<Way>) -> Self {
        let timeout = watch.timeout_seconds.map_or(DEFAULT_TIMEOUT, |seconds| {
            Duration::from_secs(seconds).min(LONGEST)
        });
        let now = Instant::now();
        Self {
            version,
            watch,
            way,
            ready: VecDeque::new(),
            ends: now + timeout,
            next_bookmark: now + BOOKMARK_EVERY,
        }
    }

    async fn step(&mut self) -> Step {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Step::Line(line);
            }
            self.version.mark_unchanged();
            match self.watch.next() {
                Err(refusal) => return Step::LastLine(Event::error(&refusal).line().into()),
                Ok(Some(event)) => {
                    if let Some(step) = self.deliver(event).await {
                        return step;
                    }
                }
                Ok(None) => match self.wait().await {
                    Woken::News => {}
                    Woken::Quiet => {
                        let mark = self.watch.bookmark();
                        if let Some(step) = self.deliver(mark).await {
                            return step;
                        }
                    }
                    Woken::Over => return Step::Over,
                },
            }
        }
    }

    /// Waits until there may be something to say.
    async fn wait(&mut self) -> Woken {
        let bookmarks = self.watch.bookmarks;
        tokio::select! {
            biased;
            changed = self.version.changed() => match changed {
                Ok(()) => Woken::News,
                Err(_) => Woken::Over,
            },
            () = sleep_until(self.ends) => Woken::Over,
            () = sleep_until(self.next_bookmark), if bookmarks => {
                self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                Woken::Quiet
            }
        }
    }

    /// Sends an event on its way; the step, unless it simply waits to go out.
    async fn deliver(&mut self, event: Event) -> Option<Step> {
        let passage = match &self.way {
            None => Passage::Deliver,
            Some(way) => {
                let watched = Watched {
                    kind: event.kind,
                    object: &event.object,
                };
                way.interposer.watched(&way.call, &watched).await
            }
        };
        let line = Bytes::from(event.line());
        match passage {
            Passage::Deliver => self.ready.push_back(line),
            Passage::Twice => self.ready.extend([line.clone(), line]),
            Passage::Disconnect => return Some(Step::Broken),
            Passage::Refuse(refusal) => {
                return Some(Step::LastLine(Event::error(&refusal).line().into()));
            }
        }
        None
    }
}
