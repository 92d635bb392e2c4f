//! The root that a build stands on and the packages on top of it, compared with those that were locked.

use crate::catalog::{Catalog, Platform};
use crate::lock::{FILE, Lock, LockedRoot, differences};
use crate::problem::{Id, Problem, all_or_nothing};
use crate::root::{self, Ground, RootLayout, RootSpec};
use crate::tiers::Stacks;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The roots of a catalog, as they are locked and as they are here.
pub struct Roots<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The lock.
    pub lock: &'a Lock,
    /// The platform.
    pub platform: Platform,
    /// An apt sources file of the user's.
    pub sources: Option<PathBuf>,
    /// The folder for caches and private tools.
    pub state: &'a Path,
    /// Told what goes on.
    pub say: &'a dyn Fn(&str),
}

impl Roots<'_> {
    /// A root with the layers of packages that are wanted on it, made where they are not there; what moved since it was
    /// locked is told, or refused with `locked`.
    ///
    /// Errors: `E_ROOT_MOVED`, a problem a package; what bootstrapping runs into.
    pub fn provide(&self, root: &str, stacks: &Stacks, locked: bool) -> Result<Ground> {
        self.ground(root, stacks, |spec, layer| {
            let layout = root::provide(spec, self.state, false, self.say)?;
            let what = match layer {
                None => format!("root {root}"),
                Some(layer) => format!("packages of {layer}"),
            };
            let moved = self.locked(root, layer).map(|lock| moved(lock, &layout)).unwrap_or_default();
            self.tell(&what, moved, locked)?;
            Ok(layout)
        })
    }

    /// The same without making anything: what is here, or else what was locked.
    pub fn known(&self, root: &str, stacks: &Stacks) -> Result<Ground> {
        self.ground(root, stacks, |spec, layer| {
            if let Some(layout) = root::cached(spec, self.state)? {
                return Ok(layout);
            }
            let name = layer.map_or_else(|| root.to_owned(), |layer| format!("{root}-{layer}"));
            let locked = self.locked(root, layer);
            Ok(RootLayout {
                dir: self.state.join("roots").join(name),
                digest: locked.map(|locked| locked.digest.clone()).unwrap_or_default(),
                diff_id: String::new(),
                bytes: locked.map(|locked| locked.bytes).unwrap_or_default(),
                packages: locked.map(|locked| locked.packages.clone()).unwrap_or_default(),
                cached: false,
            })
        })
    }

    /// A root with the layers on it, each as `layout` gives it; the root itself is no layer.
    fn ground(
        &self,
        root: &str,
        stacks: &Stacks,
        layout: impl Fn(&RootSpec, Option<&str>) -> Result<RootLayout>,
    ) -> Result<Ground> {
        if let Some(reference) = self.catalog.roots[root].reference() {
            return Ok(Ground::Image(reference));
        }
        let spec = RootSpec::new(self.catalog, root, self.platform, self.lock.epoch, self.sources.clone());
        let made = layout(&spec, None)?;
        let mut packages = BTreeMap::new();
        for (layer, stack) in stacks {
            let spec = stack.iter().fold(spec.clone(), RootSpec::with);
            packages.insert(layer.clone(), layout(&spec, Some(layer))?);
        }
        Ok(Ground::Made { root: made, packages })
    }

    /// Tells what moved since the lock was made, or refuses it where the packages must be the `locked` ones.
    fn tell(&self, what: &str, moved: Vec<String>, locked: bool) -> Result<()> {
        if locked {
            let cure = "give a snapshot mirror of the lock's date with --apt-sources, or run `cargo xtask lock --update`";
            let place = format!("{FILE}: {what}");
            let problem = |what| Problem::new(Id::RootMoved, place.as_str(), what, cure);
            return all_or_nothing(moved.into_iter().map(problem).collect());
        }
        if !moved.is_empty() {
            (self.say)(&format!("the {what} moved since it was locked; taking the new packages:"));
            moved.iter().for_each(|line| (self.say)(&format!("  {line}")));
        }
        Ok(())
    }

    /// What the lock has of a root, or of a layer on it.
    fn locked(&self, root: &str, layer: Option<&str>) -> Option<&LockedRoot> {
        let platforms = match layer {
            None => self.lock.roots.get(root)?,
            Some(layer) => self.lock.packages.get(root)?.get(layer)?,
        };
        platforms.get(&self.platform)
    }
}

/// The packages in which a root differs from the lock's, a line each: `libc6 2.41-12 → 2.41-13`.
fn moved(locked: &LockedRoot, layout: &RootLayout) -> Vec<String> {
    let mut lines = differences(&locked.packages, &layout.packages);
    if lines.is_empty() && locked.digest != layout.digest {
        lines.push(format!("the same packages give {}, the lock has {}", layout.digest, locked.digest));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_is_told_package_by_package() {
        let packages = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
        };
        let locked = LockedRoot {
            digest: "sha256:a".to_owned(),
            bytes: 1,
            packages: packages(&[("libc6", "2.41-12"), ("old", "1"), ("same", "1")]),
        };
        let mut layout = RootLayout {
            dir: PathBuf::new(),
            digest: "sha256:b".to_owned(),
            diff_id: String::new(),
            bytes: 1,
            packages: packages(&[("libc6", "2.41-13"), ("fresh", "2"), ("same", "1")]),
            cached: false,
        };
        assert_eq!(moved(&locked, &layout), ["fresh 2 is new", "libc6 2.41-12 → 2.41-13", "old 1 is gone"]);
        layout.packages = locked.packages.clone();
        assert_eq!(moved(&locked, &layout), ["the same packages give sha256:b, the lock has sha256:a"]);
        layout.digest = "sha256:a".to_owned();
        assert!(moved(&locked, &layout).is_empty());
    }
}
