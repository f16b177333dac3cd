//! The token of the API.

use std::io;
use std::path::Path;

use super::state_file::replace;

/// The token in a file; a new one is made if there is no file.
pub(crate) fn read_or_make(path: &Path) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {
            let why = "it is empty: write a token into it, or remove it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let token = uuid::Uuid::new_v4().simple().to_string();
    replace(path, token.as_bytes())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("token");
        let made = read_or_make(&path).unwrap();
        assert_eq!(made.len(), 32);
        assert_eq!(read_or_make(&path).unwrap(), made);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "\n").unwrap();
        assert!(read_or_make(&path).is_err());
    }
}
