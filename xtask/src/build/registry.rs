//! What a build takes from registries, and whether it is there: asked once for each image, before anything is built.

use crate::catalog::{Catalog, mirrored};
use crate::engine::Engine;
use crate::http::{Cause, Failure, Retry};
use crate::plan::{Chosen, Existing, Inputs};
use crate::problem::{Id, Problem};
use crate::resolve::Resolved;
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
    (engine, retry): (&Engine, &Retry),
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
    chosen: &Chosen,
    registry: &str,
) -> Result<Existing> {
    let mut existing = Existing::new();
    for (release, variant) in chosen {
        for reference in references(catalog, planned(catalog, &resolved[release], variant)?) {
            let there = format!("{}/{reference}", registry.trim_end_matches('/'));
            let format = ["--format", "{{json .Image}}"];
            match retry.run(&format!("a look at {there}"), || inspect(engine, &there, &format)) {
                Ok(image) => drop(existing.insert(reference, Inputs::of(catalog, &labels(&image)?))),
                Err(failure) if failure.cause.id() == Id::BaseGone => {}
                Err(failure) => return Err(failure.error(there)),
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

/// What docker's client is told of an image in a registry.
fn inspect(engine: &Engine, reference: &str, more: &[&str]) -> Result<String, Failure> {
    let step = engine.docker("is it there?", ["buildx", "imagetools", "inspect", reference]);
    let answer = step.args(more.iter().copied()).output();
    let answer = answer.map_err(|error| Failure::of_words(&error.to_string()))?;
    if answer.status.success() { Ok(answer.stdout) } else { Err(Failure::of_words(&answer.stderr)) }
}

/// Those that cannot be had: what is wrong, and which images cannot be built for it.
///
/// The words are the registry's: `E_BASE_GONE`, `E_RATE_LIMIT`, `E_REGISTRY_AUTH`, `E_TLS`, `E_NETWORK`.
pub fn unavailable((engine, retry): (&Engine, &Retry), needed: Needed) -> Vec<(Problem, Chosen)> {
    let mut missing = Vec::new();
    for (reference, users) in needed {
        let once = || inspect(engine, &reference, &[]).map_err(for_good);
        let Err(failure) = retry.run(&format!("a look at {reference}"), once) else {
            continue;
        };
        let names: Vec<String> =
            users.iter().map(|(release, variant)| format!("{release} {variant}")).collect();
        let said = format!("{} cannot be built here, it is not to be had: {failure}", names.join(", "));
        missing.push((Problem { what: said, ..failure.problem(reference) }, users));
    }
    missing
}

/// Many machines have no registry in reach: a name that no resolver knows is not waited for, there is much else to build.
fn for_good(failure: Failure) -> Failure {
    match failure.said.contains("no such host") {
        true => Failure { cause: Cause::Other(Id::Network), ..failure },
        false => failure,
    }
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
