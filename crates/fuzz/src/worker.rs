//! The process that runs fuzz targets.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cloudkeel_fuzz::{Found, Guard, Span, Target, fuzz, watch_panics};

use crate::Arguments;

/// As the threads of tokio have it: what overflows there must overflow here.
const STACK: usize = 2 << 20;

/// Feeds these targets, with the current input always in the file: a process that dies cannot report it.
pub(crate) fn work(
    arguments: &Arguments,
    chosen: Vec<Target>,
    current: &Path,
) -> anyhow::Result<bool> {
    watch_panics();
    let (arguments, current) = (arguments.clone(), current.to_owned());
    on_a_small_stack(move || {
        let mut all_well = true;
        for target in chosen {
            let (rounds, found) = feed(&arguments, target, &current);
            let result = if found.is_some() { "BROKEN" } else { "fine" };
            println!("{:20} {rounds:>8} inputs  {result}", target.name);
            if let Some(found) = found {
                all_well = false;
                report(&arguments, target, &found)?;
            }
        }
        Ok(all_well)
    })
}

fn feed(arguments: &Arguments, target: Target, current: &Path) -> (u64, Option<Found>) {
    let share = |rounds: u64| (rounds * u64::from(target.share)).div_ceil(100);
    let span = Span {
        seed: arguments.seed(),
        rounds: arguments
            .seconds
            .map_or(share(arguments.rounds), |_| u64::MAX),
    };
    let began = Instant::now();
    let most = arguments.seconds.map(Duration::from_secs);
    fuzz(target, span, &mut |_, input| {
        // Without it only the input of a process that dies is lost.
        let _ = std::fs::write(current, input);
        if most.is_some_and(|most| began.elapsed() >= most) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })
}

fn report(arguments: &Arguments, target: Target, found: &Found) -> anyhow::Result<()> {
    let file = arguments.out().join(format!("{}.input", target.name));
    std::fs::write(&file, &found.input).with_context(|| file.display().to_string())?;
    println!("  {}", found.how);
    println!(
        "  {} bytes: {}",
        found.input.len(),
        found.input.escape_ascii()
    );
    println!("  again: cargo xtask fuzz --replay {}", file.display());
    Ok(())
}

/// Reads one file.
pub(crate) fn replay(target: Target, file: &Path) -> anyhow::Result<bool> {
    let input = std::fs::read(file).with_context(|| file.display().to_string())?;
    watch_panics();
    on_a_small_stack(move || {
        let broken = Guard::new(target).read(&input);
        match &broken {
            Some(broken) => println!("{}: {broken}", target.name),
            None => println!("{}: fine", target.name),
        }
        Ok(broken.is_none())
    })
}

fn on_a_small_stack(
    work: impl FnOnce() -> anyhow::Result<bool> + Send + 'static,
) -> anyhow::Result<bool> {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work)?;
    let ended = thread.join();
    ended.map_err(|_| anyhow::anyhow!("the fuzzer itself panicked"))?
}
