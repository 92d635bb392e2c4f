//! Is there room for what will be built? Asked before anything is fetched.

use crate::engine::free_bytes;
use crate::problem::{Id, refuse};
use anyhow::Result;
use std::path::Path;

/// Peak bytes on disk for each byte of wheels while a base is built: wheels unpack to 1.8 times their size, and lie there
/// in the install stage, in the joined layer and in the engine's store, beside the compressed layers.
/// Measured with torch 2.15.0: 19 GB for 3.03 GB of wheels.
const PEAK_PER_WHEEL_BYTE: f64 = 6.5;

/// Peak bytes for what a build needs beside its wheels: the root in each place, and the engine.
const BESIDE: u64 = 3_000_000_000;

/// Bytes that a build of bases with these wheels needs at its peak.
pub fn needed(wheel_bytes: u64) -> u64 {
    (wheel_bytes as f64 * PEAK_PER_WHEEL_BYTE) as u64 + BESIDE
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
        "free some space there, or give another disk with --state FOLDER",
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
        assert!(needed(3_030_000_000) > 19_000_000_000);
    }
}
