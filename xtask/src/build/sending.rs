//! The layers of a base on their way to a registry while the engine unpacks them. An image that stands on the base finds
//! them there: what is left of its push is small.

use super::bases::BaseLayout;
use super::fetching::Meter;
use crate::http::{Client, Clock, Policy, Retry, Until};
use crate::layout::{self, Layer};
use crate::out::{Out, gigabytes};
use crate::registry::{Registry, Repository};
use anyhow::Result;
use std::cell::Cell;
use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// A file that tells what is read of it, and ends when it has to stop.
struct Watched<'a> {
    file: File,
    clock: &'a dyn Clock,
    meter: &'a Meter<'a>,
    read: &'a Cell<u64>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.clock.is_over() {
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
        for (dir, digest) in bases.iter().filter_map(|base| Some((&base.dir, base.digest.as_ref()?))) {
            for layer in layout::layers(dir, digest)? {
                if !registry.has_blob(self.at, &layer.digest)? {
                    missing.push(layer);
                }
            }
        }
        // The biggest first.
        missing.sort_by_key(|layer| Reverse(layer.size));
        let total = missing.iter().map(|layer| layer.size).sum();
        if total == 0 {
            return Ok(());
        }
        self.out.say(&format!("sending {} of layers to {} meanwhile", gigabytes(total), self.at));
        let meter = Meter::new(self.out, "sent", total);
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            let registry = new()?;
            while let Some(layer) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                let sent = self.one(&registry, layer, &clock, &meter);
                // Where one fails, no other is begun.
                sent.inspect_err(|_| next.store(missing.len(), Ordering::Relaxed))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(work)).collect();
            // What one that panicked has not sent is the engine's to send.
            let ended: Vec<_> = workers.into_iter().map(|it| it.join().unwrap_or(Ok(()))).collect();
            ended.into_iter().collect::<Result<()>>()
        })?;
        meter.end();
        self.out.say_at(start.elapsed().as_secs_f64(), &format!("{} of layers sent", gigabytes(total)));
        Ok(())
    }

    fn one(&self, registry: &Registry, layer: &Layer, clock: &dyn Clock, meter: &Meter) -> Result<()> {
        let read = Cell::new(0);
        registry.push_stream(self.at, (&layer.digest, layer.size), || {
            // What an earlier try has sent is sent again.
            meter.lost(read.take());
            Ok(Watched { file: File::open(&layer.file)?, clock, meter, read: &read })
        })
    }
}
