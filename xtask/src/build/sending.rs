//! The layers of a base on their way to a registry while the engine unpacks them. An image that stands on the base finds
//! them there: what is left of its push is small.

use super::bases::BaseLayout;
use super::fetching::Meter;
use crate::http::{Client, Policy, Retry, Until};
use crate::layout::{self, blob, text};
use crate::out::{Out, gigabytes};
use crate::registry::{Registry, Repository};
use anyhow::Result;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// At once: as many as docker's own default for downloads.
const CONNECTIONS: usize = 3;

/// Sends layers.
pub struct Sending<'a> {
    /// Where to.
    pub at: &'a Repository,
    /// How patient it is.
    pub policy: Policy,
    /// Where words go.
    pub out: &'a Out,
}

/// A layer's file.
struct Layer {
    digest: String,
    size: u64,
    file: PathBuf,
}

/// A file that tells what is read of it, and ends when it has to stop.
struct Watched<'a> {
    file: File,
    stop: &'a AtomicBool,
    meter: &'a Meter<'a>,
    read: &'a Cell<u64>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) || crate::interrupt::check().is_err() {
            return Err(io::Error::other("not sent to its end, because the build ended"));
        }
        let bytes = self.file.read(buffer)?;
        self.read.set(self.read.get() + bytes as u64);
        self.meter.came(bytes as u64);
        Ok(bytes)
    }
}

impl Sending<'_> {
    /// Sends the layers of some bases that the registry lacks, until it is told to `stop`.
    ///
    /// Errors: the registry's.
    pub fn send(&self, bases: &[BaseLayout], stop: &AtomicBool) -> Result<()> {
        let start = Instant::now();
        let (say, clock) = (|line: &str| self.out.say(line), Until(|| stop.load(Ordering::Relaxed)));
        let new = || {
            let retry = Retry { policy: self.policy, clock: &clock, say: &say };
            Registry::new(Client::new()?, retry)
        };
        let registry = new()?;
        let mut missing = Vec::new();
        for layer in bases.iter().map(layers).collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            if !registry.has_blob(self.at, &layer.digest)? {
                missing.push(layer);
            }
        }
        missing.sort_by_key(|layer| layer.size);
        let total = missing.iter().map(|layer| layer.size).sum();
        if total == 0 {
            return Ok(());
        }
        self.out.say(&format!("sending {} of layers to {} meanwhile", gigabytes(total), self.at));
        let meter = Meter::new(self.out, "sent", total);
        let (queue, failed) = (Mutex::new(missing), Mutex::new(None));
        let work = || {
            let sent = new().and_then(|registry| {
                while let Some(layer) = lock(&queue).pop() {
                    self.one(&registry, &layer, stop, &meter)?;
                }
                Ok(())
            });
            if let Err(error) = sent {
                lock(&queue).clear();
                lock(&failed).get_or_insert(error);
            }
        };
        std::thread::scope(|scope| (0..CONNECTIONS).for_each(|_| drop(scope.spawn(work))));
        drop(meter);
        if let Some(error) = lock(&failed).take() {
            return Err(error);
        }
        let seconds = start.elapsed().as_secs_f64();
        self.out.say(&format!("{seconds:7.1} s  {} of layers sent", gigabytes(total)));
        Ok(())
    }

    fn one(&self, registry: &Registry, layer: &Layer, stop: &AtomicBool, meter: &Meter) -> Result<()> {
        let read = Cell::new(0);
        registry.push_stream(self.at, (&layer.digest, layer.size), || {
            // What an earlier try has sent is sent again.
            meter.lost(read.take());
            Ok(Watched { file: File::open(&layer.file)?, stop, meter, read: &read })
        })
    }
}

fn layers(base: &BaseLayout) -> Result<Vec<Layer>> {
    let Some(digest) = &base.digest else {
        return Ok(Vec::new());
    };
    let manifest = layout::read(&base.dir, digest)?;
    let layer = |it: &serde_json::Value| Layer {
        digest: text(it, "digest").to_owned(),
        size: it["size"].as_u64().unwrap_or_default(),
        file: blob(&base.dir, text(it, "digest")),
    };
    Ok(manifest["layers"].as_array().into_iter().flatten().map(layer).collect())
}

/// A worker that panicked has left nothing half done in there.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
