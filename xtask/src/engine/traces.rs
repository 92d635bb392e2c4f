//! What there is of an engine on this machine, as the kernel tells it: processes, mounts, control groups.

use crate::runner::Step;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Programs that an engine consists of. A shell that merely names the engine's folder is none of them.
const PROGRAMS: &[&str] = &["dockerd", "containerd", "runc", "docker-proxy", "docker-init"];

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// Its arguments, one after the other.
    pub line: String,
    /// Its control groups, as `/proc/<pid>/cgroup` tells them.
    pub groups: String,
}

impl Process {
    /// Whether it belongs to the engine that runs from `run` and whose control group is `name`: one of the engine's
    /// programs that was told this folder, or anything inside a container.
    fn is_of(&self, run: &Path, name: &str) -> bool {
        let program =
            PROGRAMS.contains(&self.program.as_str()) || self.program.starts_with("containerd-shim");
        let told = self.line.contains(&format!("{}/", run.display()));
        (program && told) || self.groups.lines().any(|line| line.contains(&format!("/{name}/")))
    }
}

/// All processes of an engine. The dead that nobody waited for have no arguments and are left out.
pub fn of_engine(run: &Path, name: &str) -> Vec<Process> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    folders
        .filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
        .filter(|process| process.is_of(run, name))
        .collect()
}

fn read(pid: u32) -> Option<Process> {
    let text = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).ok();
    let line = String::from_utf8_lossy(&text("cmdline")?).trim_end_matches('\0').replace('\0', " ");
    let program = line.split(' ').next()?.rsplit('/').next()?.to_owned();
    let groups = String::from_utf8_lossy(&text("cgroup").unwrap_or_default()).into_owned();
    (!line.is_empty()).then_some(Process { pid, program, line, groups })
}

/// What is mounted below some folders, the innermost first.
pub fn mounts_below(folders: &[PathBuf]) -> Vec<PathBuf> {
    mounts_in(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(), folders)
}

fn mounts_in(mountinfo: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let point = |line: &str| line.split(' ').nth(4).map(unescape);
    let mut found: Vec<PathBuf> = mountinfo.lines().filter_map(point).collect();
    found.retain(|mount| folders.iter().any(|folder| mount.starts_with(folder)));
    found.reverse();
    found
}

/// The kernel writes blanks, tabs, line breaks and backslashes as three octal digits.
fn unescape(word: &str) -> PathBuf {
    let replaced = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(word.to_owned(), |text, (code, letter)| text.replace(code, letter));
    PathBuf::from(replaced)
}

/// Unmounts what is left below some folders, also where something still holds it.
pub fn unmount_below(folders: &[PathBuf]) -> Result<()> {
    for mount in mounts_below(folders) {
        let path = mount.display().to_string();
        // One of many may be gone with another; what counts is what is left in the end.
        Step::new("unmount", ["umount", "--lazy", &path]).taking_back().output()?;
    }
    Ok(())
}

/// Removes an engine's empty control groups, in both layouts of the kernel.
pub fn remove_groups(name: &str) {
    let top = Path::new("/sys/fs/cgroup");
    let controllers = std::fs::read_dir(top).into_iter().flatten().flatten().map(|e| e.path());
    for group in controllers.chain([top.to_owned()]).map(|c| c.join(name)).filter(|g| g.is_dir()) {
        remove_empty(&group);
    }
}

/// Removes a tree of folders as far as it holds nothing else.
pub fn remove_empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // A folder that holds something else is somebody else's by now.
    std::fs::remove_dir(folder).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(line: &str, groups: &str) -> Process {
        let program = line.split(' ').next().unwrap().rsplit('/').next().unwrap().to_owned();
        Process { pid: 1, program, line: line.into(), groups: groups.into() }
    }

    #[test]
    fn only_processes_of_this_engine_are_its_own() {
        let (run, name) = (Path::new("/run/xtask-1"), "xtask-1");
        let ours = [
            ("dockerd --pidfile /run/xtask-1/docker.pid", ""),
            ("/x/usr/bin/containerd --config /run/xtask-1/exec/containerd/containerd.toml", ""),
            ("/x/containerd-shim-runc-v2 -address /run/xtask-1/exec/containerd/containerd.sock", ""),
            ("python -m server", "4:cpu:/xtask-1/0a1b\n0::/xtask-1/0a1b"),
        ];
        let others = [
            ("dockerd --pidfile /run/xtask-12/docker.pid", ""),
            ("tail -f /run/xtask-1/dockerd.log", ""),
            ("python -m server", "0::/xtask-12/0a1b"),
            ("dockerd", "0::/system.slice/docker.service"),
        ];
        for (line, groups) in ours {
            assert!(process(line, groups).is_of(run, name), "{line}");
        }
        for (line, groups) in others {
            assert!(!process(line, groups).is_of(run, name), "{line}");
        }
    }

    #[test]
    fn mounts_are_found_innermost_first() {
        let text = "22 1 0:20 / / rw - ext4 /dev/a rw\n\
            30 22 0:30 / /d/data/a rw - overlay overlay rw\n\
            31 30 0:31 / /d/data/a/b\\040c rw - tmpfs t rw\n\
            32 22 0:32 / /d/database rw - tmpfs t rw\n";
        let found = mounts_in(text, &[PathBuf::from("/d/data")]);
        assert_eq!(found, [PathBuf::from("/d/data/a/b c"), PathBuf::from("/d/data/a")]);
    }

    #[test]
    fn folders_go_as_far_as_they_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b/c")).unwrap();
        std::fs::create_dir_all(at("d/e")).unwrap();
        std::fs::write(at("d/file"), "").unwrap();
        remove_empty(&at("a"));
        remove_empty(&at("d"));
        assert!(!at("a").exists() && at("d/file").exists() && !at("d/e").exists());
    }
}
