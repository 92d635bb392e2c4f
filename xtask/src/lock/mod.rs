//! The lock: every input fixed. Only [`update`] talks to indexes; everything else reads the file.

mod update;
mod wheels;

pub use update::{Update, update};

use crate::catalog::{Catalog, Platform, Root};
use crate::digest;
use crate::problem::{Id, Problem, all_or_nothing, refuse};
use crate::resolve::Resolved;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the lock lives, relative to the catalog's folder.
pub const FILE: &str = "images/lock.json";

/// The command that repairs a stale lock.
pub const REPAIR: &str = "cargo xtask lock --update";

/// Raised when this program resolves or writes differently, so that older locks are stale.
const RECIPE: u32 = 1;

/// Every input of every image, fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Checksums of what the lock was made from, by part: a stale lock can tell what changed.
    pub inputs: BTreeMap<String, String>,
    /// `SOURCE_DATE_EPOCH` of everything built from this lock, in seconds.
    pub epoch: u64,
    /// The uv that resolved it; the same one installs.
    pub uv: String,
    /// Root file systems by name, then by platform.
    pub roots: BTreeMap<String, BTreeMap<Platform, LockedRoot>>,
    /// Releases by name.
    pub releases: BTreeMap<String, LockedRelease>,
}

/// A root file system as it was bootstrapped when the lock was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedRoot {
    /// Digest of the OCI manifest.
    pub digest: String,
    /// Bytes of the uncompressed layer.
    pub bytes: u64,
    /// Debian packages and their versions.
    pub packages: BTreeMap<String, String>,
}

/// A release with all its wheels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedRelease {
    /// The root that it stands on.
    pub root: String,
    /// What the compatibility table says of it.
    pub facts: Resolved,
    /// The wheels by platform, in alphabetical order.
    pub wheels: BTreeMap<Platform, Vec<Wheel>>,
}

/// One wheel file. No address: where it comes from is the host's own configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    /// Normalised package name.
    pub name: String,
    /// Version.
    pub version: String,
    /// File name.
    pub file: String,
    /// Size in bytes; 0 where the index does not tell.
    pub bytes: u64,
    /// Hex SHA-256.
    pub sha256: String,
}

impl LockedRelease {
    /// The wheels of one platform, or a refusal.
    pub fn wheels(&self, platform: Platform) -> Result<&[Wheel]> {
        match self.wheels.get(&platform) {
            Some(wheels) => Ok(wheels),
            None => refuse(
                Id::Platform,
                format!("{FILE}: release {}", self.facts.release),
                format!("{platform} is not locked"),
                format!("add it to defaults.platforms, then run `{REPAIR}`"),
            ),
        }
    }

    /// Bytes of all its wheels for one platform, or the refusal of [`LockedRelease::wheels`].
    pub fn bytes(&self, platform: Platform) -> Result<u64> {
        Ok(self.wheels(platform)?.iter().map(|wheel| wheel.bytes).sum())
    }
}

/// What the lock is made from, part by part, each as a checksum of its canonical JSON.
pub fn inputs(catalog: &Catalog, resolved: &BTreeMap<String, Resolved>) -> Result<BTreeMap<String, String>> {
    #[derive(Serialize)]
    struct RootInput<'a>(u32, &'a Root, &'a [String], &'a [Platform]);
    #[derive(Serialize)]
    struct ReleaseInput<'a>(u32, &'a Resolved, &'a str, &'a [String], &'a [Platform]);

    let platforms = &catalog.defaults.platforms;
    let mut inputs = BTreeMap::new();
    for (name, root) in &catalog.roots {
        let input = RootInput(RECIPE, root, &catalog.base.packages, platforms);
        inputs.insert(format!("roots.{name}"), digest::of_json(&input)?);
    }
    for (name, facts) in resolved {
        let (root, _) = catalog.root_of(catalog.release(name)?);
        let input = ReleaseInput(RECIPE, facts, root, &catalog.base.requirements, platforms);
        inputs.insert(format!("releases.{name}"), digest::of_json(&input)?);
    }
    Ok(inputs)
}

