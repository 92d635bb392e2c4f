//! Names for what was proved: the immutable ones first, then those that move, then a look whether the registry has them.

use super::proved::Image;
use crate::catalog::Catalog;
use crate::out::{columns, word};
use crate::problem::{Id, refuse};
use crate::registry::{Registry, Repository};
use crate::smoke::State;
use crate::tags::{day_of, immutable};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;

/// Tags with their digests, as a registry has them.
pub type There = BTreeMap<String, String>;

/// One name of one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// The tag.
    pub tag: String,
    /// What it is to point at.
    pub digest: String,
    /// The state that its smoke report tells.
    pub state: State,
    /// Whether it may ever point at something else.
    pub moves: bool,
    /// What came of it.
    pub done: Done,
}

/// What came of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// It points there now.
    Moved,
    /// It pointed there already.
    WasThere,
    /// It points where it did before.
    Undone,
}

/// The names that images are to have, in the order in which they are given. Pure: what is there is given.
pub fn names(catalog: &Catalog, images: &[Image], date: &str, there: &There) -> Result<Vec<Name>> {
    let (mut fixed, mut moved) = (Vec::new(), Vec::new());
    for image in images {
        let name = |tag: String, moves| {
            let digest = image.manifest.digest.clone();
            let done = if there.get(&tag) == Some(&digest) { Done::WasThere } else { Done::Undone };
            let (release, variant, state) = (image.release.clone(), image.variant.clone(), image.state);
            Name { release, variant, tag, digest, state, moves, done }
        };
        fixed.push(name(free(catalog, image, date, there)?, false));
        moved.extend(image.moving(catalog)?.into_iter().map(|tag| name(tag, true)));
    }
    fixed.extend(moved);
    Ok(fixed)
}

/// The image's name of that day, or the first one that is free.
fn free(catalog: &Catalog, image: &Image, date: &str, there: &There) -> Result<String> {
    let truth = image.truth()?;
    let mut all = (0..).map(|build| immutable(catalog, &truth, date, build));
    let mine = |tag: &String| there.get(tag).is_none_or(|digest| *digest == image.manifest.digest);
    // The names of a day have no end.
    Ok(all.find(mine).unwrap_or_default())
}

/// The tags that decide the names of some images, as the registry has them now.
pub fn there(registry: &Registry, at: &Repository, catalog: &Catalog, images: &[Image]) -> Result<There> {
    let mut wanted = Vec::new();
    for tag in registry.tags(at)? {
        for image in images {
            if day_of(catalog, &image.truth()?, &tag).is_some() || image.moving(catalog)?.contains(&tag) {
                wanted.push(tag.clone());
            }
        }
    }
    let mut there = There::new();
    for tag in wanted {
        if let Some(found) = registry.resolve(&at.at(&tag))? {
            there.insert(tag, found.digest);
        }
    }
    Ok(there)
}

/// Gives the names of one kind; the first that fails ends it.
pub fn give(
    registry: &Registry,
    at: &Repository,
    images: &[Image],
    names: &mut [Name],
    moving: bool,
) -> Result<()> {
    for name in names.iter_mut().filter(|it| it.moves == moving && it.done == Done::Undone) {
        let reference = at.at(&name.tag);
        let Some(image) = images.iter().find(|it| it.manifest.digest == name.digest) else {
            continue;
        };
        if !moving && registry.resolve(&reference)?.is_some_and(|found| found.digest != name.digest) {
            let what = "somebody else took this name in the meantime";
            return refuse(
                Id::Tag,
                reference.to_string(),
                what,
                "run the same command again: it takes the next one",
            );
        }
        registry.put(&reference, &image.manifest)?;
        name.done = Done::Moved;
    }
    Ok(())
}

/// Looks whether every name points where it should.
///
/// Errors: `E_DIGEST` for those that do not; they count as undone.
pub fn verify(registry: &Registry, at: &Repository, names: &mut [Name]) -> Result<()> {
    let mut problems = Vec::new();
    for name in names.iter_mut() {
        let reference = at.at(&name.tag);
        let found = registry.resolve(&reference)?.map(|found| found.digest);
        if found.as_ref() != Some(&name.digest) {
            name.done = Done::Undone;
            let is = found.unwrap_or_else(|| "nothing".to_owned());
            problems.push(crate::problem::Problem::new(
                Id::Digest,
                reference.to_string(),
                format!("it points at {is}, not at {}", name.digest),
                "look who else publishes there, then run the same command again",
            ));
        }
    }
    crate::problem::all_or_nothing(problems)
}

/// What was done and what was not.
pub fn table(names: &[Name]) -> String {
    let mut rows = vec![["RELEASE", "VARIANT", "TAG", "RESULT", "STATE", "DIGEST"].map(str::to_owned)];
    rows.extend(names.iter().map(|it| {
        let done = match (it.done, it.moves) {
            (Done::Moved, true) => "moved",
            (Done::Moved, false) => "made",
            (Done::WasThere, _) => "was there",
            (Done::Undone, _) => "UNDONE",
        };
        [
            it.release.clone(),
            it.variant.clone(),
            it.tag.clone(),
            done.to_owned(),
            word(it.state),
            it.digest.clone(),
        ]
    }));
    columns(&rows)
}
