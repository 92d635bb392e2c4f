//! Files that are whole or not there.

use anyhow::{Context, Result};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Writes a file so that a reader sees the old content or the new one, even after a crash or on a full disk: beside it,
/// synced, renamed. Everybody may read it, whatever the umask.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_as(0o644, path, bytes)
}

/// The same, but only its owner may read it: sources and proxies can hold credentials.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write_as(0o600, path, bytes)
}

fn write_as(mode: u32, path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    forget_orphans(folder);
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(&mark()).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("writing {}", path.display()))
}

/// This user's folder for what can be had again, by the platform's convention: the XDG base directory specification, or
/// macOS's `~/Library/Caches`.
pub fn user_cache() -> PathBuf {
    let home = || std::env::home_dir().unwrap_or_default();
    let folder = match std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|it| it.is_absolute()) {
        Some(folder) => folder,
        None if cfg!(target_os = "macos") => home().join("Library/Caches"),
        None => home().join(".cache"),
    };
    folder.join("pytorch-cuda-images")
}

/// A folder to work in, which goes when the value does; what runs that were killed left beside it goes now.
///
/// Everybody may enter it: apt's unprivileged methods must.
pub fn work_folder(parent: &Path) -> Result<TempDir> {
    std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    forget_orphans(parent);
    tempfile::Builder::new()
        .prefix(&mark())
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .with_context(|| format!("creating a folder in {}", parent.display()))
}

/// Makes a folder that has nothing in it; what was in it goes.
pub fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

/// What the names of files and folders that are not finished begin with: they tell whose they are.
fn mark() -> String {
    format!("work-{}-", std::process::id())
}

/// Removes what processes that are gone were making in a folder.
fn forget_orphans(folder: &Path) {
    for name in names(folder).into_iter().filter(|name| is_orphan(name)) {
        // Another process may be faster; mounts went with the process that made them.
        let path = folder.join(name);
        if std::fs::remove_file(&path).is_err() {
            std::fs::remove_dir_all(&path).ok();
        }
    }
}

/// Whether the process is gone: `work-<pid>-…`.
fn is_orphan(name: &str) -> bool {
    let pid = name.strip_prefix("work-").and_then(|rest| rest.split('-').next());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}

/// The names in a folder; none where there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
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
    #[test]
    fn what_may_hold_credentials_is_private_and_the_rest_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mode =
            |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        write_private(&dir.path().join("a"), b"1").unwrap();
        write(&dir.path().join("b"), b"1").unwrap();
        assert_eq!((mode("a"), mode("b")), (0o600, 0o644));
    }

    #[test]
    fn what_a_killed_run_left_goes_and_what_a_running_one_needs_stays() {
        let dir = tempfile::tempdir().unwrap();
        let own = work_folder(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("work-4194305-x")).unwrap(); // above the kernel's largest id
        std::fs::create_dir(dir.path().join("0123456789abcdef")).unwrap();
        std::fs::write(dir.path().join("work-4194306-y"), "half").unwrap();
        write(&dir.path().join("whole"), b"1").unwrap();
        assert!(!dir.path().join("work-4194306-y").exists());
        let second = work_folder(dir.path()).unwrap();
        assert!(own.path().exists() && second.path().exists());
        assert!(!dir.path().join("work-4194305-x").exists());
        assert!(dir.path().join("0123456789abcdef").exists());
    }
}
