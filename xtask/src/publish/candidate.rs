//! Images that wait in the registry for their names. Their own is none that a user would take.

use crate::catalog::{Catalog, Platform};
use crate::problem::{Id, Problem, Refusal, refuse};
use crate::registry::{Manifest, Registry, Repository};
use anyhow::Result;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What every candidate's tag begins with.
pub const PREFIX: &str = "candidate-";

/// The label that tells the commit an image was built from.
pub const REVISION: &str = "org.opencontainers.image.revision";

/// An image in the registry, by what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// Its platform.
    pub platform: Platform,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The part of an image's configuration that is read here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Configuration {
    architecture: String,
    os: String,
    config: Settings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Settings {
    labels: Option<BTreeMap<String, String>>,
}

impl Configuration {
    /// `linux/amd64`.
    pub fn platform(&self) -> String {
        format!("{}/{}", self.os, self.architecture)
    }

    /// The image's labels.
    pub fn labels(self) -> BTreeMap<String, String> {
        self.config.labels.unwrap_or_default()
    }
}

/// The tag of a candidate: of one commit, so that what is published belongs to the checkout that publishes it.
pub fn tag(revision: &str, (release, variant): (&str, &str), platform: Platform) -> String {
    let (commit, dirty) = match revision.strip_suffix("-dirty") {
        Some(commit) => (commit, "-dirty"),
        None => (revision, ""),
    };
    let short: String = commit.chars().take(12).collect();
    format!("{PREFIX}{short}{dirty}-{release}-{variant}-{}", platform.debian())
}

/// The configuration of an image; of an index, none.
pub fn configuration(
    registry: &Registry,
    at: &Repository,
    image: &Manifest,
) -> Result<Option<Configuration>> {
    match image.document()?.config {
        Some(config) => Ok(Some(serde_json::from_slice(&registry.blob(at, &config.digest)?)?)),
        None => Ok(None),
    }
}

impl Candidate {
    /// Looks a candidate up by its tag.
    ///
    /// Errors: `E_BASE_GONE` where there is none, `E_IMAGE_DIFFERS` where it says that it is another image.
    pub fn find(
        registry: &Registry,
        at: &Repository,
        catalog: &Catalog,
        tag: &str,
        (release, variant, platform): (&str, &str, Platform),
    ) -> Result<Candidate> {
        let place = at.at(tag).to_string();
        let Some(manifest) = registry.manifest(&at.at(tag))? else {
            return refuse(
                Id::BaseGone,
                place,
                format!("there is no candidate of {release} {variant} for {platform} from this commit"),
                format!(
                    "run `cargo xtask build --release {release} --variant {variant} --push --registry …` first"
                ),
            );
        };
        let configuration = configuration(registry, at, &manifest)?.unwrap_or_default();
        let is_platform = configuration.platform();
        let labels = configuration.labels();
        let label = |key: &str| labels.get(&catalog.label(key)).map(String::as_str).unwrap_or_default();
        let is = (label("release"), label("variant"), is_platform.as_str());
        if is != (release, variant, platform.as_str()) {
            let what =
                format!("it is {} {} for {}, not {release} {variant} for {platform}", is.0, is.1, is.2);
            let cure = "push the candidate again with `cargo xtask build --push`";
            return Err(Refusal::from(Problem::new(Id::ImageDiffers, place, what, cure)).into());
        }
        Ok(Candidate { release: release.to_owned(), variant: variant.to_owned(), platform, manifest, labels })
    }

    /// The commit that it was built from.
    pub fn revision(&self) -> &str {
        self.labels.get(REVISION).map_or("unknown", String::as_str)
    }
}

/// A commit that anybody can check out again.
///
/// Errors: `E_NO_REVISION` for none, or for one with changes beside it; `allow_dirty` takes both.
pub fn check_revision(place: &str, revision: &str, allow_dirty: bool) -> Result<()> {
    let what = match revision {
        "unknown" | "" => "it is not known from which commit",
        dirty if dirty.ends_with("-dirty") => "files differed from the commit",
        _ => return Ok(()),
    };
    if allow_dirty {
        return Ok(());
    }
    refuse(
        Id::NoRevision,
        place,
        format!("{what}: `{revision}`"),
        "commit, then build again with --force; or give --allow-dirty, and the label will say so",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidates_tag_tells_commit_image_and_platform() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let of = |revision: &str| tag(revision, ("2.15", "runtime"), Platform::Amd64);
        assert_eq!(of(commit), "candidate-0123456789ab-2.15-runtime-amd64");
        assert_eq!(of(&format!("{commit}-dirty")), "candidate-0123456789ab-dirty-2.15-runtime-amd64");
        assert_eq!(of("unknown"), "candidate-unknown-2.15-runtime-amd64");
    }

    #[test]
    fn only_a_commit_is_a_revision() {
        let refused = |revision: &str, allow| check_revision("p", revision, allow).is_err();
        assert!(refused("unknown", false) && refused("", false) && refused("0123-dirty", false));
        assert!(!refused("0123", false) && !refused("unknown", true) && !refused("0123-dirty", true));
    }
}
