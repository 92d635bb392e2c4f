//! What a registry need not keep: old immutable names, candidates that nobody published, and their bases. Pure: what is there is
//! given. A registry removes manifests, and with one every tag that points at it: so what is removed is a digest, and
//! only one that nothing which stays needs.

use super::candidate::PREFIX;
use super::promote::There;
use crate::build::shared::is_base;
use crate::out::columns;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the tags of a repository.
#[derive(Debug, Default)]
pub struct Known {
    /// Every tag with its digest, but for lists of referrers.
    pub tags: There,
    /// Day and build of the immutable ones, with the image that each is of.
    pub days: BTreeMap<String, (String, (u32, u32))>,
    /// When each candidate was tested last (RFC 3339); none where it was not.
    pub tested: BTreeMap<String, String>,
    /// The manifests of each index, by its digest.
    pub children: BTreeMap<String, Vec<String>>,
    /// The tag of the base that each image was made from, by its digest.
    pub bases: BTreeMap<String, String>,
}

/// What is done about a tag, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The tag.
    pub tag: String,
    /// What it points at.
    pub digest: String,
    /// Whether it goes.
    pub goes: bool,
    /// Why.
    pub why: &'static str,
}

/// Judges every tag: of each image the newest `keep` immutable names stay, and candidates tested after `since`; and every
/// base that one of those was made from.
pub fn judge(known: &Known, keep: usize, since: &str) -> Vec<Verdict> {
    let newest = newest(known, keep);
    let reason = |tag: &String| match (known.days.contains_key(tag), tag.starts_with(PREFIX)) {
        (true, _) if newest.contains(tag) => Some("among the newest"),
        (true, _) => None,
        (false, true) => match known.tested.get(tag) {
            Some(tested) if tested.as_str() < since => None,
            Some(_) => Some("a candidate that was tested lately"),
            None => Some("a candidate of unknown age"),
        },
        (false, false) if is_base(tag) => None,
        (false, false) => Some("a name that moves"),
    };
    let mut needed = BTreeSet::new();
    // A candidate that was published stays or goes with its names.
    let published: BTreeSet<&String> =
        known.tags.iter().filter(|(tag, _)| !tag.starts_with(PREFIX)).map(|(_, digest)| digest).collect();
    for (tag, digest) in &known.tags {
        let is_published = tag.starts_with(PREFIX) && published.contains(digest);
        if !is_published && reason(tag).is_some() {
            needed.insert(digest.clone());
            needed.extend(known.children.get(digest).into_iter().flatten().cloned());
        }
    }
    let bases = needed.iter().filter_map(|digest| known.tags.get(known.bases.get(digest)?)).cloned();
    needed.extend(bases.collect::<Vec<_>>());
    let judge = |(tag, digest): (&String, &String)| {
        let goes = !needed.contains(digest);
        let why = match (goes, reason(tag)) {
            (true, _) => "old",
            (false, _) if is_base(tag) => "the base of an image that stays",
            (false, Some(why)) => why,
            (false, None) => "another name of what stays",
        };
        Verdict { tag: tag.clone(), digest: digest.clone(), goes, why }
    };
    known.tags.iter().map(judge).collect()
}

/// The immutable names that are the newest of their image.
fn newest(known: &Known, keep: usize) -> BTreeSet<String> {
    let mut of_image = BTreeMap::<&str, Vec<((u32, u32), &String)>>::new();
    for (tag, (image, day)) in &known.days {
        of_image.entry(image).or_default().push((*day, tag));
    }
    let mut kept = BTreeSet::new();
    for mut days in of_image.into_values() {
        days.sort_unstable_by(|a, b| b.cmp(a));
        kept.extend(days.into_iter().take(keep).map(|(_, tag)| tag.clone()));
    }
    kept
}

/// The digests that go, each once; an index before what it holds.
pub fn gone(known: &Known, verdicts: &[Verdict]) -> Vec<String> {
    let stays: BTreeSet<&String> = verdicts.iter().filter(|it| !it.goes).map(|it| &it.digest).collect();
    let held = stays.iter().flat_map(|digest| known.children.get(*digest)).flatten();
    let held: BTreeSet<&String> = held.chain(stays.iter().copied()).collect();
    let mut gone = Vec::new();
    for digest in verdicts.iter().filter(|it| it.goes).map(|it| &it.digest) {
        let children = known.children.get(digest).into_iter().flatten();
        for digest in [digest].into_iter().chain(children.filter(|child| !held.contains(child))) {
            if !gone.contains(digest) {
                gone.push(digest.clone());
            }
        }
    }
    gone
}

