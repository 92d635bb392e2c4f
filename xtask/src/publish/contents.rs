//! What an image holds, wherever it is: its layers with their sizes, and its packages.

use crate::attest::{inventory, sbom};
use crate::catalog::{Catalog, Platform, names_registry};
use crate::engine::Engine;
use crate::out::gigabytes;
use crate::problem::{Id, refuse};
use crate::registry::{Manifest, Reference, Registry};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What an image holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
    /// Bytes of all layers.
    pub bytes: u64,
    /// Versions by kind and name (`deb libc6`, `pypi torch`); none where nobody told.
    pub packages: Option<BTreeMap<String, String>>,
    /// Licences of what PyPI has, by name, as far as they are told.
    #[serde(skip)]
    pub licences: BTreeMap<String, String>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// In a registry the digest of what is sent, in an engine that of the unpacked content.
    pub id: String,
    /// Bytes: as they are sent, or unpacked.
    pub bytes: u64,
    /// The instruction that made it.
    pub by: String,
}

/// The part of an image's configuration that tells how its layers were made.
#[derive(Default, Deserialize)]
#[serde(default)]
struct History {
    history: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    created_by: String,
    empty_layer: bool,
}

/// A line of `docker history`, the topmost layer first.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Made {
    size: String,
    created_by: String,
}

/// Reads what an image in a registry holds; of an index, that of this machine's platform.
///
/// Errors: `E_BASE_GONE` where it is not there.
pub fn in_registry(registry: &Registry, reference: &Reference) -> Result<Contents> {
    let at = &reference.repository;
    let image = of_platform(registry, reference)?;
    let document = image.document()?;
    let history: History = match &document.config {
        Some(config) => serde_json::from_slice(&registry.blob(at, &config.digest)?).unwrap_or_default(),
        None => History::default(),
    };
    let mut by = history.history.into_iter().filter(|it| !it.empty_layer).map(|it| it.created_by);
    let layers: Vec<Layer> = document
        .layers
        .iter()
        .map(|it| Layer { id: it.digest.clone(), bytes: it.size, by: by.next().unwrap_or_default() })
        .collect();
    let (mut packages, mut licences) = (None, BTreeMap::new());
    for listed in registry.referrers(at, &image.digest, sbom::MEDIA_TYPE)? {
        if let Some(bill) = registry.attached(at, &listed)? {
            let bill = serde_json::from_slice(&bill)?;
            packages = Some(sbom::versions(&bill));
            licences = sbom::licences(&bill);
        }
    }
    Ok(Contents { bytes: layers.iter().map(|it| it.bytes).sum(), layers, packages, licences })
}

fn of_platform(registry: &Registry, reference: &Reference) -> Result<Manifest> {
    let gone =
        |what: &str| refuse(Id::BaseGone, reference.to_string(), what, "see `cargo xtask list --registry …`");
    let Some(found) = registry.manifest(reference)? else {
        return gone("there is no such image");
    };
    let Some(entries) = found.document()?.manifests else {
        return Ok(found);
    };
    let platform = Platform::host();
    let mine = entries.iter().find(|it| it.platform().as_deref() == Some(platform.as_str()));
    let Some(mine) = mine else {
        return gone(&format!("it has nothing for {platform}"));
    };
    match registry.manifest(&reference.repository.at(&mine.digest))? {
        Some(manifest) => Ok(manifest),
        None => gone("its index names a manifest that is not there"),
    }
}

/// Reads what an image of the engine holds; its packages are asked of the image itself.
pub fn in_engine(engine: &Engine, catalog: &Catalog, reference: &str) -> Result<Contents> {
    let inspect = ["image", "inspect", "--format", "{{json .RootFS.Layers}}", reference];
    let ids: Vec<String> = serde_json::from_str(&engine.docker("its layers", inspect).read()?)?;
    let history = ["history", "--no-trunc", "--human=false", "--format", "{{json .}}", reference];
    let mut made = Vec::<(u64, String)>::new();
    for line in engine.docker("how they were made", history).read()?.lines().rev() {
        let line: Made = serde_json::from_str(line)?;
        made.push((line.size.parse().unwrap_or_default(), line.created_by));
    }
    // Instructions that change no file are in the history alone.
    made.retain(|(bytes, _)| *bytes > 0);
    let layers: Vec<Layer> =
        ids.into_iter().zip(made).map(|(id, (bytes, by))| Layer { id, bytes, by }).collect();
    let subject = sbom::Subject { name: &catalog.repository, digest: "", epoch: 0 };
    let bill = inventory::ask(engine, reference).ok().map(|it| sbom::bill(subject, &it, &BTreeMap::new()));
    let licences = bill.as_ref().map(sbom::licences).unwrap_or_default();
    let packages = bill.as_ref().map(sbom::versions);
    Ok(Contents { bytes: layers.iter().map(|it| it.bytes).sum(), layers, packages, licences })
}

