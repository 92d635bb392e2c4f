//! The root that a build stands on, compared with the one that was locked.

use crate::catalog::{Catalog, Platform};
use crate::lock::{FILE, Lock, LockedRoot, differences};
use crate::problem::{Id, Problem, all_or_nothing};
use crate::root::{self, RootLayout, RootSpec};
use anyhow::Result;
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
    /// A root, made if it is not there; what moved since it was locked is told, or refused with `locked`.
    ///
    /// Errors: `E_ROOT_MOVED`, a problem a package; what bootstrapping runs into.
    pub fn provide(&self, name: &str, locked: bool) -> Result<RootLayout> {
        let layout = root::provide(&self.spec(name), self.state, false, self.say)?;
        let moved = self.locked(name).map(|locked| moved(locked, &layout)).unwrap_or_default();
        if locked {
            let cure = "give a snapshot mirror of the lock's date with --apt-sources, or run `cargo xtask lock --update`";
            let place = format!("{FILE}: root {name}");
            let problem = |what| Problem::new(Id::RootMoved, place.as_str(), what, cure);
            all_or_nothing(moved.into_iter().map(problem).collect())?;
        } else if !moved.is_empty() {
            (self.say)(&format!("the root {name} moved since it was locked; taking the new packages:"));
            moved.iter().for_each(|line| (self.say)(&format!("  {line}")));
        }
        Ok(layout)
    }

    /// A root without making it: the one that is here, or else the one that was locked.
    pub fn known(&self, name: &str) -> Result<RootLayout> {
        if let Some(layout) = root::cached(&self.spec(name), self.state)? {
            return Ok(layout);
        }
        let locked = self.locked(name);
        Ok(RootLayout {
            dir: self.state.join("roots").join(name),
            digest: locked.map(|locked| locked.digest.clone()).unwrap_or_default(),
            diff_id: String::new(),
            bytes: locked.map(|locked| locked.bytes).unwrap_or_default(),
            packages: locked.map(|locked| locked.packages.clone()).unwrap_or_default(),
            cached: false,
        })
    }

    fn spec(&self, name: &str) -> RootSpec {
        RootSpec::new(self.catalog, name, self.platform, self.lock.epoch, self.sources.clone())
    }

    fn locked(&self, name: &str) -> Option<&LockedRoot> {
        self.lock.roots.get(name)?.get(&self.platform)
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
    use std::collections::BTreeMap;

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
