//! The layers of a base on their way to a registry while others are made and the engine unpacks them. An image that stands
//! on the base finds them there: what is left of its push is small.

use super::fetching::Meter;
use crate::http::{Client, Clock, Policy, Retry, Until};
use crate::layout::Layer;
use crate::out::{Out, gigabytes};
use crate::registry::{Registry, Repository};
use anyhow::Result;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
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

/// Layers as they are told of, each once.
struct Queue {
    layers: Mutex<(Receiver<Layer>, BTreeSet<String>)>,
    ended: AtomicBool,
}

impl Queue {
    /// The next one; waits until there is one or can be none.
    fn next(&self) -> Option<Layer> {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let (queue, seen) = &mut *layers;
        queue
            .iter()
            .take_while(|_| !self.ended.load(Ordering::Relaxed))
            .find(|it| seen.insert(it.digest.clone()))
    }

    /// Where one could not be sent, no other is begun.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
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
    /// Sends layers that the registry lacks, each as soon as it is told of, until there are no more or it is told to
    /// `stop`.
    ///
    /// Errors: the registry's.
    pub fn send(&self, layers: Receiver<Layer>, stop: &AtomicBool) -> Result<()> {
        let start = Instant::now();
        let (say, clock) = (|line: &str| self.out.say(line), Until(|| stop.load(Ordering::Relaxed)));
        let queue = Queue { layers: Mutex::new((layers, BTreeSet::new())), ended: AtomicBool::new(false) };
        let (meter, total) = (Meter::new(self.out, "sent", 0), AtomicU64::new(0));
        let work = || -> Result<()> {
            let retry = Retry { policy: self.policy, clock: &clock, say: &say };
            let registry = Registry::new(Client::new()?, retry)?;
            while let Some(layer) = queue.next() {
                if registry.has_blob(self.at, &layer.digest)? {
                    continue;
                }
                if total.fetch_add(layer.size, Ordering::Relaxed) == 0 {
                    self.out.say(&format!("sending layers to {} meanwhile", self.at));
                }
                meter.grows(layer.size);
                self.one(&registry, &layer, &clock, &meter)?;
            }
            Ok(())
        };
        let careful = || work().inspect_err(|_| queue.end());
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(careful)).collect();
            // What one that panicked has not sent is the engine's to send.
            let ended: Vec<_> = workers.into_iter().map(|it| it.join().unwrap_or(Ok(()))).collect();
            ended.into_iter().collect::<Result<()>>()
        })?;
        meter.end();
        let total = total.into_inner();
        if total > 0 {
            self.out.say_at(start.elapsed().as_secs_f64(), &format!("{} of layers sent", gigabytes(total)));
        }
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
