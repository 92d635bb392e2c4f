//! `images/README.md`: every image with what a person chooses by.

use super::{Templates, above_budget, layers};
use crate::catalog::{Catalog, Layers, Toolkit};
use crate::lock::{Lock, Wheel};
use crate::out::gigabytes;
use crate::resolve::Resolved;
use crate::tags::{planned, references};
use anyhow::Result;
use serde::Serialize;
use tera::Context;

#[derive(Serialize)]
struct Row<'a> {
    release: &'a str,
    variant: &'a str,
    torch: &'a str,
    torchvision: &'a str,
    torchaudio: &'a str,
    cuda: &'a str,
    cuda_build: &'a str,
    cudnn: &'a str,
    python: &'a str,
    driver_floor: &'a str,
    arch_list: String,
    wheels: String,
    tags: Vec<String>,
}

/// The toolkit of a release, for the variants that have it.
#[derive(Serialize)]
struct Toolchain<'a> {
    release: &'a str,
    cuda: &'a str,
    origin: String,
    tools: Vec<&'a String>,
}

impl<'a> Toolchain<'a> {
    fn new(release: &'a str, facts: &'a Resolved, toolkit: &'a Toolkit) -> Toolchain<'a> {
        let origin = match (&toolkit.image, toolkit.unpack.is_empty() && toolkit.packages.is_empty()) {
            (Some(image), _) => format!("the image `{image}` (needs a registry)"),
            (None, true) => "NVIDIA's wheels on PyPI".to_owned(),
            (None, false) => format!("Debian's `{}`", toolkit.unpack.join("`, `")),
        };
        Toolchain { release, cuda: &facts.cuda, origin, tools: toolkit.tools.programs.keys().collect() }
    }
}

/// How the base of a release is spread over layers.
#[derive(Serialize)]
struct Spread<'a> {
    release: &'a str,
    layers: usize,
    heavy: Vec<String>,
}

impl<'a> Spread<'a> {
    fn new(release: &'a str, wheels: &[Wheel], sizes: &Layers) -> Spread<'a> {
        let heavy = above_budget(wheels, sizes).into_iter();
        // Beside those of wheels: the root's, and the interpreter's.
        let layers = layers(wheels, sizes).len() + 2;
        Spread {
            release,
            layers,
            heavy: heavy.map(|(_, mb, wheel)| format!("{} {mb} MB", wheel.name)).collect(),
        }
    }
}

/// The page as text, the newest release first.
pub fn page(catalog: &Catalog, lock: &Lock, templates: &Templates) -> Result<String> {
    let platform = catalog.first_platform();
    let (mut rows, mut toolchains, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
    for name in catalog.releases_newest_first() {
        let release = &lock.releases[name];
        let facts = &release.facts;
        spreads.push(Spread::new(name, release.wheels(platform)?, &catalog.base.layers));
        let toolkit = catalog.toolkits.get(&facts.cuda_build);
        toolchains.extend(toolkit.map(|toolkit| Toolchain::new(name, facts, toolkit)));
        for variant in catalog.variants_in_order() {
            let tiers = catalog.tiers(variant).into_iter().map(|(tier, _)| tier);
            rows.push(Row {
                release: name,
                variant,
                torch: &facts.torch,
                torchvision: &facts.torchvision,
                torchaudio: facts.torchaudio.as_deref().unwrap_or("–"),
                cuda: &facts.cuda,
                cuda_build: &facts.cuda_build,
                cudnn: &facts.cudnn,
                python: &facts.python,
                driver_floor: &facts.driver_floor,
                arch_list: facts.arch_list(platform).join(" "),
                wheels: gigabytes(release.bytes(platform)? + release.bytes_above(tiers, platform)),
                tags: references(catalog, planned(catalog, facts, variant)?),
            });
        }
    }
    let mut context = Context::new();
    context.insert("default", &catalog.defaults.release);
    let variants = catalog.variants_in_order().into_iter().map(|name| (name, &catalog.variants[name].about));
    context.insert("variants", &variants.collect::<Vec<_>>());
    context.insert("rows", &rows);
    context.insert("toolchains", &toolchains);
    context.insert("spreads", &spreads);
    context.insert("budget", &catalog.base.layers.budget_mb);
    templates.render("README.md.tera", &context)
}
