//! What an image weighs, against what it may.

use super::images::Images;
use crate::catalog::Catalog;
use crate::out::gigabytes;
use crate::plan::Planned;
use crate::problem::{Id, refuse};
use crate::smoke::Record;
use anyhow::Result;
use serde::Deserialize;
use std::fmt;

/// The weight of an image, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// As it is sent; none where the engine's store does not keep layers as they are sent.
    pub compressed: Option<u64>,
    /// As it lies in the engine.
    pub unpacked: u64,
    /// Every layer with what it was made by, the biggest first.
    pub layers: Vec<(u64, String)>,
}

/// What an image may weigh, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// As it is sent.
    pub compressed: u64,
    /// As it lies in the engine.
    pub unpacked: u64,
}

/// How many layers and packages a refusal names.
const NAMED: usize = 5;

/// A line of `docker history`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Layer {
    size: String,
    created_by: String,
}

impl Size {
    /// From what the engine tells of an image and of its layers, the topmost first. It does not tell what a layer was
    /// copied from: `sources` are those of the Dockerfiles, the topmost first.
    pub(super) fn new(compressed: Option<u64>, layers: Vec<Layer>, sources: &[String]) -> Size {
        let mut sources = sources.iter();
        let mut name =
            |made_by: &str| made_by.starts_with("COPY ").then(|| sources.next().cloned()).flatten();
        let mut layers: Vec<(u64, String)> = layers
            .into_iter()
            .map(|it| (it.size.parse().unwrap_or_default(), name(&it.created_by).unwrap_or(it.created_by)))
            .collect();
        layers.retain(|(bytes, _)| *bytes > 0);
        layers.sort_by(|a, b| b.cmp(a));
        Size { compressed, unpacked: layers.iter().map(|(bytes, _)| bytes).sum(), layers }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent =
            self.compressed.map(|bytes| format!("{} compressed, ", gigabytes(bytes))).unwrap_or_default();
        write!(f, "{sent}{} unpacked in {} layers", gigabytes(self.unpacked), self.layers.len())
    }
}

/// What the last stage of a Dockerfile copies, the topmost layer first: the stage, or the file of the context.
pub fn copied(dockerfile: &str) -> Vec<String> {
    let stage = dockerfile.rsplit("\nFROM ").next().unwrap_or_default();
    let source = |line: &str| {
        let mut words = line.strip_prefix("COPY ")?.split_whitespace();
        let stage = words.clone().find_map(|word| word.strip_prefix("--from="));
        stage.or_else(|| words.find(|word| !word.starts_with("--"))).map(str::to_owned)
    };
    stage.lines().rev().filter_map(source).collect()
}

/// The budget of an image: that of its base and what each of its tiers may add; none where one has no budget.
pub fn allowed(catalog: &Catalog, release: &str, variant: &str) -> Option<Allowed> {
    let mut all = vec![catalog.releases.get(release)?.budget?];
    for (_, tier) in catalog.tiers(variant) {
        all.push(tier.budget?);
    }
    let sum = |of: fn(&crate::catalog::Budget) -> u64| all.iter().map(of).sum::<u64>() * 1_000_000;
    Some(Allowed { compressed: sum(|it| it.compressed_mb), unpacked: sum(|it| it.unpacked_mb) })
}

/// Weighs an image that was built.
///
/// Errors: `E_SIZE_BUDGET` with the layers and packages that weigh most.
pub fn check(
    images: &Images,
    plan: &Planned,
    image: &str,
    record: &Record,
    sources: &[String],
) -> Result<Size> {
    let size = images.size(image, sources)?;
    let Some(allowed) = allowed(images.catalog, &plan.release, &plan.variant) else {
        return Ok(size);
    };
    let sides = [
        ("compressed", size.compressed.unwrap_or_default(), allowed.compressed),
        ("unpacked", size.unpacked, allowed.unpacked),
    ];
    let over: Vec<String> = sides
        .iter()
        .filter(|(_, is, may)| is > may)
        .map(|(how, is, may)| format!("{} of {} allowed {how}", megabytes(*is), megabytes(*may)))
        .collect();
    if over.is_empty() {
        return Ok(size);
    }
    let layers =
        size.layers.iter().take(NAMED).map(|(bytes, by)| format!("{}  {}", megabytes(*bytes), short(by)));
    let packages = record.heaviest().into_iter().take(NAMED);
    let packages = packages.map(|(name, bytes)| format!("{}  {name}", megabytes(bytes)));
    let lines: Vec<String> = std::iter::once(over.join(", "))
        .chain(std::iter::once("the heaviest layers:".to_owned()))
        .chain(layers)
        .chain(std::iter::once("the heaviest packages:".to_owned()))
        .chain(packages)
        .collect();
    refuse(
        Id::SizeBudget,
        format!("{} {}", plan.release, plan.variant),
        lines.join("\n    "),
        "take something out, or raise the budget of the release or the variant in variants.yaml",
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// The beginning of an instruction, on one line.
fn short(instruction: &str) -> String {
    instruction.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(70).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_that_of_the_base_and_of_every_tier() {
        let text = include_str!("../../../variants.yaml");
        let catalog = Catalog::parse("v.yaml", text).unwrap();
        let (devel, debug) = (allowed(&catalog, "2.15", "devel"), allowed(&catalog, "2.15", "debug"));
        assert!(debug.unwrap().unpacked > devel.unwrap().unpacked);
        let mut without = catalog.clone();
        without.releases.get_mut("2.15").unwrap().budget = None;
        assert_eq!(allowed(&without, "2.15", "devel"), None);
    }

    #[test]
    fn the_heaviest_layer_comes_first() {
        let layer = |size: &str, by: &str| Layer { size: size.to_owned(), created_by: by.to_owned() };
        let size = Size::new(Some(7), vec![layer("1", "a"), layer("30", "b"), layer("0", "c")], &[]);
        assert_eq!((size.unpacked, size.layers[0].1.as_str()), (31, "b"));
    }

    #[test]
    fn a_layer_is_named_by_what_the_dockerfile_copies() {
        let dockerfile = "FROM root AS a\nCOPY x /\n\nFROM base\nCOPY --link --from=torch /opt /opt\nENV A=1\nCOPY --link f /\n";
        let sources = copied(dockerfile);
        assert_eq!(sources, ["f", "torch"]);
        let layer = |size: &str, by: &str| Layer { size: size.to_owned(), created_by: by.to_owned() };
        let layers = vec![
            layer("0", "CMD x"),
            layer("1", "COPY f / #"),
            layer("9", "COPY /opt /opt #"),
            layer("5", "root"),
        ];
        let size = Size::new(None, layers, &sources);
        let names: Vec<&str> = size.layers.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["torch", "root", "f"]);
    }
}
