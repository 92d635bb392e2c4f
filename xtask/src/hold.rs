//! One at a time: two runs must not build with, fetch into, or start in, the same folder at once.

use crate::faults::strip_credentials;
use crate::interrupt;
use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a run waits for what takes another one seconds or, over a slow line, some minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a lock may outlive its holder: a child that was just forked has it until it becomes another program.
const BLINK: Duration = Duration::from_millis(300);

/// Who holds a lock, as its file tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// What its children carry in [`crate::runner::RUN`], so that they are found when it is gone.
    pub run: String,
}

/// Keeps other runs out for as long as it lives.
///
/// The lock is the kernel's and not the file: whoever dies lets go of it. A holder that ends in order clears the file, so
/// what is found in it tells of one that could not.
pub struct Hold {
    file: File,
    /// Who holds it: this process.
    pub holder: Holder,
    /// Who held it before and did not end in order.
    pub died: Option<Holder>,
}

impl Hold {
    /// Takes hold of what happens to a folder, or refuses, at once as people see it. `what` keeps apart what may happen at
    /// the same time.
    ///
    /// Errors: `E_LOCKED` with the holder's process and command.
    pub fn take(folder: &Path, what: &str) -> Result<Hold> {
        Hold::within(BLINK, folder, what, &|_| ())
    }

    /// The same, but waits for the other run to end.
    ///
    /// Errors: `E_LOCKED` after ten minutes.
    pub fn wait(folder: &Path, what: &str, say: &dyn Fn(&str)) -> Result<Hold> {
        Hold::within(PATIENCE, folder, what, say)
    }

    fn within(patience: Duration, folder: &Path, what: &str, say: &dyn Fn(&str)) -> Result<Hold> {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let path = folder.join(format!("{what}.lock"));
        let opening = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opening.with_context(|| format!("opening {}", path.display()))?;
        let start = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Hold::note(file).with_context(|| format!("writing {}", path.display())),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("locking {}", path.display()));
                }
                Err(TryLockError::WouldBlock) if start.elapsed() >= patience => break,
                Err(TryLockError::WouldBlock) if !told => {
                    say(&format!("waiting for {}", named(&mut file)));
                    told = true;
                }
                Err(TryLockError::WouldBlock) => interrupt::sleep(Duration::from_millis(100))?,
            }
        }
        refuse(
            Id::Locked,
            path.display().to_string(),
            format!("it is held by {}", named(&mut file)),
            "wait for it to end or end it, then run the same command again",
        )
    }

    /// Writes down who holds it now. It is a note for people and for the next run; the lock holds without it.
    fn note(mut file: File) -> Result<Hold> {
        let died = read(&mut file);
        let pid = std::process::id();
        let words: Vec<String> = std::env::args().skip(1).collect();
        let command = strip_credentials(&format!("cargo xtask {}", words.join(" ")));
        // A process id comes again, a moment does not.
        let moment = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
        let holder = Holder { pid, command, run: format!("{pid}-{moment}") };
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&serde_json::to_vec(&holder)?)?;
        Ok(Hold { file, holder, died })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.file.set_len(0).ok();
    }
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The holder, in words.
fn named(file: &mut File) -> String {
    match read(file) {
        Some(holder) => format!("process {}: {}", holder.pid, holder.command),
        None => "another run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_for_each_folder_and_purpose() {
        let dir = tempfile::tempdir().unwrap();
        let held = Hold::take(dir.path(), "engine").unwrap();
        let refused = Hold::take(dir.path(), "engine").err().unwrap().to_string();
        let holder = format!("process {}: cargo xtask", std::process::id());
        assert!(refused.contains("E_LOCKED") && refused.contains(&holder), "{refused}");
        assert!(Hold::take(dir.path(), "packages").is_ok());
        drop(held);
        assert_eq!(Hold::take(dir.path(), "engine").unwrap().died, None);
    }

    #[test]
    fn a_dead_holder_is_told_and_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let dead = Holder { pid: 1, command: "cargo xtask build".to_owned(), run: "1-1".to_owned() };
        crate::files::write(&dir.path().join("run.lock"), &serde_json::to_vec(&dead).unwrap()).unwrap();
        assert_eq!(Hold::take(dir.path(), "run").unwrap().died, Some(dead));
        assert_eq!(Hold::take(dir.path(), "run").unwrap().died, None);
    }
}
