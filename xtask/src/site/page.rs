//! The page of one image.

use super::chart::{Line, Tile, line, treemap};
use super::history::{Change, Point};
use super::published::Since;
use super::{Figures, Input, Package, Published, Report, packages, page_of};
use crate::out::gigabytes;
use crate::resolve::Resolved;
use crate::smoke::Record;
use crate::tags::planned;
use anyhow::Result;
use serde::Serialize;
use std::time::{Duration, UNIX_EPOCH};

/// What the template sees.
#[derive(Serialize)]
pub struct Page<'a> {
    file: String,
    release: &'a str,
    variant: &'a str,
    about: &'a str,
    facts: &'a Resolved,
    platforms: Vec<(String, String)>,
    tags: Vec<String>,
    /// The reference that a person types: of the registry, where there is one.
    reference: String,
    measured: Option<Weight>,
    record: Option<Record>,
    packages: Vec<Package>,
    /// Whether they are those of the image itself, and not only of the lock.
    packages_of_image: bool,
    published: Option<Published>,
    /// The image before in the registry, and what became of it.
    since: Option<Since>,
    /// Packages that changed since the image before: by the registry or, where that has none before, by the history.
    changes: Vec<Change>,
    sizes: Option<Line>,
    times: Option<Line>,
}

/// What was measured, in words.
#[derive(Serialize)]
struct Weight {
    digest: String,
    /// When it was built; none where only a registry tells of it.
    built: Option<String>,
    seconds: u64,
    compressed: Option<String>,
    unpacked: Option<String>,
    tiles: Vec<Tile>,
    layers: Vec<(String, String)>,
}

/// Height of the drawings, in their own units; the templates name the same.
const TREEMAP: f64 = 420.0;
const LINE: f64 = 200.0;

impl<'a> Page<'a> {
    /// Collects what there is to tell of an image.
    pub fn new(input: &'a Input, release: &'a str, variant: &'a str) -> Result<Page<'a>> {
        let catalog = input.catalog;
        let facts = &input.lock.releases[release].facts;
        let Report { figures, record, packages: of_image, licences, published } =
            input.report(release, variant);
        let tags = planned(catalog, facts, variant)?;
        let registry = input.registry.map(|registry| format!("{}/", registry.trim_end_matches('/')));
        let tag = tags.last().cloned().unwrap_or_default();
        let points = input.history.of(release, variant);
        let over_time = |value: fn(&Point) -> Option<f64>| {
            let values: Vec<(u64, f64)> =
                points.iter().filter_map(|it| Some((it.built, value(it)?))).collect();
            line(&values, LINE)
        };
        let since = published.as_ref().and_then(|it| it.since.clone());
        let in_history = || points.last().map(|it| it.changes.clone()).unwrap_or_default();
        Ok(Page {
            file: page_of(release, variant),
            release,
            variant,
            about: &catalog.variants[variant].about,
            facts,
            platforms: facts
                .platforms
                .iter()
                .map(|(it, on)| (it.to_string(), on.arch_list.join(" ")))
                .collect(),
            tags,
            reference: format!("{}{}:{tag}", registry.unwrap_or_default(), catalog.repository),
            measured: figures.map(weight),
            record,
            packages_of_image: of_image.is_some(),
            packages: of_image
                .unwrap_or_else(|| packages(catalog, input.lock, (release, variant), &licences)),
            published,
            changes: since.as_ref().map_or_else(in_history, |it| it.packages.clone()),
            since,
            sizes: over_time(|it| Some(it.compressed.or(it.unpacked)? as f64 / 1e9)),
            times: over_time(|it| it.seconds),
        })
    }
}

fn weight(it: Figures) -> Weight {
    let layers: Vec<(String, u64)> = it.layers.iter().map(|(bytes, by)| (by.clone(), *bytes)).collect();
    let built = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(it.at));
    Weight {
        digest: it.digest,
        built: it.seconds.map(|_| built.to_string()),
        seconds: it.seconds.unwrap_or_default().round() as u64,
        compressed: it.compressed.map(gigabytes),
        unpacked: it.unpacked.map(gigabytes),
        tiles: treemap(&layers, TREEMAP),
        layers: it.layers.iter().map(|(bytes, by)| (gigabytes(*bytes), by.clone())).collect(),
    }
}
