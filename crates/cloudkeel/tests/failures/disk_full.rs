//! A disk is full: the one with the certificate, the one with the log, the one of the demo.

use std::path::Path;
use std::process::Command;

use cloudkeel_testkit::cluster::eventually;

use crate::cluster::{join, wait_for_initialized};
use crate::harness::{DEADLINE, Manager, World};
use crate::scrape::{free_port, get};

/// A disk of 64 KiB in a mount namespace of its own, completely full. The rest of the arguments is the program that
/// uses it.
const ON_A_FULL_DISK: &str = "\
    mount -t tmpfs -o size=64k tmpfs \"$0\" && \
    { head -c 128k /dev/zero >\"$0/ballast\" 2>/dev/null; true; } && exec \"$@\"";

fn on_a_full_disk(disk: &Path) -> Command {
    std::fs::create_dir_all(disk).expect("a folder");
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", ON_A_FULL_DISK])
        .arg(disk);
    command
}

/// A file on the disk of a running program, as seen from here.
fn seen_by(manager: &Manager, path: &Path) -> std::path::PathBuf {
    let path = path.strip_prefix("/").expect("an absolute path");
    Path::new("/proc")
        .join(manager.pid().to_string())
        .join("root")
        .join(path)
}

fn flags(world: &World, port: u16) -> Vec<String> {
    let mut flags = world.flags();
    flags.extend([
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
    ]);
    flags
}

async fn is_ready(port: u16) {
    eventually("readiness", DEADLINE, || async {
        get(port, "/readyz", None).await == (200, "ok".to_owned())
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_kept_is_served_all_the_same() {
    let world = World::new().await;
    let disk = world
        .write_file("marker", "")
        .with_file_name("certificates");
    let port = free_port();
    let mut program = on_a_full_disk(&disk);
    program
        .arg(env!("CARGO_BIN_EXE_cloudkeel"))
        .args(flags(&world, port))
        .arg(format!("--cert-dir={}", disk.display()));
    let mut manager = Manager::spawn(program, world.log_file());
    manager
        .wait_for_log("failed to save self-signed certificate")
        .await;
    let log = manager.log();
    assert!(log.contains("No space left on device"), "{log}");
    wait_for_initialized(&world, &join(&world).await.0).await;
    is_ready(port).await;
    let left = std::fs::read_dir(seen_by(&manager, &disk)).expect("the disk");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(
        left,
        ["ballast"],
        "no half of a pair is in the way of the next start"
    );
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing_and_goes_on_when_there_is_room() {
    let world = World::new().await;
    let disk = world.write_file("marker", "").with_file_name("logs");
    let log = disk.join("log");
    let port = free_port();
    let mut program = on_a_full_disk(&disk);
    program
        .args(["sh", "-c", "log=$0; exec \"$@\" 2>>\"$log\""])
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_cloudkeel"))
        .args(flags(&world, port));
    let mut manager = Manager::spawn(program, world.log_file());
    wait_for_initialized(&world, &join(&world).await.0).await;
    is_ready(port).await;
    let log = seen_by(&manager, &log);
    let read = || std::fs::read_to_string(&log).expect("the log");
    assert!(!read().contains("controller started"), "{}", read());
    let ballast = log.with_file_name("ballast");
    std::fs::remove_file(ballast).expect("it is there");
    let (name, _) = join(&world).await;
    wait_for_initialized(&world, &name).await;
    eventually("a line about it", DEADLINE, || async {
        read().contains(&name)
    })
    .await;
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0));
}

#[test]
fn a_demo_without_room_ends_with_the_reason() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let disk = folder.path().join("tmp");
    let output = on_a_full_disk(&disk)
        .args([env!("CARGO_BIN_EXE_cloudkeel"), "demo", "--exit"])
        .env("TMPDIR", &disk)
        .output()
        .expect("the program runs");
    let events = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{events}");
    assert!(events.contains("No space left on device"), "{events}");
}
