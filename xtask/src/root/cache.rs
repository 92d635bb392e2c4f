//! Finished roots on disk: `<state>/roots/<key>/` is an OCI layout with a note of what is in it.

use super::RootLayout;
use crate::files::{self, names};
use crate::layout;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The note beside the layout, which its tools do not mind.
const NOTE: &str = "root.json";
/// How many roots and layers on them are kept. Each is some hundred megabytes, and every day that is locked makes new ones.
const KEPT: usize = 12;

/// The root at a place, if it is whole. Sizes are compared, not hashes: those take a second for every gigabyte.
pub fn take(place: &Path) -> Option<RootLayout> {
    let note = fs::read(place.join(NOTE)).ok()?;
    let layout: RootLayout = serde_json::from_slice(&note).ok()?;
    let root = RootLayout { dir: place.to_owned(), cached: true, ..layout };
    layout::verify(place, false).ok()?;
    // The time tells which roots are in use.
    let touch = fs::File::options().append(true).open(place.join(NOTE));
    touch.and_then(|file| file.set_modified(SystemTime::now())).ok();
    Some(root)
}

/// Moves a finished layout to its place, in one step; what was there before goes with the work folder.
pub fn put(made: RootLayout, place: &Path, work: &Path) -> Result<RootLayout> {
    files::write(&made.dir.join(NOTE), &serde_json::to_vec_pretty(&made)?)?;
    if place.exists() {
        fs::rename(place, work.join("old"))?;
    }
    fs::rename(&made.dir, place).with_context(|| format!("moving to {}", place.display()))?;
    if let Some(roots) = place.parent() {
        forget_old(roots, KEPT);
    }
    Ok(RootLayout { dir: place.to_owned(), ..made })
}

/// Removes all finished roots but the `kept` that were used last.
fn forget_old(roots: &Path, kept: usize) {
    let used = |name: String| -> Option<(SystemTime, PathBuf)> {
        let place = roots.join(name);
        Some((fs::metadata(place.join(NOTE)).ok()?.modified().ok()?, place))
    };
    let mut all: Vec<_> = names(roots).into_iter().filter_map(used).collect();
    all.sort_unstable();
    for (_, place) in all.iter().rev().skip(kept) {
        // A root that somebody reads stays readable: its files are open.
        fs::remove_dir_all(place).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roots_used_last_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (name, age) in [("a", 30), ("b", 10), ("c", 20)] {
            let place = dir.path().join(name);
            fs::create_dir(&place).unwrap();
            let file = fs::File::create(place.join(NOTE)).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        fs::create_dir(dir.path().join("no-root")).unwrap();
        forget_old(dir.path(), 2);
        let mut left = names(dir.path());
        left.sort_unstable();
        assert_eq!(left, ["b", "c", "no-root"]);
    }
}
