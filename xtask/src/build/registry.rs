//! What a build takes from registries, and whether it is there: asked once for each image, before anything is built.

use crate::catalog::{Catalog, mirrored};
use crate::engine::Engine;
use crate::faults;
use crate::plan::Chosen;
use crate::problem::Problem;
use crate::resolve::Resolved;
use crate::runner::tail;
use crate::tiers::tiers;
use anyhow::Result;
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
        let names: Vec<String> = users.iter().map(|(release, variant)| format!("{release} {variant}")).collect();
        let what = format!("{} cannot be built here, it is not to be had: {said}", names.join(", "));
        missing.push((Problem::new(id, reference, what, faults::cure(id)), users));
    }
    Ok(missing)
}
