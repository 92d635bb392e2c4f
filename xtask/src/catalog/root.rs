//! Roots of the catalog, and images of registries by tag and digest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A root file system: bootstrapped from Debian packages, or, where `image` is given, an image of a registry.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// The suite that packages come from, e.g. trixie.
    pub suite: String,
    /// The distribution of that suite.
    #[serde(default)]
    pub distribution: Distribution,
    /// Repository and tag of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of the image's index: `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// Environment variables of the image to override.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// major.minor of the root's own interpreter.
    pub python: String,
    /// dpkg path patterns to leave out.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// dpkg path patterns to keep even if `exclude` matches them.
    #[serde(default)]
    pub keep: Vec<String>,
}

/// Whose packages a root is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Distribution {
    #[default]
    Debian,
    Ubuntu,
}

impl Root {
    /// `repository:tag@digest`, where it is an image of a registry.
    pub fn reference(&self) -> Option<String> {
        reference(self.image.as_ref(), self.digest.as_ref())
    }
}

/// An image by its tag, which people know, and its digest, which is taken; spelt out so that a mirror can stand before it.
pub(super) fn reference(image: Option<&String>, digest: Option<&String>) -> Option<String> {
    let image = image?;
    let library = if image.contains('/') { "" } else { "library/" };
    Some(format!("{library}{image}@{}", digest?))
}

/// A reference through a mirror, unless it names its registry itself.
pub fn mirrored(mirror: Option<&str>, reference: &str) -> String {
    match mirror {
        Some(mirror) if !names_registry(reference) => format!("{}/{reference}", mirror.trim_end_matches('/')),
        _ => reference.to_owned(),
    }
}

/// Whether a reference begins with a host: docker tells it by a dot, a port, or `localhost`.
pub fn names_registry(reference: &str) -> bool {
    let first = reference.split_once('/').map_or("", |(first, _)| first);
    first.contains(['.', ':']) || first == "localhost"
}
