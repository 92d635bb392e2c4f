//! Where words go: results to standard output, everything else to standard error.

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Elsewhere than on a terminal, work that says nothing for this long says that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(20);

/// The moving lines of a terminal, one below the other; words go above them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// How much is said, and in which form results are given.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    /// Results as JSON.
    pub json: bool,
    /// Every line of the programs that are run.
    pub verbose: bool,
    /// Only results and errors.
    pub quiet: bool,
}

impl Out {
    /// Says something that is not a result.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            // A closed standard error is no reason to stop a build.
            BARS.suspend(|| writeln!(std::io::stderr().lock(), "{line}")).ok();
        }
    }

    /// Says what was done after some seconds, in the column of all such lines.
    pub fn say_at(&self, seconds: f64, what: &str) {
        self.say(&format!("{seconds:7.1} s  {what}"));
    }

    /// Says in the same column what is not done yet.
    pub fn say_on(&self, what: &str) {
        self.say(&format!("      … s  {what}"));
    }

    /// A moving line in a form of indicatif's; none where nobody would see it move.
    pub fn bar(&self, bar: ProgressBar, form: &str) -> Option<ProgressBar> {
        let bar = self.is_terminal().then(|| BARS.add(bar))?;
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        Some(bar)
    }

    /// Does some work that tells nothing of itself: a moving line on a terminal, elsewhere a line now and then.
    pub fn wait<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
        if let Some(bar) = self.bar(spinner, "{spinner} {elapsed} {wide_msg}") {
            bar.enable_steady_tick(Duration::from_millis(200));
            let done = work();
            bar.finish_and_clear();
            return done;
        }
        let (working, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while ended.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                    self.say_on(&format!("still at work: {what}"));
                }
            });
            let done = work();
            drop(working);
            done
        })
    }

    /// Says what must be heard even where only results and errors are wanted: what led to an error.
    pub fn insist(&self, text: &str) {
        BARS.suspend(|| writeln!(std::io::stderr().lock(), "{}", text.trim_end())).ok();
    }

    /// Gives a result: a value as JSON, or its text.
    pub fn result(&self, text: &str, value: &impl Serialize) -> Result<()> {
        let mut stdout = std::io::stdout().lock();
        match self.json {
            true => writeln!(stdout, "{}", serde_json::to_string_pretty(value)?)?,
            false if text.is_empty() => {}
            false => writeln!(stdout, "{text}")?,
        }
        Ok(())
    }

    /// Says what was done, which is the result only where one is wanted as JSON.
    pub fn done(&self, words: &str, value: &impl Serialize) -> Result<()> {
        self.say(words);
        self.result("", value)
    }

    /// Whether a moving line would be seen by a person.
    pub fn is_terminal(&self) -> bool {
        !self.quiet && !self.verbose && std::env::var_os("CI").is_none() && std::io::stderr().is_terminal()
    }

    /// Whether every line of the programs is wanted.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }
}

/// The name of a value as JSON has it: `not-gpu-tested`; empty for what is no name.
pub fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Bytes as gigabytes of 10^9.
pub fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

/// Bytes in the unit that a person would choose: `1.25 GB`, `283 MB`, `37 kB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        1_000_000_000.. => gigabytes(bytes),
        1_000_000.. => format!("{:.0} MB", bytes as f64 / 1e6),
        1_000.. => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{bytes} B"),
    }
}

/// Rows in columns as wide as their widest cell.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
