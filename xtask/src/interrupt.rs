//! What happens when somebody wants this program to stop: what it runs is ended in order, and then it ends itself.
//!
//! A signal is answered by a thread of its own. It asks every child's process group to end, makes those that do not, and
//! leaves the rest to the main thread: that finds its children gone and comes back through every `?`, so that temporary
//! folders go and locks are let go of. Should it not come back in time, the thread ends the process.

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long children may take to end when they are asked: a bake cancels its steps, a container stops.
const ASKED: Duration = Duration::from_secs(5);
/// How long all of it may take.
const ALL: Duration = Duration::from_secs(8);

static STATE: Mutex<State> = Mutex::new(State { signal: None, groups: BTreeSet::new(), left: Vec::new() });

struct State {
    /// The signal that came.
    signal: Option<i32>,
    /// The process groups of children that run.
    groups: BTreeSet<i32>,
    /// What outlives this program by design, in words.
    left: Vec<String>,
}

/// The error that ends a command which was interrupted; no other error says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted(i32);

impl Interrupted {
    /// The exit code that a shell would give: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
    pub fn exit(self) -> u8 {
        128 + self.0 as u8
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = signal_hook::low_level::signal_name(self.0).unwrap_or("a signal");
        write!(f, "interrupted by {name}: what ran was ended, finished steps are kept")?;
        for left in &state().left {
            write!(f, "; {left}")?;
        }
        f.write_str("; the same command goes on from here")
    }
}

impl std::error::Error for Interrupted {}

/// A poisoned lock means that a thread died; what is in it is as good as before.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to listen for SIGINT, SIGTERM and SIGHUP.
pub fn listen() -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            state().signal = Some(signal);
            // Who asks twice does not want to wait.
            end_all(|| signals.pending().next().is_some());
            eprintln!("{}", Interrupted(signal));
            std::process::exit(Interrupted(signal).exit().into());
        }
    });
    Ok(())
}

/// Ends every child; comes back when the main thread had its time.
fn end_all(mut at_once: impl FnMut() -> bool) {
    let start = Instant::now();
    signal_all(Signal::TERM);
    let mut made = false;
    while start.elapsed() < ALL {
        if !made && (start.elapsed() >= ASKED || at_once()) {
            signal_all(Signal::KILL);
            made = true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    signal_all(Signal::KILL);
}

fn signal_all(signal: Signal) {
    for group in &state().groups {
        send(*group, signal);
    }
}

fn send(group: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(group) {
        // A group that is gone by now is what is wanted.
        kill_process_group(pid, signal).ok();
    }
}

/// Whether this program was interrupted, as an error.
pub fn check() -> Result<(), Interrupted> {
    match state().signal {
        Some(signal) => Err(Interrupted(signal)),
        None => Ok(()),
    }
}

/// Sleeps, but not through an interruption.
pub fn sleep(duration: Duration) -> Result<(), Interrupted> {
    let start = Instant::now();
    while start.elapsed() < duration {
        check()?;
        std::thread::sleep(duration.saturating_sub(start.elapsed()).min(Duration::from_millis(100)));
    }
    check()
}

/// Notes something that runs on when this program ends.
pub fn leaves(what: &str) {
    state().left.push(what.to_owned());
}

/// A child that runs, in a process group of its own.
pub struct Running(i32);

impl Running {
    /// Notes a child by its process id, which is its group's. One that was started too late is asked to end at once,
    /// unless it takes something back.
    pub fn new(pid: u32, takes_back: bool) -> Running {
        let group = pid.cast_signed();
        let mut state = state();
        if state.signal.is_some() && !takes_back {
            send(group, Signal::TERM);
        }
        state.groups.insert(group);
        Running(group)
    }
}

impl Drop for Running {
    /// What a child that ended left in its group has lost its parent, and ends too.
    fn drop(&mut self) {
        let mut state = state();
        state.groups.remove(&self.0);
        if state.signal.is_some() {
            send(self.0, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_a_shells() {
        let codes = [SIGINT, SIGTERM, SIGHUP].map(|signal| Interrupted(signal).exit());
        assert_eq!(codes, [130, 143, 129]);
    }
}
