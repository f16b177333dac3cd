//! The process that looks after those that read: a stack that overflows or a loop without end takes down
//! only them.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use cloudkeel_fuzz::Target;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::Arguments;

const LOOK: Duration = Duration::from_millis(500);

/// So many looks without another input are a loop without end, however busy the machine is.
const PATIENCE: u32 = 360;

/// Feeds each target in a process of its own. Whether all went well.
pub(crate) fn run(arguments: &Arguments, chosen: &[Target]) -> anyhow::Result<bool> {
    let out = arguments.out();
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let seconds = arguments
        .seconds
        .map(|all| all.div_ceil(chosen.len().max(1) as u64));
    runtime.block_on(async {
        let mut all_well = true;
        for target in chosen {
            all_well &= one(arguments, *target, seconds, &out).await?;
        }
        Ok(all_well)
    })
}

async fn one(
    arguments: &Arguments,
    target: Target,
    seconds: Option<u64>,
    out: &Path,
) -> anyhow::Result<bool> {
    let present = out.join(format!(".{}.{}", target.name, std::process::id()));
    let mut program = Command::new(std::env::current_exe()?);
    program.args([
        "--target",
        target.name,
        "--seed",
        &arguments.seed.to_string(),
    ]);
    program.arg("--worker").arg(&present).arg("--out").arg(out);
    match seconds {
        Some(seconds) => program.args(["--seconds", &seconds.to_string()]),
        None => program.args(["--rounds", &arguments.rounds.to_string()]),
    };
    let child = program.kill_on_drop(true).spawn()?;
    let well = match ended(child, &present).await? {
        Some(status) if status.code().is_some() => status.success(),
        other => {
            let file = out.join(format!("{}.input", target.name));
            std::fs::copy(&present, &file).with_context(|| present.display().to_string())?;
            let how = other.map_or("has no end".to_owned(), |status| format!("died: {status}"));
            println!("{:20} BROKEN: reading {how}", target.name);
            println!("  again: cargo xtask fuzz --replay {}", file.display());
            false
        }
    };
    // Nobody needs it any more, and a folder of the system's is swept.
    let _ = std::fs::remove_file(&present);
    Ok(well)
}

/// Waits for the end of the process; `None` if it has none.
async fn ended(mut child: Child, present: &Path) -> anyhow::Result<Option<ExitStatus>> {
    let (mut last, mut looks) = (None, 0);
    loop {
        tokio::select! {
            status = child.wait() => return Ok(Some(status?)),
            () = sleep(LOOK) => {}
        }
        let now = std::fs::metadata(present)
            .and_then(|file| file.modified())
            .ok();
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        if looks > PATIENCE {
            child.kill().await?;
            return Ok(None);
        }
    }
}
