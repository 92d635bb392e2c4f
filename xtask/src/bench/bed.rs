//! A copy of the project, in which a case changes what it changes.

use super::Case;
use crate::catalog::{Catalog, Platform};
use crate::files;
use crate::lock::{self, Lock, Wheel};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What a project is made of.
const PARTS: [&str; 2] = ["images", "templates"];

/// The copy.
pub struct Bed {
    folder: PathBuf,
}

impl Bed {
    /// Copies the project that a catalog belongs to; what was there before goes.
    pub fn make(catalog: &Catalog, folder: &Path) -> Result<Bed> {
        files::empty(folder)?;
        let from = catalog.folder();
        for part in PARTS {
            for path in files::walk(&from.join(part))? {
                let to = folder.join(part).join(&path);
                std::fs::create_dir_all(to.parent().unwrap_or(folder))?;
                // With its mode: scripts are copied into images as they are.
                std::fs::copy(from.join(part).join(&path), &to)
                    .with_context(|| format!("copying {}", to.display()))?;
            }
        }
        let bed = Bed { folder: folder.to_owned() };
        std::fs::copy(&catalog.file, bed.catalog())
            .with_context(|| format!("copying {}", catalog.file.display()))?;
        Ok(bed)
    }

    /// The catalog of the copy.
    pub fn catalog(&self) -> PathBuf {
        self.folder.join("variants.yaml")
    }

    /// Makes the change of a case; `other` is another version of one of the release's wheels.
    pub fn change(&self, case: Case, release: &str, platform: Platform, other: Option<&Wheel>) -> Result<()> {
        match case {
            Case::File => {
                files::write(&self.folder.join("templates/rootfs/opt/bench.txt"), b"another file\n")
            }
            Case::Wheel => self.lock(|lock| {
                if let (Some(other), Some(it)) = (other, lock.releases.get_mut(release)) {
                    let wheels = it.wheels.entry(platform).or_default();
                    wheels
                        .iter_mut()
                        .filter(|wheel| wheel.name == other.name)
                        .for_each(|it| it.clone_from(other));
                }
            }),
            // What `lock --update` does on another day: the files of the root get another time.
            Case::Root => self.lock(|lock| lock.epoch += 24 * 60 * 60),
            Case::Cold | Case::Unchanged | Case::Variant | Case::Wheels => Ok(()),
        }
    }

    fn lock(&self, edit: impl FnOnce(&mut Lock)) -> Result<()> {
        let mut lock = lock::read(&self.folder)?;
        edit(&mut lock);
        lock::write(&self.folder, &lock)
    }
}
