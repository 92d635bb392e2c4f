//! How far a download is: a bar on a terminal, elsewhere a line now and then.

use crate::out::{Out, gigabytes};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Elsewhere than on a terminal, how often it is told.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What came of a total, told as it grows. Several threads may tell it.
pub struct Meter<'a> {
    out: &'a Out,
    what: &'static str,
    total: u64,
    bar: Option<ProgressBar>,
    so_far: Mutex<(u64, Instant)>,
}

impl Meter<'_> {
    /// A meter of something that has `total` bytes.
    pub fn new<'o>(out: &'o Out, what: &'static str, total: u64) -> Meter<'o> {
        let bar = out.is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            let form = "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(form) {
                bar.set_style(style);
            }
            bar.set_message(what);
            bar
        });
        Meter { out, what, total, bar, so_far: Mutex::new((0, Instant::now())) }
    }

    /// Counts bytes that came.
    pub fn came(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
            return;
        }
        let mut so_far = self.so_far.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        so_far.0 += bytes;
        if so_far.1.elapsed() > HEARTBEAT {
            so_far.1 = Instant::now();
            self.out.say(&format!(
                "      … s  {}: {} of {}",
                self.what,
                gigabytes(so_far.0),
                gigabytes(self.total)
            ));
        }
    }

    /// Says a line that is none of the bar's: above it.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.out.say(line)),
            None => self.out.say(line),
        }
    }

    /// All came, and the bar goes.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
