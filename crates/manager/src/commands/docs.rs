//! `cloudkeel docs`

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use cloudkeel_api::{Registry, nearest};

use super::CommandError;
use crate::reference;

/// Arguments of `cloudkeel docs`.
#[derive(Debug, Args)]
pub struct DocsArgs {
    /// The page to print; without it, the list of pages.
    page: Option<String>,
    /// Write all pages into this directory instead.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "page")]
    write: Option<PathBuf>,
}

pub(super) fn run(
    args: &DocsArgs,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let pages = reference::pages(registry);
    if let Some(directory) = &args.write {
        fs::create_dir_all(directory)?;
        for page in &pages {
            let path = directory.join(format!("{}.{}", page.name, page.extension));
            fs::write(&path, &page.text)?;
            writeln!(out, "wrote {}", path.display())?;
        }
        return Ok(());
    }
    let Some(name) = &args.page else {
        for page in &pages {
            writeln!(out, "{:24} {}", page.name, page.title)?;
        }
        return Ok(());
    };
    let Some(page) = pages.iter().find(|page| &page.name == name) else {
        let near = nearest(name, pages.iter().map(|page| page.name.as_str()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        return Err(CommandError::NotFound(format!("no page {name:?}{hint}")));
    };
    write!(out, "{}", page.text)?;
    Ok(())
}
