//! What was measured of an image when it was built, kept for the catalogue site.

use super::images::Tagged;
use super::size::Size;
use crate::files;
use crate::plan::Planned;
use crate::smoke::Record;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One image as it was built, proved and weighed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// The digest that the engine knows it by.
    pub digest: String,
    /// Its names, the most precise first.
    pub references: Vec<String>,
    /// When it was to get them, in seconds since 1970.
    pub built: u64,
    /// From the start of the command that built it to that moment.
    pub seconds: f64,
    /// Bytes as it is sent; none where the engine's store does not keep layers as they are sent.
    pub compressed: Option<u64>,
    /// Bytes as it lies in the engine.
    pub unpacked: u64,
    /// Bytes of every layer and what it was made by, the biggest first.
    pub layers: Vec<(u64, String)>,
}

impl Measured {
    /// Joins what a build knows of an image at its end.
    pub fn new(plan: &Planned, image: &Tagged, size: Size, built: u64, seconds: f64) -> Measured {
        Measured {
            release: plan.release.clone(),
            variant: plan.variant.clone(),
            digest: image.digest.clone(),
            references: image.references.clone(),
            built,
            seconds,
            compressed: size.compressed,
            unpacked: size.unpacked,
            layers: size.layers,
        }
    }

    /// Keeps it beside the record of the smoke test.
    pub fn keep(&self, state: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        files::write(&path(state, &self.release, &self.variant, ".image"), text.as_bytes())
    }

    /// What was kept of an image; none where it was not built with this state folder.
    pub fn kept(state: &Path, release: &str, variant: &str) -> Result<Option<Measured>> {
        read(&path(state, release, variant, ".image"))
    }
}

/// Keeps the record of a smoke test.
pub fn keep_record(state: &Path, plan: &Planned, record: &Record) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    files::write(&path(state, &plan.release, &plan.variant, ""), text.as_bytes())
}

/// The record of a smoke test that was kept of an image.
pub fn kept_record(state: &Path, release: &str, variant: &str) -> Result<Option<Record>> {
    read(&path(state, release, variant, ""))
}

/// Keeps the bill of materials of an image that was pushed.
pub fn keep_bill(state: &Path, plan: &Planned, bill: &[u8]) -> Result<()> {
    files::write(&path(state, &plan.release, &plan.variant, ".cdx"), bill)
}

/// The bill of materials that was kept of an image.
pub fn kept_bill(state: &Path, release: &str, variant: &str) -> Result<Option<serde_json::Value>> {
    read(&path(state, release, variant, ".cdx"))
}

fn path(state: &Path, release: &str, variant: &str, kind: &str) -> PathBuf {
    state.join("reports").join(format!("{release}-{variant}{kind}.json"))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(serde_json::from_str(&text).with_context(|| path.display().to_string())?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}
