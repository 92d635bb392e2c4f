//! Tags from what was read out of a finished image: one pure function.

use crate::catalog::{Catalog, TAG_FIELDS, tag_fields};
use crate::problem::{Id, Problem, Refusal};
use crate::resolve::Resolved;

/// What a tag may tell, read out of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth<'a> {
    /// The public version of torch: `2.15.0`.
    pub torch: &'a str,
    /// The release's name: `2.15`.
    pub release: &'a str,
    /// major.minor of CUDA: `13.2`.
    pub cuda: &'a str,
    /// Version of cuDNN, of which a tag tells the major: `9.26.0`.
    pub cudnn: &'a str,
    /// The variant's name.
    pub variant: &'a str,
}

impl<'a> Truth<'a> {
    /// What is expected before an image is there.
    pub fn planned(facts: &'a Resolved, variant: &'a str) -> Truth<'a> {
        Truth {
            torch: &facts.torch,
            release: &facts.release,
            cuda: &facts.cuda,
            cudnn: &facts.cudnn,
            variant,
        }
    }
}

/// The tags of an image, the most precise first.
///
/// Errors: `E_TAG` for a tag that the OCI distribution specification does not allow.
pub fn tags(catalog: &Catalog, truth: &Truth) -> anyhow::Result<Vec<String>> {
    let tags: Vec<String> = catalog.tags.iter().map(|template| fill(template, truth)).collect();
    let illegal: Vec<Problem> = tags
        .iter()
        .enumerate()
        .filter(|(_, tag)| !is_tag(tag))
        .map(|(i, tag)| {
            Problem::new(
                Id::Tag,
                catalog.place(&["tags", &i.to_string()]),
                format!("`{tag}` is not a legal tag"),
                "use letters, digits, `.`, `_` and `-`, at most 128, not beginning with `.` or `-`",
            )
        })
        .collect();
    if illegal.is_empty() { Ok(tags) } else { Err(Refusal(illegal).into()) }
}

/// The tags that an image will have if it holds what was planned.
pub fn planned(catalog: &Catalog, facts: &Resolved, variant: &str) -> anyhow::Result<Vec<String>> {
    tags(catalog, &Truth::planned(facts, variant))
}

/// The names of an image that move at publishing: its tags, and those of the default release.
///
/// Errors: as [`tags`].
pub fn moving(catalog: &Catalog, truth: &Truth) -> anyhow::Result<Vec<String>> {
    let mut all = tags(catalog, truth)?;
    if truth.release == catalog.defaults.release {
        all.extend(catalog.publish.default.iter().map(|template| fill(template, truth)));
    }
    Ok(all)
}

/// The name of an image that never moves, of one day (`20261130`), for the first or a later build of that day.
pub fn immutable(catalog: &Catalog, truth: &Truth, date: &str, build: u32) -> String {
    let day = fill(&catalog.publish.immutable, truth).replace("{date}", date);
    if build == 0 { day } else { format!("{day}.{build}") }
}

/// The day and the build in a name that never moves; none for any other tag.
pub fn day_of(catalog: &Catalog, truth: &Truth, tag: &str) -> Option<(u32, u32)> {
    let stem = fill(&catalog.publish.immutable, truth);
    let rest = tag.strip_prefix(stem.strip_suffix("{date}")?)?;
    let (day, build) = rest.split_once('.').unwrap_or((rest, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (day.len() == 8 && digits(day) && digits(build)).then_some((day.parse().ok()?, build.parse().ok()?))
}

/// Tags as references of the catalog's repository, without a registry.
pub fn references(catalog: &Catalog, tags: Vec<String>) -> Vec<String> {
    tags.into_iter().map(|tag| format!("{}:{tag}", catalog.repository)).collect()
}

fn fill(template: &str, truth: &Truth) -> String {
    let value = |field: &str| match field {
        "torch" => truth.torch,
        "release" => truth.release,
        "cuda" => truth.cuda,
        "cudnn" => truth.cudnn.split('.').next().unwrap_or_default(),
        _ => truth.variant,
    };
    debug_assert!(tag_fields(template).all(|field| TAG_FIELDS.contains(&field) || field == "date"));
    TAG_FIELDS
        .iter()
        .fold(template.to_owned(), |tag, field| tag.replace(&format!("{{{field}}}"), value(field)))
}

/// The grammar of the OCI distribution specification: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
fn is_tag(tag: &str) -> bool {
    let mut chars = tag.chars();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    chars.next().is_some_and(word) && chars.all(|c| word(c) || c == '.' || c == '-') && tag.len() <= 128
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: Truth =
        Truth { torch: "2.15.0", release: "2.15", cuda: "13.2", cudnn: "9.26.0", variant: "runtime" };

    #[test]
    fn templates_are_filled_with_the_truth() {
        let cases = [
            ("{torch}-cuda{cuda}-cudnn{cudnn}-{variant}", "2.15.0-cuda13.2-cudnn9-runtime"),
            ("{torch}-{variant}", "2.15.0-runtime"),
            ("{release}-{variant}", "2.15-runtime"),
            ("{variant}", "runtime"),
        ];
        for (template, tag) in cases {
            assert_eq!(fill(template, &TRUTH), tag);
        }
    }

    #[test]
    fn what_publishing_adds_is_told_from_what_moves() {
        let catalog = Catalog::parse("v.yaml", include_str!("../../variants.yaml")).unwrap();
        let moving = |release| moving(&catalog, &Truth { release, ..TRUTH }).unwrap();
        assert_eq!(moving("2.15")[3..], ["runtime"]);
        assert_eq!(moving("2.9").len(), 3);
        let tag = |build| immutable(&catalog, &TRUTH, "20261130", build);
        assert_eq!(tag(0), "2.15.0-cuda13.2-cudnn9-runtime-20261130");
        assert_eq!(tag(2), "2.15.0-cuda13.2-cudnn9-runtime-20261130.2");
        let day = |tag: &str| day_of(&catalog, &TRUTH, tag);
        assert_eq!((day(&tag(0)), day(&tag(2))), (Some((20261130, 0)), Some((20261130, 2))));
        for other in ["2.15.0-cuda13.2-cudnn9-runtime", "2.15.0-cuda13.2-cudnn9-devel-20261130", "runtime"] {
            assert_eq!(day(other), None, "{other}");
        }
        assert_eq!(day("2.15.0-cuda13.2-cudnn9-runtime-20261130.x"), None);
    }

    #[test]
    fn a_tag_is_legal_or_refused() {
        assert!(is_tag("2.15.0-runtime") && is_tag("_a") && is_tag(&"x".repeat(128)));
        assert!(!is_tag("-a") && !is_tag(".a") && !is_tag("a+b") && !is_tag("") && !is_tag(&"x".repeat(129)));
    }
}
