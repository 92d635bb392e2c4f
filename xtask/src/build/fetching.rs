//! How far a transfer is: a bar on a terminal, elsewhere a line now and then.

use crate::out::{Out, gigabytes};
use indicatif::ProgressBar;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Elsewhere than on a terminal, how often it is told.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What came, or went, of a total, told as it grows. Several threads may tell it.
pub struct Meter<'a> {
    out: &'a Out,
    what: &'static str,
    bar: Option<ProgressBar>,
    so_far: Mutex<SoFar>,
}

struct SoFar {
    came: u64,
    total: u64,
    told: Instant,
}

impl Meter<'_> {
    /// A meter of something that has `total` bytes.
    pub fn new<'o>(out: &'o Out, what: &'static str, total: u64) -> Meter<'o> {
        let form = "{msg} [{wide_bar}] {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
        let bar = out.bar(ProgressBar::new(total).with_message(what), form);
        Meter { out, what, bar, so_far: Mutex::new(SoFar { came: 0, total, told: Instant::now() }) }
    }

    /// There is more to come than was known.
    pub fn grows(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc_length(bytes);
        }
        self.so_far().total += bytes;
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes back that did not count in the end.
    pub fn lost(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.dec(bytes);
        }
        let mut so_far = self.so_far();
        so_far.came = so_far.came.saturating_sub(bytes);
    }

    /// Counts bytes that came.
    pub fn came(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
            return;
        }
        let mut so_far = self.so_far();
        so_far.came += bytes;
        if so_far.told.elapsed() > HEARTBEAT {
            so_far.told = Instant::now();
            let (came, total) = (gigabytes(so_far.came), gigabytes(so_far.total));
            self.out.say_on(&format!("{}: {came} of {total}", self.what));
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
