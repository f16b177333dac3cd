//! Watches a target read one input.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::time::Duration;

use crate::target::{Check, Reader, Target};

/// Time on a processor, which does not pass while others use the machine. Far more than any input needs in
/// a debug build; a parser that is quadratic in the longest input passes it.
const MOST_TIME: Duration = Duration::from_secs(5);

/// How much more memory than ever before one input may take.
const MOST_GROWTH: u64 = 256 << 20;

thread_local! {
    /// Whether this thread reads for a guard.
    static READING: Cell<bool> = const { Cell::new(false) };
    /// The last panic of this thread while it read; tokio swallows those of its tasks.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// How an input broke a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// It panicked, here and with these words.
    Panic(String),
    /// It used a processor for so long.
    Slow(Duration),
    /// It took so many more bytes of memory.
    Greedy(u64),
    /// It did what it must not do.
    Property(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(what) => write!(f, "panic: {what}"),
            Self::Slow(time) => write!(f, "no end after {time:?} of work"),
            Self::Greedy(bytes) => write!(f, "{} MiB of memory", bytes >> 20),
            Self::Property(what) => write!(f, "wrong: {what}"),
        }
    }
}

impl Broken {
    /// Whether it is the same mistake, as far as is known: a smaller input may break something else.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Panic(one), Self::Panic(other)) => place(one) == place(other),
            (Self::Property(one), Self::Property(other)) => kind(one) == kind(other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The file and line of a panic.
fn place(panic: &str) -> &str {
    panic.split(": ").next().unwrap_or_default()
}

/// What a property says before it shows values.
fn kind(property: &str) -> &str {
    property.split(':').next().unwrap_or_default()
}

/// Notes panics of threads that read, in place of printing them.
pub fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !READING.get() {
                return before(info);
            }
            let place = info.location().map(ToString::to_string);
            let words = info.payload_as_str().unwrap_or("no words");
            let note = format!("{}: {words}", place.unwrap_or_default());
            PANICKED.set(Some(note));
        }));
    });
}

/// A target that is being watched.
pub struct Guard {
    target: Target,
    reader: Reader,
}

impl Guard {
    /// Starts to watch.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            reader: (target.reader)(),
        }
    }

    /// Lets the target read, and says how that broke it, if it did.
    pub fn read(&mut self, input: &[u8]) -> Option<Broken> {
        take_panic();
        let (time, memory) = (processor_time(), most_memory());
        let reader = &mut self.reader;
        READING.set(true);
        let checked = panic::catch_unwind(AssertUnwindSafe(|| reader(input)));
        READING.set(false);
        let time = processor_time().saturating_sub(time);
        let growth = most_memory().saturating_sub(memory);
        let broken = classify(checked, time, growth);
        if matches!(broken, Some(Broken::Panic(_))) {
            self.reader = (self.target.reader)();
        }
        broken
    }
}

fn classify(checked: std::thread::Result<Check>, time: Duration, growth: u64) -> Option<Broken> {
    let unwound = checked.is_err();
    if let Some(panicked) = take_panic() {
        return Some(Broken::Panic(panicked));
    }
    if unwound {
        return Some(Broken::Panic("at an unknown place".to_owned()));
    }
    if time > MOST_TIME {
        return Some(Broken::Slow(time));
    }
    if growth > MOST_GROWTH {
        return Some(Broken::Greedy(growth));
    }
    checked.ok()?.err().map(Broken::Property)
}

fn take_panic() -> Option<String> {
    PANICKED.take()
}

/// How long this thread has been on a processor; nothing where the system does not say.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// The most memory that the process ever had, in bytes; nothing where the system does not say.
fn most_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}
