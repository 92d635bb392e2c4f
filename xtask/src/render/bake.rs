//! The bake file: every target, with what is known when it is rendered. The rest comes in as variables.

use crate::catalog::{Catalog, Toolkit, names_registry};
use crate::lock::{Lock, LockedRelease};
use crate::tiers::tiers;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Its name below `images/`.
pub const FILE: &str = "docker-bake.json";

/// The bake target of the interpreter's layer.
pub const VENV_TARGET: &str = "venv";

/// The name of a bake target, which may not hold dots: `runtime-2-15`.
pub fn target(tier: &str, release: &str) -> String {
    format!("{tier}-{}", release.replace('.', "-"))
}

/// The variable that names a root: `ROOT_DEBIAN`.
pub fn root_variable(root: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("ROOT_{}", root.chars().map(plain).collect::<String>())
}

/// The variable that names a layer of packages on a root: `PACKAGES_DEBIAN_DEVEL`.
pub fn packages_variable(root: &str, layer: &str) -> String {
    root_variable(&format!("{root}_{layer}")).replacen("ROOT", "PACKAGES", 1)
}

/// The bake file as text.
pub(super) fn file(catalog: &Catalog, lock: &Lock, with_files: &BTreeSet<String>) -> Result<String> {
    let mut targets = Map::new();
    for (name, release) in &lock.releases {
        targets.insert(target("base", name), base(catalog, lock, name, release));
        for variant in catalog.variants.keys() {
            let mut it = variant_target(catalog, lock, name, release, variant);
            if with_files.contains(variant) {
                it["contexts"]["own"] = json!(format!("templates/variants/{variant}"));
            }
            targets.insert(target(variant, name), it);
        }
    }
    targets.insert(VENV_TARGET.to_owned(), venv(catalog));
    for (name, root) in &catalog.roots {
        if let Some(reference) = root.reference() {
            targets.insert(target("root", name), root_target(lock, name, &reference));
        }
    }
    let default = &catalog.defaults.release;
    let of_default: Vec<String> =
        catalog.variants_in_order().into_iter().map(|variant| target(variant, default)).collect();
    let bake = json!({
        "variable": variables(catalog, lock),
        "group": {"default": {"targets": of_default}},
        "target": targets,
    });
    Ok(serde_json::to_string_pretty(&bake)? + "\n")
}

/// What a build decides: the addresses of roots and of packages on them, the network of its steps, and where the source
/// stands.
fn variables(catalog: &Catalog, lock: &Lock) -> Value {
    let mut variables = Map::new();
    for (root, _) in catalog.roots.iter().filter(|(_, root)| root.image.is_none()) {
        variables.insert(root_variable(root), json!({"default": format!("docker-image://{root}")}));
    }
    for (root, layers) in &lock.packages {
        for layer in layers.keys() {
            let address = json!({"default": format!("docker-image://{root}-{layer}")});
            variables.insert(packages_variable(root, layer), address);
        }
    }
    variables.insert("MIRROR".to_owned(), json!({"default": ""}));
    variables.insert("BUILD_NETWORK".to_owned(), json!({"default": "default"}));
    variables.insert("REVISION".to_owned(), json!({"default": "unknown"}));
    Value::Object(variables)
}

/// Where the files of a root come from: a target of this file, or what the build says.
fn root_context(catalog: &Catalog, root: &str) -> Value {
    match catalog.roots[root].image {
        Some(_) => json!(format!("target:{}", target("root", root))),
        None => json!(format!("${{{}}}", root_variable(root))),
    }
}

/// The address of an image of a registry, or of a mirror of it.
fn address(reference: &str) -> String {
    let mirror = if names_registry(reference) { "" } else { "${MIRROR}" };
    format!("docker-image://{mirror}{reference}")
}

/// The step in which an interpreter makes its layer of a base; whose, and of which wheels, is told when it is run.
fn venv(catalog: &Catalog) -> Value {
    json!({
        "context": "images/venv",
        "contexts": {"root": root_context(catalog, &catalog.defaults.root), "wheels": "images/venv"},
        "network": "none",
    })
}

fn root_target(lock: &Lock, name: &str, reference: &str) -> Value {
    json!({
        "context": format!("images/roots/{name}"),
        "contexts": {"image": address(reference)},
        "network": "${BUILD_NETWORK}",
        "args": args(lock),
    })
}

