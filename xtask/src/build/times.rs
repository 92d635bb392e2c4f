//! Where the time of a build went, kept for whoever asks afterwards.

use super::progress::Phases;
use crate::files;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Spans of the wall clock of one `build`, in seconds; what was not done took none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The root and the packages on it.
    pub root: f64,
    /// Wheels fetched and turned into layers.
    pub base: f64,
    /// buildx, from its start to its end.
    pub bake: f64,
    /// What buildx did meanwhile.
    pub phases: Phases,
    /// The smoke tests.
    pub smoke: f64,
    /// To the registry, after everything else.
    pub push: f64,
    /// From the first wheel until the registry had the images, where they were sent while the engine unpacked them.
    pub sent: f64,
}

impl Times {
    /// Keeps them beside the logs; those of the build before are replaced.
    pub fn keep(&self, state: &Path) -> Result<()> {
        files::write(&path(state), &serde_json::to_vec_pretty(self)?)
    }

    /// Those of the last build.
    pub fn read(state: &Path) -> Result<Times> {
        let path = path(state);
        let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
}

fn path(state: &Path) -> PathBuf {
    state.join("logs/times.json")
}