/// Reads the lock that lies beside the catalog.
///
/// Errors: `E_LOCK_STALE` when there is none or it cannot be read.
pub fn read(folder: &Path) -> Result<Lock> {
    let path = path(folder);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return stale(&path, format!("it cannot be read: {error}")),
    };
    serde_json::from_str(&text).or_else(|error| stale(&path, format!("it is damaged: {error}")))
}

/// The lock, after it was proved to be made from this catalog.
///
/// Errors: `E_LOCK_STALE` with every part that changed since.
pub fn read_checked(catalog: &Catalog, resolved: &BTreeMap<String, Resolved>) -> Result<Lock> {
    let folder = catalog.folder();
    let lock = read(&folder)?;
    let now = inputs(catalog, resolved)?;
    let changed = |part: &&String| now.get(*part) != lock.inputs.get(*part);
    let mut parts: Vec<&String> = now.keys().chain(lock.inputs.keys()).filter(changed).collect();
    parts.sort_unstable();
    parts.dedup();
    let problems = parts.into_iter().map(|part| {
        let what = match (now.contains_key(part), lock.inputs.contains_key(part)) {
            (true, true) => "changed since the lock was made",
            (true, false) => "is not locked",
            _ => "is locked, but the catalog has it no longer",
        };
        let place = path(&folder).display().to_string();
        Problem::new(Id::LockStale, place, format!("{part} {what}"), format!("run `{REPAIR}`"))
    });
    all_or_nothing(problems.collect())?;
    Ok(lock)
}

/// Writes the lock so that a reader sees the old one or the new one.
pub fn write(folder: &Path, lock: &Lock) -> Result<()> {
    let path = path(folder);
    let text = serde_json::to_string_pretty(lock)? + "\n";
    crate::files::write(&path, text.as_bytes()).with_context(|| format!("writing {}", path.display()))
}

/// What a new lock changes, a line each: releases' wheels and roots' packages.
pub fn changes(old: Option<&Lock>, new: &Lock) -> Vec<String> {
    let Some(old) = old else {
        return vec!["this is the first lock".to_owned()];
    };
    let mut lines = Vec::new();
    for (name, release) in &new.releases {
        let versions = |release: &LockedRelease| -> BTreeMap<String, String> {
            let wheels = release.wheels.values().flatten();
            wheels.map(|wheel| (wheel.name.clone(), wheel.version.clone())).collect()
        };
        let Some(before) = old.releases.get(name).map(versions) else {
            lines.push(format!("release {name} is new: {} packages", versions(release).len()));
            continue;
        };
        lines.extend(
            differences(&before, &versions(release))
                .into_iter()
                .map(|line| format!("release {name}: {line}")),
        );
    }
    for (name, platforms) in &new.roots {
        for (platform, root) in platforms {
            let before = old.roots.get(name).and_then(|platforms| platforms.get(platform));
            let before = before.map(|root| root.packages.clone()).unwrap_or_default();
            lines.extend(
                differences(&before, &root.packages).into_iter().map(|line| format!("root {name}: {line}")),
            );
        }
    }
    lines
}

/// How versions differ, a line each: `libc6 2.41-12 → 2.41-13`.
pub fn differences(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, version) in new {
        match old.get(name) {
            Some(before) if before == version => {}
            Some(before) => lines.push(format!("{name} {before} → {version}")),
            None => lines.push(format!("{name} {version} is new")),
        }
    }
    let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
    lines.extend(gone.map(|(name, version)| format!("{name} {version} is gone")));
    lines
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn stale<T>(path: &Path, what: String) -> Result<T> {
    refuse(Id::LockStale, path.display().to_string(), what, format!("run `{REPAIR}`"))
}
