//! Runs programs side by side. What each prints is kept together and shown when it ends.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often to report what still runs.
const REPORT_PERIOD: Duration = Duration::from_mins(1);

/// A program to run.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) command: Command,
}

/// A program that has ended.
pub(crate) struct Finished {
    pub(crate) name: String,
    /// How it ended, or why it could not be run.
    pub(crate) status: io::Result<ExitStatus>,
    /// Its standard output and error, in the order in which they were written.
    pub(crate) output: Vec<u8>,
    pub(crate) time: Duration,
}

pub(crate) enum Event {
    Finished(Finished),
    /// These have been running for more than [`REPORT_PERIOD`].
    StillRunning(Vec<String>),
}

enum Message {
    Started(String),
    Finished(Finished),
}

/// Runs the jobs in their order, `at_once` at a time.
pub(crate) fn run(jobs: Vec<Job>, at_once: usize, mut on_event: impl FnMut(Event)) {
    let queue = Mutex::new(VecDeque::from(jobs));
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || work(queue, &sender));
        }
        // The channel closes when the last worker has ended.
        drop(sender);
        let mut running = Vec::new();
        loop {
            match receiver.recv_timeout(REPORT_PERIOD) {
                Ok(Message::Started(name)) => running.push(name),
                Ok(Message::Finished(finished)) => {
                    running.retain(|name| *name != finished.name);
                    on_event(Event::Finished(finished));
                }
                Err(RecvTimeoutError::Timeout) => on_event(Event::StillRunning(running.clone())),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    });
}

fn work(queue: &Mutex<VecDeque<Job>>, sender: &Sender<Message>) {
    loop {
        let next = queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(job) = next else { return };
        // The receiver only goes away with the whole run.
        let _ = sender.send(Message::Started(job.name.clone()));
        let _ = sender.send(Message::Finished(run_job(job)));
    }
}

fn run_job(Job { name, command }: Job) -> Finished {
    let start = Instant::now();
    let mut output = Vec::new();
    let status = run_into(command, &mut output);
    Finished {
        name,
        status,
        output,
        time: start.elapsed(),
    }
}

/// A file rather than a pipe: a grandchild that outlives the program would keep a pipe open.
fn run_into(mut command: Command, output: &mut Vec<u8>) -> io::Result<ExitStatus> {
    let mut file = unlinked_file()?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file.try_clone()?)
        .status()?;
    file.rewind()?;
    file.read_to_end(output)?;
    Ok(status)
}

/// A new file without a name, which is gone when it is closed.
fn unlinked_file() -> io::Result<File> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("xtask-{}-{number}.log", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let file = File::options()
        .read(true)
        .append(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_owned(),
            command,
        }
    }

    fn finished(jobs: Vec<Job>, at_once: usize) -> Vec<Finished> {
        let mut all = Vec::new();
        run(jobs, at_once, |event| {
            if let Event::Finished(one) = event {
                all.push(one);
            }
        });
        all
    }

    #[test]
    fn output_of_both_streams_stays_together_and_in_order() {
        let scripts = ["a", "b", "c"].map(|name| {
            let script = format!("echo {name}1; echo {name}2 >&2; echo {name}3; exit 3");
            job(name, &script)
        });
        let mut all = finished(scripts.into(), 2);
        all.sort_by(|left, right| left.name.cmp(&right.name));
        let seen: Vec<_> = all
            .iter()
            .map(|one| String::from_utf8_lossy(&one.output).into_owned())
            .collect();
        assert_eq!(seen, ["a1\na2\na3\n", "b1\nb2\nb3\n", "c1\nc2\nc3\n"]);
        let codes: Vec<_> = all
            .iter()
            .map(|one| one.status.as_ref().unwrap().code())
            .collect();
        assert_eq!(codes, [Some(3); 3]);
    }

    #[test]
    fn two_programs_can_wait_for_each_other_only_if_they_run_side_by_side() {
        let folder = std::env::temp_dir().join(format!("xtask-parallel-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let pipe = pipe.display();
        // Opening one end of a FIFO blocks until the other end is opened.
        let all = finished(
            vec![
                job("reader", &format!("cat {pipe}")),
                job("writer", &format!("echo hello > {pipe}")),
            ],
            2,
        );
        let reader = all.iter().find(|one| one.name == "reader").unwrap();
        assert_eq!(reader.output, b"hello\n");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_that_does_not_exist_is_reported_and_the_others_run() {
        let missing = Job {
            name: "missing".to_owned(),
            command: Command::new("/no/such/program"),
        };
        let all = finished(vec![missing, job("there", "true")], 1);
        assert!(all[0].status.is_err());
        assert!(all[1].status.as_ref().unwrap().success());
    }
}
