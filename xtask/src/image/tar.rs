//! A tar archive in the oldest format that all readers know, with nothing in it that differs between two runs.

/// What stands at a path.
pub(crate) enum Entry<'a> {
    Folder,
    /// A file that all may read, and perhaps run.
    File {
        bytes: &'a [u8],
        is_program: bool,
    },
    /// A symbolic link to this path.
    Link(&'a str),
}

const BLOCK: usize = 512;

/// What a header has room for.
const MAX_PATH: usize = 100;

/// The archive of these entries, in this order, all of them root's and made at this time.
pub(crate) fn archive(entries: &[(&str, Entry<'_>)], seconds: u64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (path, entry) in entries {
        out.extend(header(path, entry, seconds)?);
        if let Entry::File { bytes, .. } = entry {
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(BLOCK), 0);
        }
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

fn header(path: &str, entry: &Entry<'_>, seconds: u64) -> Result<Vec<u8>, String> {
    let (kind, mode, size, target) = match entry {
        Entry::Folder => (b'5', 0o755, 0, ""),
        Entry::File { bytes, is_program } => (
            b'0',
            if *is_program { 0o755 } else { 0o644 },
            bytes.len(),
            "",
        ),
        Entry::Link(target) => (b'2', 0o777, 0, *target),
    };
    if let Some(long) = [path, target].iter().find(|text| text.len() > MAX_PATH) {
        return Err(format!(
            "{long}: a path in the image has at most {MAX_PATH} bytes"
        ));
    }
    let mut out = Vec::with_capacity(BLOCK);
    let mut field = |text: &[u8], width: usize| {
        let end = out.len() + width;
        out.extend_from_slice(text);
        out.resize(end, 0);
    };
    field(path.as_bytes(), MAX_PATH);
    field(format!("{mode:07o}").as_bytes(), 8);
    field(b"0000000", 8);
    field(b"0000000", 8);
    field(format!("{size:011o}").as_bytes(), 12);
    field(format!("{seconds:011o}").as_bytes(), 12);
    // The checksum counts as spaces while it is computed.
    field(b"        ", 8);
    field(&[kind], 1);
    field(target.as_bytes(), MAX_PATH);
    field(b"ustar\x0000", BLOCK - 257);
    let sum: u64 = out.iter().map(|byte| u64::from(*byte)).sum();
    let (before, rest) = out.split_at(148);
    let after = rest.get(8..).unwrap_or_default();
    let sum = format!("{sum:06o}\0 ");
    Ok([before, sum.as_bytes(), after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_written_is_what_tar_unpacks() {
        let folder = std::env::temp_dir().join(format!("xtask-tar-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let long = vec![b'x'; BLOCK + 1];
        let program = Entry::File {
            bytes: b"#!/bin/sh\necho it runs\n",
            is_program: true,
        };
        let entries = [
            ("bin/", Entry::Folder),
            ("bin/run", program),
            (
                "long",
                Entry::File {
                    bytes: &long,
                    is_program: false,
                },
            ),
            ("also", Entry::Link("bin/run")),
        ];
        let bytes = archive(&entries, 1_700_000_000).unwrap();
        assert_eq!(bytes.len() % BLOCK, 0);
        let file = folder.join("a.tar");
        std::fs::write(&file, bytes).unwrap();
        let unpacked = Command::new("tar")
            .arg("xf")
            .arg(&file)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(unpacked.status.success(), "{unpacked:?}");
        assert_eq!(std::fs::read(folder.join("long")).unwrap(), long);
        let run = Command::new(folder.join("also")).output().unwrap();
        assert_eq!(run.stdout, b"it runs\n");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_that_does_not_fit_is_named() {
        let long = "a".repeat(MAX_PATH + 1);
        let error = archive(&[(&long, Entry::Folder)], 0).unwrap_err();
        assert!(error.contains(&long), "{error}");
    }
}
