//! The root that a build stands on, compared with the one that was locked.

use crate::lock::{LockedRoot, differences};
use crate::root::RootLayout;

/// The packages in which a root differs from the lock's, a line each: `libc6 2.41-12 → 2.41-13`.
pub fn moved(locked: &LockedRoot, layout: &RootLayout) -> Vec<String> {
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
    use std::path::PathBuf;

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