/// Whether a reference is to be looked for in a registry.
pub fn is_remote(reference: &str) -> bool {
    names_registry(reference)
}

/// What differs between two images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Packages that only the second has, with their versions.
    pub added: BTreeMap<String, String>,
    /// Packages that only the first has.
    pub removed: BTreeMap<String, String>,
    /// Packages that both have, with both versions.
    pub changed: BTreeMap<String, (String, String)>,
    /// Whether the packages of both are known.
    pub packages_known: bool,
    /// Layers that both have.
    pub shared_layers: usize,
    /// Layers that only the second has, and their bytes: what is fetched by who has the first.
    pub new_layers: Vec<Layer>,
    /// Bytes of both.
    pub bytes: (u64, u64),
}

/// Compares.
pub fn difference(old: &Contents, new: &Contents) -> Difference {
    let none = BTreeMap::new();
    let (a, b) = (old.packages.as_ref().unwrap_or(&none), new.packages.as_ref().unwrap_or(&none));
    let only = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| {
        a.iter().filter(|(name, _)| !b.contains_key(*name)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let changed = |(name, to): (&String, &String)| {
        let from = a.get(name).filter(|from| *from != to)?;
        Some((name.clone(), (from.clone(), to.clone())))
    };
    let had: BTreeSet<&String> = old.layers.iter().map(|it| &it.id).collect();
    let new_layers: Vec<Layer> = new.layers.iter().filter(|it| !had.contains(&it.id)).cloned().collect();
    Difference {
        added: only(b, a),
        removed: only(a, b),
        changed: b.iter().filter_map(changed).collect(),
        packages_known: old.packages.is_some() && new.packages.is_some(),
        shared_layers: new.layers.len() - new_layers.len(),
        new_layers,
        bytes: (old.bytes, new.bytes),
    }
}

impl Difference {
    /// As a page for people.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        match self.packages_known {
            true => lines.push(format!(
                "packages: {} added, {} removed, {} changed",
                self.added.len(),
                self.removed.len(),
                self.changed.len()
            )),
            false => lines
                .push("packages: not known, no bill of materials is attached to one of the two".to_owned()),
        }
        lines.extend(self.added.iter().map(|(name, version)| format!("  + {name} {version}")));
        lines.extend(self.removed.iter().map(|(name, version)| format!("  - {name} {version}")));
        lines.extend(self.changed.iter().map(|(name, (from, to))| format!("    {name} {from} → {to}")));
        let fetched: u64 = self.new_layers.iter().map(|it| it.bytes).sum();
        let (shared, new) = (self.shared_layers, self.new_layers.len());
        lines.push(format!("layers: {shared} shared, {new} new ({})", gigabytes(fetched)));
        lines.extend(self.new_layers.iter().map(|it| format!("  + {}", it.line())));
        lines.push(format!("size: {} → {}", gigabytes(self.bytes.0), gigabytes(self.bytes.1)));
        lines.join("\n")
    }
}

impl Layer {
    fn line(&self) -> String {
        let by: String = self.by.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(70).collect();
        format!("{:>7} MB  {by}", self.bytes / 1_000_000)
    }
}

/// A line a layer, the heaviest first, and the sum.
pub fn sizes(contents: &Contents) -> String {
    let mut layers: Vec<&Layer> = contents.layers.iter().collect();
    layers.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    let mut lines: Vec<String> = layers.iter().map(|it| it.line()).collect();
    lines.push(format!("{:>7} MB  in {} layers", contents.bytes / 1_000_000, contents.layers.len()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(layers: &[(&str, u64)], packages: &[(&str, &str)]) -> Contents {
        let layer =
            |(id, bytes): &(&str, u64)| Layer { id: (*id).to_owned(), bytes: *bytes, by: String::new() };
        let packages = packages.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned()));
        Contents {
            layers: layers.iter().map(layer).collect(),
            bytes: layers.iter().map(|(_, bytes)| bytes).sum(),
            packages: Some(packages.collect()),
            licences: BTreeMap::new(),
        }
    }

    #[test]
    fn what_differs_is_told_and_nothing_else() {
        let old = contents(&[("a", 5), ("b", 7_000_000)], &[("deb x", "1"), ("deb y", "1"), ("pypi z", "1")]);
        let new = contents(&[("a", 5), ("c", 9_000_000)], &[("deb x", "1"), ("deb y", "2"), ("pypi w", "1")]);
        let difference = difference(&old, &new);
        let text = difference.text();
        for said in [
            "1 added, 1 removed, 1 changed",
            "+ pypi w 1",
            "- pypi z 1",
            "deb y 1 → 2",
            "1 shared, 1 new",
            "9 MB",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("deb x"));
        let unknown = Contents { packages: None, ..old.clone() };
        assert!(super::difference(&unknown, &new).text().contains("packages: not known"));
    }
}
