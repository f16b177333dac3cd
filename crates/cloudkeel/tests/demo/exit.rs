//! Whatever ends the demo, nothing of it is left.

use crate::process::{Demo, all_gone, lives};

async fn ends_by(signal: &str, expected: Option<i32>) {
    let mut demo = Demo::start(&["--scenario", "join"]);
    let (pids, folder) = (demo.managers(), demo.folder());
    assert_eq!(pids.len(), 2, "{}", demo.started);
    assert!(pids.iter().all(|pid| lives(*pid)), "both managers run");
    assert!(folder.exists());
    let step = demo.line().expect("the first step");
    assert_eq!(step["step"]["name"], "join");
    demo.signal(signal);
    assert_eq!(demo.ended().await, expected, "{signal}");
    all_gone(&pids, &folder).await;
}

#[tokio::test]
async fn an_interrupt_leaves_no_process_and_no_folder() {
    ends_by("INT", Some(0)).await;
}

#[tokio::test]
async fn a_termination_leaves_no_process_and_no_folder() {
    ends_by("TERM", Some(0)).await;
}

#[tokio::test]
async fn a_demo_that_is_killed_leaves_no_process_and_no_folder() {
    ends_by("KILL", None).await;
}