/// A line a tag.
pub fn table(verdicts: &[Verdict]) -> String {
    let mut rows = vec![["TAG", "WHAT", "WHY", "DIGEST"].map(str::to_owned)];
    rows.extend(verdicts.iter().map(|it| {
        let what = if it.goes { "goes" } else { "stays" };
        [it.tag.clone(), what.to_owned(), it.why.to_owned(), it.digest.clone()]
    }));
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD_BASE: &str = "base-2.15-0123456789abcde0";
    const BASE: &str = "base-2.15-0123456789abcde1";

    fn known() -> Known {
        let tags = [
            ("a-20260101", "1"),
            ("a-20260102", "2"),
            ("a-20260103", "3"),
            ("a-20260103.1", "4"),
            ("b-20250101", "9"),
            ("a", "1"),
            ("candidate-x-a", "2"),
            ("candidate-y-a", "5"),
            ("candidate-z-a", "6"),
            ("candidate-w-a", "7"),
            (OLD_BASE, "80"),
            (BASE, "81"),
        ];
        let day = |tag: &str| {
            let (image, day) = tag.split_once('-')?;
            let (day, build) = day.split_once('.').unwrap_or((day, "0"));
            Some((image.to_owned(), (day.parse().ok()?, build.parse().ok()?)))
        };
        let tested = [
            ("candidate-x-a", "2026-01-02"),
            ("candidate-y-a", "2026-01-01"),
            ("candidate-z-a", "2026-02-01"),
        ];
        Known {
            tags: tags.iter().map(|(tag, digest)| ((*tag).to_owned(), (*digest).to_owned())).collect(),
            days: tags.iter().filter_map(|(tag, _)| Some(((*tag).to_owned(), day(tag)?))).collect(),
            tested: tested.iter().map(|(tag, at)| ((*tag).to_owned(), (*at).to_owned())).collect(),
            children: BTreeMap::from([
                ("2".to_owned(), vec!["20".to_owned(), "40".to_owned()]),
                ("4".to_owned(), vec!["40".to_owned()]),
            ]),
            // The newest image is an index, and its manifest tells.
            bases: BTreeMap::from([
                ("5".to_owned(), OLD_BASE.to_owned()),
                ("40".to_owned(), BASE.to_owned()),
            ]),
        }
    }

    #[test]
    fn what_a_moving_name_points_at_never_goes() {
        let known = known();
        let verdicts = judge(&known, 1, "2026-01-15");
        let of = |tag: &str| verdicts.iter().find(|it| it.tag == tag).map(|it| (it.goes, it.why)).unwrap();
        assert_eq!(of("a-20260101"), (false, "another name of what stays"));
        assert_eq!(of("a-20260102"), (true, "old"));
        assert_eq!(of("a-20260103"), (true, "old"));
        assert_eq!(of("a-20260103.1"), (false, "among the newest"));
        assert_eq!(of("b-20250101"), (false, "among the newest"));
        assert_eq!(of("candidate-x-a"), (true, "old"));
        assert_eq!(of("candidate-y-a"), (true, "old"));
        assert_eq!(of("candidate-z-a"), (false, "a candidate that was tested lately"));
        assert_eq!(of("candidate-w-a"), (false, "a candidate of unknown age"));
        assert_eq!(of(OLD_BASE), (true, "old"));
        assert_eq!(of(BASE), (false, "the base of an image that stays"));
        // What the index of the newest holds stays, although an old one holds it too.
        assert_eq!(gone(&known, &verdicts), ["2", "20", "3", "80", "5"]);
        let goes = judge(&known, 9, "2026-01-15").into_iter().filter(|it| it.goes).map(|it| it.tag);
        assert_eq!(goes.collect::<Vec<_>>(), [OLD_BASE, "candidate-y-a"]);
    }
}
