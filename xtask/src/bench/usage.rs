//! What the machine did while something ran: counters of the kernel, read before and after.

use super::registry::Registry;
use crate::engine::free_bytes;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the free disk space is looked at.
const PACE: Duration = Duration::from_millis(500);

/// What was used between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Seconds of all cores.
    pub cpu: f64,
    /// Bytes that came over the interface of the default route.
    pub fetched: u64,
    /// Bytes that went to the registry.
    pub sent: u64,
    /// Blobs that the registry has more than before.
    pub blobs: u64,
    /// Bytes that went to disks.
    pub written: u64,
    /// Bytes by which the disk was fuller at its fullest, the registry's copy included.
    pub disk: u64,
}

/// Reads the counters of this machine.
pub struct Meter<'a> {
    /// Whose file system is looked at.
    pub folder: &'a Path,
    /// Whose bytes and blobs are counted.
    pub registry: &'a Registry,
}

/// Counters since the machine started.
struct Reading {
    cpu: f64,
    received: u64,
    written: u64,
    sent: u64,
    blobs: u64,
}

impl Meter<'_> {
    /// Runs something, and returns what it gave, its seconds, and what the whole machine used meanwhile.
    pub fn measure<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, f64, Usage)> {
        let free = free_bytes(self.folder)?;
        let (least, ended) = (AtomicU64::new(free), AtomicBool::new(false));
        let watch = || {
            while !ended.load(Ordering::Relaxed) {
                if let Ok(free) = free_bytes(self.folder) {
                    least.fetch_min(free, Ordering::Relaxed);
                }
                std::thread::park_timeout(PACE);
            }
        };
        std::thread::scope(|scope| {
            let watcher = scope.spawn(watch);
            let (before, start) = (self.read()?, Instant::now());
            let done = work();
            let seconds = start.elapsed().as_secs_f64();
            ended.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            let after = self.read()?;
            let usage = Usage {
                cpu: after.cpu - before.cpu,
                fetched: after.received.saturating_sub(before.received),
                sent: after.sent - before.sent,
                blobs: after.blobs.saturating_sub(before.blobs),
                written: after.written.saturating_sub(before.written),
                disk: free.saturating_sub(least.load(Ordering::Relaxed)),
            };
            Ok((done?, seconds, usage))
        })
    }

    fn read(&self) -> Result<Reading> {
        let text = |path: &str| std::fs::read_to_string(path).with_context(|| format!("reading {path}"));
        let routes = text("/proc/net/route")?;
        Ok(Reading {
            cpu: busy(&text("/proc/stat")?),
            received: received(&text("/proc/net/dev")?, default_interface(&routes)),
            written: paged_out(&text("/proc/vmstat")?),
            sent: self.registry.received(),
            blobs: self.registry.blobs(),
        })
    }
}

/// Seconds that all cores together were busy, from `/proc/stat`: user, nice, system, interrupts; in ticks of 1/100 s, as
/// proc(5) has it for every platform of ours.
fn busy(stat: &str) -> f64 {
    let total = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = total.split_whitespace().skip(1).filter_map(|it| it.parse().ok()).collect();
    [0, 1, 2, 5, 6].iter().filter_map(|i| ticks.get(*i)).sum::<f64>() / 100.0
}

/// The interface of the default route, from `/proc/net/route`: the one whose destination is 0.
fn default_interface(routes: &str) -> &str {
    let mut lines = routes.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find(|words| words.get(1) == Some(&"00000000")).map_or("", |words| words[0])
}

/// Bytes that an interface received, from `/proc/net/dev`.
fn received(devices: &str, interface: &str) -> u64 {
    let line = devices.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Bytes that went to disks, from `/proc/vmstat`, which counts KiB.
fn paged_out(vmstat: &str) -> u64 {
    let count = vmstat.lines().find_map(|line| line.strip_prefix("pgpgout ")?.parse::<u64>().ok());
    count.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_kernel_are_read_as_they_are_written() {
        assert_eq!(busy("cpu  100 20 30 4000 50 6 7 8 0 0\ncpu0 1 2 3\n"), 1.63);
        let routes = "Iface\tDestination\tGateway\nbr0\t00001EAC\t00000000\neth0\t00000000\t010200C0\n";
        assert_eq!(default_interface(routes), "eth0");
        let devices = "Inter-|   Receive\n face |bytes\n    lo: 11 2\n  eth0: 4211 7 0\neth01: 5 1\n";
        assert_eq!(received(devices, "eth0"), 4211);
        assert_eq!(paged_out("pgpgin 5\npgpgout 3\n"), 3072);
    }
}
