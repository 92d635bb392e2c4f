//! The project as it lies on disk: catalog, facts and lock, read in the one order in which they depend on each other.

use crate::catalog::{Catalog, Distribution};
use crate::cli::Select;
use crate::compat::Compat;
use crate::files;
use crate::lint;
use crate::lock::{self, Lock};
use crate::plan::Chosen;
use crate::render::{self, Files, Templates};
use crate::resolve::{Resolved, resolve};
use crate::{digest, problem, tiers};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A catalog whose releases were resolved.
pub struct Project {
    /// `variants.yaml`.
    pub catalog: Catalog,
    /// Facts by release.
    pub resolved: BTreeMap<String, Resolved>,
}

impl Project {
    /// Reads the catalog and resolves every release; starts nothing.
    pub fn read(file: &Path, allow_unverified: bool) -> Result<Project> {
        let catalog = Catalog::read(file)?;
        let resolved = resolve(&catalog, Compat::bundled()?, allow_unverified)?;
        problem::all_or_nothing(tiers::check(&catalog, &resolved))?;
        Ok(Project { catalog, resolved })
    }

    /// The suite that the private engine's packages come from: that of the default root, if Debian has it.
    pub fn suite(&self) -> &str {
        let default = &self.catalog.roots[&self.catalog.defaults.root];
        match default.distribution {
            Distribution::Debian => &default.suite,
            Distribution::Ubuntu => "stable",
        }
    }

    /// The lock, if it is made from this catalog.
    pub fn lock(&self) -> Result<Lock> {
        lock::read_checked(&self.catalog, &self.resolved)
    }

    /// The templates beside the catalog.
    pub fn templates(&self) -> Result<Templates> {
        Templates::read(&self.catalog.folder().join("templates"))
    }

    /// What `images/` holds when it is up to date. What does not pass our lint is never written, nor built.
    pub fn render(&self, lock: &Lock) -> Result<Files> {
        let (catalog, templates) = (&self.catalog, self.templates()?);
        let mut files = render::render(catalog, lock, &templates)?;
        files.extend(render::readmes(&catalog.folder(), catalog, lock, &templates)?);
        problem::all_or_nothing(lint::lint(&files))?;
        Ok(files)
    }

    /// Lock and rendered files, after both were proved to be up to date.
    pub fn proved(&self) -> Result<(Lock, Files)> {
        let lock = self.lock()?;
        let files = self.render(&lock)?;
        render::check(&self.catalog.folder(), &files)?;
        Ok((lock, files))
    }

    /// Digests of the files that are copied into images as they are: `rootfs/…` into all, `variants/<name>/…` into one.
    pub fn copied(&self) -> Result<BTreeMap<PathBuf, String>> {
        let folder = self.catalog.folder().join("templates");
        let mut paths = files::walk(&folder)?;
        paths.retain(|path| path.starts_with("rootfs") || render::is_own_file(path));
        paths.into_iter().map(|path| Ok((path.clone(), digest::of_file(&folder.join(path))?))).collect()
    }

    /// Releases and variants that a command line names, all unknown names refused together.
    pub fn select(&self, select: &Select) -> Result<Chosen> {
        let releases = self.releases(select)?;
        let variants = match select.all {
            true => self.catalog.variants_in_order().into_iter().map(str::to_owned).collect(),
            false => select.variant.clone(),
        };
        let pairs = releases.iter().flat_map(|r| variants.iter().map(move |v| (r.clone(), v.clone())));
        Ok(pairs.collect())
    }

    /// The releases alone; an unknown name of anything else is refused all the same.
    pub fn releases(&self, select: &Select) -> Result<Vec<String>> {
        let catalog = &self.catalog;
        let mut problems = Vec::new();
        let mut known = |flag: &str, kind: &str, names: &[String], known: Vec<&str>| {
            for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                problems.push(problem::unknown_name(flag, kind, name, known.iter().copied()));
            }
        };
        known("--release", "release", &select.release, catalog.releases.keys().map(String::as_str).collect());
        known("--variant", "variant", &select.variant, catalog.variants_in_order());
        let root: Vec<String> = select.root.iter().cloned().collect();
        known("--root", "root", &root, catalog.roots.keys().map(String::as_str).collect());
        problem::all_or_nothing(problems)?;
        Ok(match (select.release.is_empty(), select.all) {
            (true, true) => catalog.releases_newest_first().into_iter().map(str::to_owned).collect(),
            (true, false) => vec![catalog.defaults.release.clone()],
            (false, _) => select.release.clone(),
        })
    }
}