fn base(catalog: &Catalog, lock: &Lock, name: &str, release: &LockedRelease) -> Value {
    json!({
        "context": format!("images/{name}/base"),
        "contexts": {"root": root_context(catalog, &release.root)},
        "network": "${BUILD_NETWORK}",
        "args": args(lock),
    })
}

fn variant_target(
    catalog: &Catalog,
    lock: &Lock,
    name: &str,
    release: &LockedRelease,
    variant: &str,
) -> Value {
    json!({
        "context": format!("images/{name}/{variant}"),
        "contexts": contexts(catalog, name, release, variant),
        "network": "${BUILD_NETWORK}",
        "args": args(lock),
        "labels": labels(catalog, lock, name, release, variant),
    })
}

/// What the Dockerfile of a variant takes files from, beside its own folder.
fn contexts(catalog: &Catalog, name: &str, release: &LockedRelease, variant: &str) -> Map<String, Value> {
    let from = &catalog.variants[variant].from;
    let mut contexts = Map::new();
    contexts.insert(from.clone(), json!(format!("target:{}", target(from, name))));
    if from == "base" {
        contexts.insert("rootfs".to_owned(), json!("templates/rootfs"));
    }
    contexts.insert("root".to_owned(), root_context(catalog, &release.root));
    let tiers = tiers(catalog, &release.facts, variant);
    let Some(tier) = tiers.last() else {
        return contexts;
    };
    if let (Some(layer), None) = (&tier.packages, &catalog.roots[&release.root].image) {
        let variable = packages_variable(&release.root, &layer.name);
        contexts.insert("packages".to_owned(), json!(format!("${{{variable}}}")));
    }
    if let Some(layer) = &tier.unpacked {
        let variable = packages_variable(&release.root, &layer.name);
        contexts.insert("toolkit".to_owned(), json!(format!("${{{variable}}}")));
    }
    if let Some(reference) = tier.toolkit.and_then(Toolkit::reference) {
        contexts.insert("toolkit".to_owned(), json!(address(&reference)));
    }
    contexts
}

/// Proxies are BuildKit's predefined arguments: taken from the caller's environment, in no layer and no history.
fn args(lock: &Lock) -> Value {
    json!({
        "SOURCE_DATE_EPOCH": lock.epoch.to_string(),
        "HTTP_PROXY": null,
        "HTTPS_PROXY": null,
        "NO_PROXY": null,
    })
}

/// OCI's own annotations, and what a person or a scheduler asks of such an image.
fn labels(catalog: &Catalog, lock: &Lock, name: &str, release: &LockedRelease, variant: &str) -> Value {
    let facts = &release.facts;
    let about = &catalog.variants[variant].about;
    let ours = |key: &str| catalog.label(key);
    let arch_list = facts.arch_list(catalog.first_platform()).join(" ");
    let pairs = [
        ("org.opencontainers.image.title".to_owned(), format!("{} {name} {variant}", catalog.title)),
        ("org.opencontainers.image.description".to_owned(), about.clone()),
        ("org.opencontainers.image.licenses".to_owned(), catalog.licenses.clone()),
        ("org.opencontainers.image.version".to_owned(), facts.torch.clone()),
        ("org.opencontainers.image.revision".to_owned(), "${REVISION}".to_owned()),
        ("org.opencontainers.image.created".to_owned(), rfc3339(lock.epoch)),
        (ours("release"), name.to_owned()),
        (ours("variant"), variant.to_owned()),
        (ours("torch"), facts.torch.clone()),
        (ours("cuda-build"), facts.cuda_build.clone()),
        (ours("cuda"), facts.cuda.clone()),
        (ours("cudnn"), facts.cudnn.clone()),
        (ours("python"), facts.python.clone()),
        (ours("arch-list"), arch_list),
        (ours("driver-floor"), facts.driver_floor.clone()),
    ];
    let unverified = facts.unverified.join("; ");
    let unverified = (!unverified.is_empty()).then(|| (ours("unverified"), unverified));
    Value::Object(
        pairs.into_iter().chain(unverified).map(|(key, value)| (key, Value::String(value))).collect(),
    )
}

/// Seconds since 1970 as the text that OCI's annotations want: `2026-11-30T00:00:00Z`.
fn rfc3339(epoch: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(epoch);
    humantime::format_rfc3339_seconds(time).to_string()
}
