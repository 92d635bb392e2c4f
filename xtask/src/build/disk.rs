//! Is there room for what will be built? Asked before anything is fetched.

use crate::engine::free_bytes;
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::path::Path;

/// Peak bytes on the engine's disk for each byte of wheels. Layers straight from wheels lie there compressed and unpacked,
/// which is 1.9 times as much. A Dockerfile's wheels lie there unpacked in the install stage, in the joined layer and in the
/// engine's store, beside the compressed layers. Measured with torch 2.15.0: 9.1 and 19 GB for 3.05 GB of wheels.
const PEAK_FROM_LAYERS: f64 = 3.3;
const PEAK_FROM_DOCKERFILE: f64 = 6.5;

/// Peak bytes for what a build needs beside its wheels: the root in each place, and the engine.
const BESIDE: u64 = 3_000_000_000;

/// Bytes that a build of bases with these wheels needs in the engine at its peak, by what makes the bases.
pub fn needed(wheel_bytes: u64, from_layers: bool) -> u64 {
    let peak = if from_layers { PEAK_FROM_LAYERS } else { PEAK_FROM_DOCKERFILE };
    (wheel_bytes as f64 * peak) as u64 + BESIDE
}

/// `Ok` when the file system of `folder` has room for `bytes`.
///
/// Errors: `E_DISK` with what is needed, what is free, and where.
pub fn check(folder: &Path, bytes: u64) -> Result<()> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    enough(folder, free_bytes(there)?, bytes)
}

/// The same, where it is known how many bytes are free.
pub fn enough(folder: &Path, free: u64, bytes: u64) -> Result<()> {
    if free >= bytes {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    refuse(
        Id::Disk,
        folder.display().to_string(),
        format!("the build needs about {}, {} are free", gigabytes(bytes), gigabytes(free)),
        "free some space there, or give another disk with --state FOLDER or --cache-dir FOLDER",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_refused_with_all_three() {
        assert!(check(Path::new("/no/such/folder"), 1).is_ok());
        let error = check(Path::new("/no/such/folder"), u64::MAX).unwrap_err().to_string();
        for part in ["E_DISK", "/no/such/folder", "needs about", "are free", "--state"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn the_estimate_covers_what_was_measured() {
        assert!(needed(3_050_000_000, false) > 19_000_000_000);
        assert!(needed(3_050_000_000, true) > 9_100_000_000);
    }
}
