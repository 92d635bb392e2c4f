//! What no way of doing it could be faster than, on this machine: max(network, cpu/cores, disk).

use super::usage::Usage;
use crate::lock::Wheel;
use crate::wheels::Fetch;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Bytes that are written to learn how fast the disk is.
const SAMPLE: usize = 1 << 30;

/// What the machine can do, from a short calibration.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// Bytes a second of one big download.
    pub network: f64,
    /// Bytes a second to the disk, until they are there.
    pub disk: f64,
    /// Cores.
    pub cores: usize,
}

/// A limit, and what sets it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Seconds.
    pub seconds: f64,
    /// `network`, `cpu` or `disk`.
    pub by: &'static str,
}

impl Rates {
    /// Measures them: one wheel is fetched, and some bytes are written below `folder`.
    ///
    /// Errors: what fetching and writing run into.
    pub fn measure(
        wheel: &Wheel,
        indexes: &[String],
        folder: &Path,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<Rates> {
        let work = crate::files::work_folder(folder)?;
        let fetch = Fetch { indexes, cache: work.path(), say, came: &|_| () };
        let start = Instant::now();
        fetch.provide(&[wheel])?;
        let network = wheel.bytes as f64 / start.elapsed().as_secs_f64();
        let (block, start) = (vec![0x5a_u8; 1 << 22], Instant::now());
        let mut file = tempfile::tempfile_in(folder)?;
        for _ in 0..SAMPLE / block.len() {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        let disk = SAMPLE as f64 / start.elapsed().as_secs_f64();
        Ok(Rates { network, disk, cores: std::thread::available_parallelism()?.get() })
    }

    /// What a build could not be faster than that fetches, computes and writes this much, all at once.
    pub fn limit(&self, usage: &Usage) -> Limit {
        let all = [
            ("network", usage.fetched as f64 / self.network),
            ("cpu", usage.cpu / self.cores as f64),
            ("disk", usage.written as f64 / self.disk),
        ];
        let slowest = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        slowest.map_or(Limit { seconds: 0.0, by: "" }, |(by, seconds)| Limit { seconds, by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_part_sets_the_limit() {
        let rates = Rates { network: 50.0, disk: 100.0, cores: 2 };
        let usage = Usage { cpu: 30.0, fetched: 500, written: 1000, ..Usage::default() };
        assert_eq!(rates.limit(&usage), Limit { seconds: 15.0, by: "cpu" });
        assert_eq!(rates.limit(&Usage { fetched: 5000, ..usage }), Limit { seconds: 100.0, by: "network" });
        assert_eq!(rates.limit(&Usage { written: 9000, ..usage }), Limit { seconds: 90.0, by: "disk" });
    }
}
