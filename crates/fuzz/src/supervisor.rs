//! Starts and supervises the worker processes: a stack that overflows or a loop without end takes down only them.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use cloudkeel_fuzz::Target;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::Arguments;

const CHECK_PERIOD: Duration = Duration::from_millis(500);

/// So many checks without another input are a loop without end, however busy the machine is.
const CHECKS_WITHOUT_PROGRESS: u32 = 360;

/// Feeds each target in a process of its own. Whether all went well.
pub(crate) fn run(arguments: &Arguments, chosen: &[Target]) -> anyhow::Result<bool> {
    let out = arguments.out();
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let seed = arguments.seed();
    println!("seed {seed}; the same again: --seed {seed}");
    let seconds = arguments
        .seconds
        .map(|all| all.div_ceil(chosen.len().max(1) as u64));
    runtime.block_on(async {
        let mut all_well = true;
        for target in chosen {
            all_well &= one(arguments, *target, (seed, seconds), &out).await?;
        }
        Ok(all_well)
    })
}

async fn one(
    arguments: &Arguments,
    target: Target,
    (seed, seconds): (u64, Option<u64>),
    out: &Path,
) -> anyhow::Result<bool> {
    let current = out.join(format!(".{}.{}", target.name, std::process::id()));
    let mut program = Command::new(std::env::current_exe()?);
    program.args(["--target", target.name, "--seed", &seed.to_string()]);
    program.arg("--worker").arg(&current).arg("--out").arg(out);
    match seconds {
        Some(seconds) => program.args(["--seconds", &seconds.to_string()]),
        None => program.args(["--rounds", &arguments.rounds.to_string()]),
    };
    let child = program.kill_on_drop(true).spawn()?;
    let well = match ended(child, &current).await? {
        Some(status) if status.code().is_some() => status.success(),
        other => {
            let file = out.join(format!("{}.input", target.name));
            std::fs::copy(&current, &file).with_context(|| current.display().to_string())?;
            let how = other.map_or("has no end".to_owned(), |status| format!("died: {status}"));
            println!("{:20} BROKEN: reading {how}", target.name);
            println!("  again: cargo xtask fuzz --replay {}", file.display());
            false
        }
    };
    // It is of no more use, and a folder of the system's is listed.
    let _ = std::fs::remove_file(&current);
    Ok(well)
}

/// Waits for the end of the process; `None` if it has none.
async fn ended(mut child: Child, current: &Path) -> anyhow::Result<Option<ExitStatus>> {
    let (mut last, mut checks) = (None, 0);
    loop {
        tokio::select! {
            status = child.wait() => return Ok(Some(status?)),
            () = sleep(CHECK_PERIOD) => {}
        }
        let now = std::fs::metadata(current)
            .and_then(|file| file.modified())
            .ok();
        checks = if now == last { checks + 1 } else { 0 };
        last = now;
        if checks > CHECKS_WITHOUT_PROGRESS {
            child.kill().await?;
            return Ok(None);
        }
    }
}
