//! Files that are whole or not there.

use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a file so that a reader sees the old content or the new one, even after a crash: beside it, synced, renamed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // A temporary file is private; what is written here is meant to be read.
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    file.persist(path).with_context(|| format!("writing {}", path.display()))?;
    Ok(())
}

/// Every file below a folder, relative to it, in order.
pub fn walk(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(dir) = left.pop() {
        let at = folder.join(&dir);
        for entry in std::fs::read_dir(&at).with_context(|| format!("reading {}", at.display()))? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            match entry.file_type()?.is_dir() {
                true => left.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("b/c"), b"1").unwrap();
        write(&dir.path().join("a"), b"2").unwrap();
        write(&dir.path().join("a"), b"3").unwrap();
        assert_eq!(walk(dir.path()).unwrap(), [PathBuf::from("a"), PathBuf::from("b/c")]);
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"3");
    }
}
