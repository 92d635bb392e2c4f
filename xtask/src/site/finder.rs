//! Which releases run on which GPU with which driver: a table of compute capabilities and spans of drivers.

use crate::catalog::Catalog;
use crate::compat::{Compat, Gpu, Sm, Version};
use crate::resolve::Resolved;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The table.
#[derive(Debug, Serialize)]
pub struct Finder {
    spans: Vec<Span>,
    /// The newest GPUs first.
    rows: Vec<Row>,
}

/// Drivers on which the same releases run.
#[derive(Debug, Serialize)]
struct Span {
    /// The lowest of them; none for those that are older than all others here.
    from: Option<String>,
    /// The first that belongs to the next span.
    below: Option<String>,
    /// The branches whose newest driver is among them: `535`.
    branches: Vec<u64>,
}

/// The GPUs of one compute capability.
#[derive(Debug, Serialize)]
struct Row {
    sm: Sm,
    /// `sm-7-5`, to link to.
    id: String,
    generation: String,
    gpus: Vec<String>,
    /// Releases by span, the newest first.
    cells: Vec<Vec<String>>,
}

impl Finder {
    /// The table for the catalog's first platform.
    pub fn new(catalog: &Catalog, resolved: &BTreeMap<String, Resolved>, compat: &Compat) -> Finder {
        let of_releases = resolved.values().map(|facts| facts.driver_floor.as_str());
        let of_gpus = compat.drivers.gpu.facts.values().map(String::as_str);
        let floors: BTreeSet<Version> = of_releases.chain(of_gpus).filter_map(Version::parse).collect();
        let floors: Vec<Version> = floors.into_iter().collect();
        Finder { spans: spans(&floors, &branches(compat)), rows: rows(catalog, resolved, compat, &floors) }
    }
}

/// Every branch of the driver that there are facts on.
fn branches(compat: &Compat) -> BTreeSet<u64> {
    let drivers = &compat.drivers;
    let named = drivers.image_require.facts.values().flatten();
    let versions = drivers.toolkit.facts.values().chain(drivers.minor_version_compatibility.facts.values());
    versions.chain(named).filter_map(|driver| branch(driver)).collect()
}

fn branch(driver: &str) -> Option<u64> {
    driver.split('.').next()?.parse().ok()
}

/// One span more than floors: the first is of the drivers below all of them.
fn spans(floors: &[Version], branches: &BTreeSet<u64>) -> Vec<Span> {
    let reached =
        |it: u64| floors.iter().filter(|floor| branch(&floor.to_string()).is_some_and(|b| b <= it)).count();
    let span = |i: usize| Span {
        from: i.checked_sub(1).map(|i| floors[i].to_string()),
        below: floors.get(i).map(Version::to_string),
        branches: branches.iter().copied().filter(|branch| reached(*branch) == i).collect(),
    };
    (0..=floors.len()).map(span).collect()
}

fn rows(
    catalog: &Catalog,
    resolved: &BTreeMap<String, Resolved>,
    compat: &Compat,
    floors: &[Version],
) -> Vec<Row> {
    let platform = catalog.first_platform();
    let mut by_sm = BTreeMap::<Sm, Vec<(&String, &Gpu)>>::new();
    for (name, gpu) in &compat.gpus.facts {
        // A Tegra is no card, and runs code for itself alone.
        if !gpu.tegra && gpu.platform.is_none_or(|only| only == platform) {
            by_sm.entry(gpu.sm).or_default().push((name, gpu));
        }
    }
    let row = |(sm, gpus): (Sm, Vec<(&String, &Gpu)>)| {
        let generation = gpus.first().map(|(_, gpu)| gpu.generation.clone()).unwrap_or_default();
        let of_gpu = compat.drivers.gpu.facts.get(&generation);
        let runs = |release: &str, driver: &Version| {
            let facts = &resolved[release];
            let needed = [Some(&facts.driver_floor), of_gpu];
            let enough = needed
                .into_iter()
                .flatten()
                .all(|floor| Version::parse(floor).is_some_and(|floor| floor <= *driver));
            enough && sm.runs(facts.arch_list(platform), false).is_some()
        };
        let releases = catalog.releases_newest_first();
        let cell = |driver: &Version| {
            releases.iter().filter(|it| runs(it, driver)).map(|it| (*it).to_owned()).collect()
        };
        let below_all = std::iter::once(Vec::new());
        Row {
            sm,
            id: format!("sm-{}", sm.to_string().replace('.', "-")),
            generation,
            gpus: gpus.iter().map(|(name, _)| (*name).clone()).collect(),
            cells: below_all.chain(floors.iter().map(cell)).collect(),
        }
    };
    by_sm.into_iter().rev().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::resolve;

    #[test]
    fn a_t4_on_driver_535_runs_what_cuda_12_runs() {
        let catalog = Catalog::parse("v.yaml", include_str!("../../../variants.yaml")).unwrap();
        let compat = Compat::bundled().unwrap();
        let resolved = resolve(&catalog, compat, false).unwrap();
        let finder = Finder::new(&catalog, &resolved, compat);
        let runs = |gpu: &str, branch: u64| {
            let span = finder.spans.iter().position(|it| it.branches.contains(&branch)).unwrap();
            let row = finder.rows.iter().find(|it| it.gpus.iter().any(|name| name == gpu)).unwrap();
            row.cells[span].join(" ")
        };
        assert_eq!(runs("T4", 535), "2.9 2.8 2.6");
        assert_eq!(runs("T4", 580), "2.15 2.9 2.8 2.6");
        assert_eq!(runs("V100", 595), "2.9 2.8 2.6");
        assert_eq!(runs("GTX 1080", 595), "2.6");
        assert_eq!(runs("RTX 5090", 570), "2.9 2.8");
        assert_eq!((runs("RTX 5090", 565), runs("T4", 470)), (String::new(), String::new()));
        assert!(finder.rows.iter().all(|row| row.cells.len() == finder.spans.len()));
    }
}
