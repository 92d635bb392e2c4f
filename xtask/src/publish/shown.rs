//! What a registry tells of an image to who wants to show it: the names, the proof, the content, and what became of it.

use super::contents::{Contents, Difference, difference, in_registry};
use super::state::Published;
use crate::catalog::Catalog;
use crate::registry::{Registry, Repository};
use crate::resolve::Resolved;
use crate::tags::{Truth, day_of};
use anyhow::Result;

/// One published image.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its names and what is proved of it.
    pub published: Published,
    /// The digest that the names point at.
    pub digest: String,
    /// What it holds.
    pub contents: Contents,
    /// The image before it; none where it is the first.
    pub before: Option<Before>,
}

/// The image that was published before.
#[derive(Clone, Debug)]
pub struct Before {
    /// Its name that never moves.
    pub tag: String,
    /// What is another since.
    pub difference: Difference,
}

/// Asks for one image; `tags` are all those of the repository. None where it is not published.
///
/// Errors: a registry's own.
pub fn ask(
    registry: &Registry,
    at: &Repository,
    catalog: &Catalog,
    (facts, variant): (&Resolved, &str),
    tags: &[String],
) -> Result<Option<Shown>> {
    let published = Published::ask(registry, at, catalog, facts, variant)?;
    let Some(digest) = published.digest().map(str::to_owned) else {
        return Ok(None);
    };
    let contents = in_registry(registry, &at.at(&digest))?;
    let resolve = |tag: &str| Ok(registry.resolve(&at.at(tag))?.map(|found| found.digest));
    let before = match previous(&fixed(catalog, &Truth::planned(facts, variant), tags), &digest, resolve)? {
        Some(tag) => {
            let difference = difference(&in_registry(registry, &at.at(tag))?, &contents);
            Some(Before { tag: tag.to_owned(), difference })
        }
        None => None,
    };
    Ok(Some(Shown { published, digest, contents, before }))
}

/// The names of an image that never move, the newest first.
fn fixed<'a>(catalog: &Catalog, truth: &Truth, tags: &'a [String]) -> Vec<&'a str> {
    let mut days: Vec<((u32, u32), &str)> =
        tags.iter().filter_map(|tag| Some((day_of(catalog, truth, tag)?, tag.as_str()))).collect();
    days.sort_unstable();
    days.into_iter().rev().map(|(_, tag)| tag).collect()
}

/// The first name, going back from those of `digest`, that is of another image.
fn previous<'a>(
    fixed: &[&'a str],
    digest: &str,
    resolve: impl Fn(&str) -> Result<Option<String>>,
) -> Result<Option<&'a str>> {
    let mut passed = false;
    for tag in fixed {
        match resolve(tag)? {
            Some(found) if found == digest => passed = true,
            Some(_) if passed => return Ok(Some(tag)),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_is_the_last_other_image_under_a_name_that_stays() {
        let catalog = Catalog::parse("v.yaml", include_str!("../../../variants.yaml")).unwrap();
        let (torch, release, cuda, cudnn) = ("2.15.0", "2.15", "13.2", "9.26.0");
        let truth = Truth { torch, release, cuda, cudnn, variant: "runtime" };
        let stem = "2.15.0-cuda13.2-cudnn9-runtime";
        let tags = ["20261129", "20261130.10", "20261130.9", "20261201"].map(|day| format!("{stem}-{day}"));
        let others = [stem, "2.15-runtime", "candidate-1", "2.15.0-cuda13.2-cudnn9-devel-20261201"];
        let all: Vec<String> = tags.iter().cloned().chain(others.map(str::to_owned)).collect();
        let fixed = fixed(&catalog, &truth, &all);
        assert_eq!(fixed, [&tags[3], &tags[1], &tags[2], &tags[0]]);
        // The newest is not what users get: it was taken back. The name before it is of the same image.
        let of = ["d", "b", "b", "a"];
        let resolve = |tag: &str| Ok(fixed.iter().position(|it| *it == tag).map(|i| of[i].to_owned()));
        let before = |digest: &str| previous(&fixed, digest, resolve).unwrap();
        assert_eq!(before("b"), Some(tags[0].as_str()));
        assert_eq!((before("d"), before("a"), before("x")), (Some(tags[1].as_str()), None, None));
    }
}
