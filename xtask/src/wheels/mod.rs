//! Layers straight from wheels: what an installer would unpack goes into a layer without being compressed again.
//!
//! `zip` reads a wheel, `install` says where its files go, `tree` joins and slims, `layer` writes, `store` keeps, `base`
//! puts the image together. Only `fetch` goes out; by `arrivals` a layer is made while wheels of others still come.
//!
//! Memory is bounded by the pieces that are read at once and the wheels' directories, not by the wheels: to convert those of
//! torch 2.15.0 (3.05 GB) took at most 45 MB on two cores, and 122 MB with zstd, whose threads have windows of their own.

mod arrivals;
mod base;
mod fetch;
mod header;
mod index;
mod install;
mod layer;
mod metadata;
mod splice;
mod store;
#[cfg(test)]
mod tests;
mod tree;
mod zip;

pub use arrivals::Arrivals;
pub use base::{Base, Files, Group, PYTHON, RECIPE};
pub use fetch::{FOLDER, Fetch, place};
pub use install::Venv;
pub use layer::{Codec, Written, pack};
pub use store::{Image, Layer, Store};

use crate::files;
use anyhow::Result;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name of the lock that keeps two runs from making, or removing, the same at once.
pub const HOLD: &str = "cache";

/// What a cache folder holds, in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// The folder.
    pub folder: PathBuf,
    /// Of wheels.
    pub wheels: u64,
    /// Of layers.
    pub layers: u64,
}

/// What is in a cache folder.
pub fn kept(cache: &Path) -> Result<Kept> {
    let below = |name: &str| -> Result<u64> {
        let folder = cache.join(name);
        let mut bytes = 0;
        if folder.exists() {
            for file in files::walk(&folder)? {
                bytes += folder.join(file).metadata()?.len();
            }
        }
        Ok(bytes)
    };
    Ok(Kept { folder: cache.to_owned(), wheels: below(fetch::FOLDER)?, layers: below(store::FOLDER)? })
}

/// Removes wheels and layers that were used last before `since`, and gives the bytes.
pub fn prune(cache: &Path, since: SystemTime) -> Result<u64> {
    let mut bytes = Store::open(cache)?.prune(since)?;
    let folder = cache.join(fetch::FOLDER);
    for file in files::walk(&folder).unwrap_or_default() {
        let path = folder.join(file);
        let about = path.metadata()?;
        if about.modified()? < since {
            bytes += about.len();
            std::fs::remove_file(&path)?;
            // The folder of a wheel goes with its last file.
            path.parent().map(std::fs::remove_dir);
        }
    }
    Ok(bytes)
}
