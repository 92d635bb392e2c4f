//! Ending processes, and finding those of a run that died.

use crate::hold::Holder;
use crate::runner::{RUN, Step};
use anyhow::Result;
use std::time::{Duration, Instant};

/// How long what a dead run left may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends what a run that was killed started, and all that came of it.
pub fn end_of_run(died: &Holder) -> Result<()> {
    let mark = format!("{RUN}={}", died.run);
    end(&|| carrying(&mark), PATIENCE)
}

/// The processes that have a variable with a value, `NAME=value`, in their environment. Those of other users cannot be
/// looked at, and are none of ours.
fn carrying(mark: &str) -> Vec<u32> {
    let carries = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(carries).collect()
}

/// Ends processes: asks, waits, and then makes them. `find` finds those that are left.
pub fn end(find: &dyn Fn() -> Vec<u32>, patience: Duration) -> Result<()> {
    for (signal, patience) in [("TERM", patience), ("KILL", Duration::from_secs(5))] {
        let left = find();
        if left.is_empty() {
            return Ok(());
        }
        send(signal, &left)?;
        wait_until(patience, || find().is_empty());
    }
    Ok(())
}

/// Sends a signal. A process that is gone by then is no failure.
pub fn send(signal: &str, pids: &[u32]) -> Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    // Every shell has `kill`; not every system has the program.
    let script = "kill -s \"$0\" \"$@\" 2>/dev/null || true";
    let step = Step::new("end a process", ["sh", "-c", script, signal]).args(pids.iter().map(u32::to_string));
    step.taking_back().read()?;
    Ok(())
}

/// Waits for something, looking ten times a second; whether it came.
pub fn wait_until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if start.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_run_left_is_found_by_its_mark_and_ended() {
        let sleep = |run: &str| std::process::Command::new("sleep").arg("60").env(RUN, run).spawn().unwrap();
        let (mut left, mut other) = (sleep("dead-1"), sleep("dead-12"));
        let died = Holder { pid: 1, command: String::new(), run: "dead-1".to_owned() };
        assert!(wait_until(PATIENCE, || carrying("XTASK_RUN=dead-1") == [left.id()]));
        // Nobody waits for the orphans of a dead run; here this test does.
        let ended = std::thread::spawn(move || left.wait().unwrap());
        end_of_run(&died).unwrap();
        assert!(!ended.join().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_process_is_asked_and_then_made_to_end() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "trap '' TERM; while :; do sleep 0.1; done"])
            .spawn()
            .unwrap();
        let pid = child.id();
        let state = move || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let alive = move || match state().contains(") Z ") {
            true => vec![],
            false => vec![pid],
        };
        end(&alive, Duration::from_millis(300)).unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
