//! What is installed in an image, asked of its own package managers.

use crate::engine::Engine;
use crate::runner::Step;
use anyhow::{Context, Result};
use serde::Deserialize;

/// Runs in the image and prints what is there.
const SCRIPT: &str = include_str!("inventory.py");

/// What is installed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Inventory {
    /// The distribution below.
    pub distribution: Distribution,
    /// Packages of the distribution.
    pub debian: Vec<Package>,
    /// Python packages.
    pub wheels: Vec<Wheel>,
}

/// `ID` and `VERSION_ID` of os-release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub struct Distribution {
    pub id: String,
    pub version: String,
}

/// A package of the distribution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[allow(missing_docs)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub architecture: String,
}

/// A Python package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Wheel {
    /// Normalised name.
    pub name: String,
    /// Version.
    pub version: String,
    /// SPDX expression, where its metadata has one.
    pub expression: Option<String>,
    /// What older metadata calls its license.
    pub license: Option<String>,
}

/// The command that asks an image.
pub fn step(engine: &Engine, image: &str) -> Step {
    engine
        .docker(
            "what is in it",
            ["run", "--rm", "--network", "none", "--read-only", "--entrypoint", "python"],
        )
        .args(["--cap-drop", "ALL", "--security-opt", "no-new-privileges", image, "-I", "-c", SCRIPT])
}

/// Asks an image.
pub fn ask(engine: &Engine, image: &str) -> Result<Inventory> {
    serde_json::from_str(&step(engine, image).read()?).with_context(|| format!("reading what is in {image}"))
}
