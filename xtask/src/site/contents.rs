//! What an image holds, from the lock: packages of the distribution and of PyPI.

use crate::catalog::{Catalog, Platform};
use crate::lock::{Lock, LockedRoot, Wheel};
use crate::tiers::stacks;
use serde::Serialize;
use std::collections::BTreeMap;

/// One package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Package {
    /// Who packed it.
    pub origin: &'static str,
    /// Its name there.
    pub name: String,
    /// Its version there.
    pub version: String,
    /// Its licence, where a bill of materials tells it.
    pub licence: Option<String>,
}

/// Every package of an image on the catalog's first platform, in alphabetical order; `licences` are those of wheels, by
/// name.
pub fn packages(
    catalog: &Catalog,
    lock: &Lock,
    (release, variant): (&str, &str),
    licences: &BTreeMap<String, String>,
) -> Vec<Package> {
    let (platform, locked) = (catalog.first_platform(), &lock.releases[release]);
    let installed = |by: &BTreeMap<Platform, LockedRoot>| {
        by.get(&platform).map(|it| it.packages.clone()).into_iter().flatten().collect::<Vec<_>>()
    };
    let of_root = lock.roots.get(&locked.root).map(installed);
    let layers = lock.packages.get(&locked.root);
    let of_layers = stacks(catalog, &locked.facts, variant)
        .into_keys()
        .filter_map(|name| Some(installed(layers?.get(&name)?)));
    let debian = of_root.into_iter().chain(of_layers).flatten();
    let debian = debian.map(|(name, version)| Package { origin: "Debian", name, version, licence: None });

    let added = catalog.tiers(variant).into_iter().filter_map(|(tier, _)| locked.variants.get(tier));
    let wheels = std::iter::once(&locked.wheels).chain(added).filter_map(|by| by.get(&platform)).flatten();
    let pypi = wheels.map(|wheel: &Wheel| Package {
        origin: "PyPI",
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        licence: licences.get(&wheel.name).cloned(),
    });

    let mut all: Vec<Package> = debian.chain(pypi).collect();
    all.sort();
    all.dedup();
    all
}

/// The packages of a bill of materials: versions by kind and name (`deb libc6`), as two bills are compared.
pub fn of_bill(versions: &BTreeMap<String, String>, licences: &BTreeMap<String, String>) -> Vec<Package> {
    let one = |(key, version): (&String, &String)| {
        let (kind, name) = key.split_once(' ')?;
        let (origin, licence) = match kind {
            "deb" => ("Debian", None),
            "pypi" => ("PyPI", licences.get(name).cloned()),
            _ => return None,
        };
        Some(Package { origin, name: name.to_owned(), version: version.clone(), licence })
    };
    let mut all: Vec<Package> = versions.iter().filter_map(one).collect();
    all.sort();
    all
}
