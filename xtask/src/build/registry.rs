//! What a build takes from registries, and whether it is there: asked once for each image, before anything is built.

use crate::catalog::{Catalog, mirrored};
use crate::engine::Engine;
use crate::faults;
use crate::plan::{Chosen, Existing, Inputs};
use crate::problem::{Id, Problem, refuse};
use crate::resolve::Resolved;
use crate::runner::tail;
use crate::tags::{planned, references};
use crate::tiers::tiers;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// Images of registries by reference, each with the images that need it.
pub type Needed = BTreeMap<String, Chosen>;

/// What the chosen images, all of one root, need of registries.
pub fn needed(
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
    chosen: &Chosen,
    root: &str,
    mirror: Option<&str>,
) -> Needed {
    let mut needed = Needed::new();
    for (release, variant) in chosen {
        let tiers = tiers(catalog, &resolved[release], variant);
        let toolkits = tiers.iter().filter_map(|tier| tier.toolkit?.reference());
        for reference in toolkits.chain(catalog.roots[root].reference()) {
            needed.entry(mirrored(mirror, &reference)).or_default().push((release.clone(), variant.clone()));
        }
    }
    needed
}

/// What a registry has of the chosen images: what each was made from, by its reference without the registry.
///
/// Errors: those of [`unavailable`], but for an image that is simply not there.
pub fn existing(
    engine: &Engine,
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
    chosen: &Chosen,
    registry: &str,
) -> Result<Existing> {
    let mut existing = Existing::new();
    for (release, variant) in chosen {
        for reference in references(catalog, planned(catalog, &resolved[release], variant)?) {
            let there = format!("{}/{reference}", registry.trim_end_matches('/'));
            let step = engine.docker("what it was made from", ["buildx", "imagetools", "inspect", &there]);
            let answer = step.args(["--format", "{{json .Image}}"]).output()?;
            if answer.status.success() {
                existing.insert(reference, Inputs::of(catalog, &labels(&answer.stdout)?));
                continue;
            }
            match faults::of_registry(&answer.stderr) {
                Id::BaseGone => {}
                id => return refuse(id, there, tail(answer.stderr.trim(), 1), faults::cure(id)),
            }
        }
    }
    Ok(existing)
}

/// The labels of an image, or of the first of an index: what `imagetools` prints is a configuration, or one a platform.
fn labels(text: &str) -> Result<BTreeMap<String, String>> {
    let image: Value = serde_json::from_str(text).context("reading what the registry has")?;
    let of = |image: &Value| image["config"]["Labels"].as_object().cloned();
    let found = of(&image).or_else(|| image.as_object()?.values().find_map(of)).unwrap_or_default();
    Ok(found.into_iter().map(|(key, value)| (key, value.as_str().unwrap_or_default().to_owned())).collect())
}

/// Those that cannot be had: what is wrong, and which images cannot be built for it.
///
/// The words are the registry's: `E_BASE_GONE`, `E_RATE_LIMIT`, `E_REGISTRY_AUTH`, `E_TLS`, `E_NETWORK`.
pub fn unavailable(engine: &Engine, needed: Needed) -> Result<Vec<(Problem, Chosen)>> {
    let mut missing = Vec::new();
    for (reference, users) in needed {
        let step = engine.docker("is it there?", ["buildx", "imagetools", "inspect", &reference]);
        let answer = step.output()?;
        if answer.status.success() {
            continue;
        }
        let id = faults::of_registry(&answer.stderr);
        let said = tail(answer.stderr.trim(), 1);
        let names: Vec<String> =
            users.iter().map(|(release, variant)| format!("{release} {variant}")).collect();
        let what = format!("{} cannot be built here, it is not to be had: {said}", names.join(", "));
        missing.push((Problem::new(id, reference, what, faults::cure(id)), users));
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_an_image_and_of_an_index_are_read() {
        let config = r#"{"config":{"Labels":{"a":"1"}}}"#;
        assert_eq!(labels(config).unwrap()["a"], "1");
        assert_eq!(labels(&format!(r#"{{"linux/amd64":{config}}}"#)).unwrap()["a"], "1");
        assert!(labels(r#"{"config":{}}"#).unwrap().is_empty());
        assert!(labels("no such thing").is_err());
    }
}
