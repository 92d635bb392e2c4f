//! The lock: every input fixed. Only [`update`] talks to indexes; everything else reads the file.

pub mod layers;
mod update;
mod uv;
mod wheels;

pub use update::{Update, other_wheel, update};
pub use uv::Uv;

use crate::catalog::{Catalog, Platform};
use crate::digest;
use crate::problem::{Id, Problem, all_or_nothing, refuse};
use crate::resolve::Resolved;
use crate::tiers::{Stacks, stacks, tiers};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where the lock lives, relative to the catalog's folder.
pub const FILE: &str = "images/lock.json";

/// The command that repairs a stale lock.
pub const REPAIR: &str = "cargo xtask lock --update";

/// Raised when this program resolves or writes differently, so that older locks are stale.
const RECIPE: u32 = 2;

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
    /// Bootstrapped root file systems by name, then by platform.
    pub roots: BTreeMap<String, BTreeMap<Platform, LockedRoot>>,
    /// Layers of packages on top of a root: by the root's name, their own, and platform.
    pub packages: BTreeMap<String, BTreeMap<String, BTreeMap<Platform, LockedRoot>>>,
    /// Releases by name.
    pub releases: BTreeMap<String, LockedRelease>,
}

/// A root file system, or a layer of packages, as it was made when the lock was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedRoot {
    /// Digest of the OCI manifest.
    pub digest: String,
    /// Bytes of the uncompressed layer.
    pub bytes: u64,
    /// Its Debian packages and their versions, without those below it.
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
    /// The wheels of its base by platform, in alphabetical order.
    pub wheels: BTreeMap<Platform, Vec<Wheel>>,
    /// The wheels that each variant adds to the tier below it.
    pub variants: BTreeMap<String, BTreeMap<Platform, Vec<Wheel>>>,
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

    /// Bytes of all wheels of its base for one platform, or the refusal of [`LockedRelease::wheels`].
    pub fn bytes(&self, platform: Platform) -> Result<u64> {
        Ok(self.wheels(platform)?.iter().map(|wheel| wheel.bytes).sum())
    }

    /// Bytes of the wheels that tiers above the base add on one platform.
    pub fn bytes_above<'a>(&self, tiers: impl IntoIterator<Item = &'a str>, platform: Platform) -> u64 {
        tiers.into_iter().flat_map(|tier| self.added(tier, platform)).map(|wheel| wheel.bytes).sum()
    }

    /// Every wheel of an image: those of its base and those of its tiers, on one platform.
    pub fn all<'a>(&'a self, tiers: impl IntoIterator<Item = &'a str>, platform: Platform) -> Vec<&'a Wheel> {
        let base = self.wheels.get(&platform).map_or(&[][..], Vec::as_slice);
        base.iter().chain(tiers.into_iter().flat_map(|tier| self.added(tier, platform))).collect()
    }

    /// The wheels that a variant adds to the tier below it, on one platform.
    fn added(&self, variant: &str, platform: Platform) -> &[Wheel] {
        self.variants.get(variant).and_then(|wheels| wheels.get(&platform)).map_or(&[], Vec::as_slice)
    }
}

/// What the lock is made from, part by part, each as a checksum of its canonical JSON.
pub fn inputs(catalog: &Catalog, resolved: &BTreeMap<String, Resolved>) -> Result<BTreeMap<String, String>> {
    let mut inputs = BTreeMap::new();
    for (name, root) in catalog.roots.iter().filter(|(_, root)| root.image.is_none()) {
        let input = (RECIPE, root, &catalog.base.packages, &catalog.defaults.platforms);
        inputs.insert(format!("roots.{name}"), digest::of_json(&input)?);
    }
    for (root, stacks) in package_stacks(catalog, resolved)? {
        for (layer, stack) in stacks {
            inputs.insert(format!("packages.{root}.{layer}"), digest::of_json(&(RECIPE, stack))?);
        }
    }
    for (name, facts) in resolved {
        let release = catalog.release(name)?;
        let (root, _) = catalog.root_of(release);
        let added: BTreeMap<&str, Vec<&str>> = catalog
            .variants
            .keys()
            .flat_map(|variant| tiers(catalog, facts, variant))
            .map(|tier| (tier.name, tier.requirements()))
            .filter(|(_, requirements)| !requirements.is_empty())
            .collect();
        let (base, platforms) = (&catalog.base.requirements, catalog.platforms(release));
        inputs.insert(
            format!("releases.{name}"),
            digest::of_json(&(RECIPE, facts, root, base, added, platforms))?,
        );
    }
    Ok(inputs)
}

/// Every layer of packages that images of bootstrapped roots have, by the root's name.
pub fn package_stacks(
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
) -> Result<BTreeMap<String, Stacks>> {
    let mut all = BTreeMap::<String, Stacks>::new();
    for (name, facts) in resolved {
        let (root, it) = catalog.root_of(catalog.release(name)?);
        if it.image.is_none() {
            let of_release = catalog.variants.keys().flat_map(|variant| stacks(catalog, facts, variant));
            all.entry(root.to_owned()).or_default().extend(of_release);
        }
    }
    Ok(all)
}

/// Reads the lock that lies beside the catalog.
///
/// Errors: `E_LOCK_STALE` when there is none or it cannot be read.
pub fn read(folder: &Path) -> Result<Lock> {
    let path = path(folder);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return stale(&path, "there is no lock yet".to_owned());
        }
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
            let added = release.variants.values().flat_map(BTreeMap::values).flatten();
            let wheels = release.wheels.values().flatten().chain(added);
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
    for (what, root) in locked_roots(new) {
        let before = locked_roots(old).remove(&what).map(|root| root.packages.clone()).unwrap_or_default();
        lines.extend(differences(&before, &root.packages).into_iter().map(|line| format!("{what}: {line}")));
    }
    lines
}

/// Roots and the layers of packages on them, by what a person calls them.
fn locked_roots(lock: &Lock) -> BTreeMap<String, &LockedRoot> {
    let roots = lock.roots.iter().map(|(name, platforms)| (format!("root {name}"), platforms));
    let layers =
        lock.packages.values().flatten().map(|(name, platforms)| (format!("packages of {name}"), platforms));
    roots.chain(layers).flat_map(|(what, platforms)| each_platform(what, platforms)).collect()
}

fn each_platform(
    what: String,
    platforms: &BTreeMap<Platform, LockedRoot>,
) -> impl Iterator<Item = (String, &LockedRoot)> {
    platforms.iter().map(move |(platform, root)| (format!("{what} ({platform})"), root))
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
