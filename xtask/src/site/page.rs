//! The page of one image.

use super::chart::{Line, Tile, line, treemap};
use super::history::{Change, Point};
use super::published::Since;
use super::{Figures, Input, Package, Published, Report, packages, page_of};
use crate::catalog::Catalog;
use crate::out::{gigabytes, size};
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
    /// The other variants of the release, and their pages.
    others: Vec<(&'a str, String)>,
    about: &'a str,
    facts: &'a Resolved,
    platforms: Vec<(String, String)>,
    tags: Vec<String>,
    /// The reference that a person types: of the registry, where there is one.
    reference: String,
    /// The same by digest, where it is published: what pulls this very image for good.
    pinned: Option<String>,
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
    /// Size and build time over time, as far as there is a history of them.
    lines: Vec<Line>,
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
    /// The layers as drawings, for screens and for telephones.
    maps: [Treemap; 2],
    layers: Vec<(String, String)>,
}

/// A treemap and the size of its drawing.
#[derive(Serialize)]
struct Treemap {
    class: &'static str,
    width: f64,
    height: f64,
    tiles: Vec<Tile>,
}

impl<'a> Page<'a> {
    /// Collects what there is to tell of an image.
    pub fn new(input: &'a Input, release: &'a str, variant: &'a str) -> Result<Page<'a>> {
        let catalog = input.catalog;
        let facts = &input.lock.releases[release].facts;
        let Report { figures, record, packages: of_image, licences, published } =
            input.report(release, variant);
        let tags = planned(catalog, facts, variant)?;
        let registry = input.registry.map(|registry| format!("{}/", registry.trim_end_matches('/')));
        let repository = format!("{}{}", registry.unwrap_or_default(), catalog.repository);
        let digest = figures.as_ref().filter(|_| published.is_some()).map(|it| &it.digest);
        let tag = tags.last().cloned().unwrap_or_default();
        let points = input.history.of(release, variant);
        let over_time = |title, value: fn(&Point) -> Option<f64>, say: fn(f64) -> String| {
            let values: Vec<(u64, f64)> =
                points.iter().filter_map(|it| Some((it.built, value(it)?))).collect();
            line(title, &values, say)
        };
        let sizes = over_time("Size", |it| Some(it.compressed.or(it.unpacked)? as f64), |it| size(it as u64));
        let times = over_time("Build time", |it| it.seconds, |it| format!("{it:.0} s"));
        let since = published.as_ref().and_then(|it| it.since.clone());
        let in_history = || points.last().map(|it| it.changes.clone()).unwrap_or_default();
        Ok(Page {
            file: page_of(release, variant),
            release,
            variant,
            others: others(catalog, release, variant),
            about: &catalog.variants[variant].about,
            facts,
            platforms: facts
                .platforms
                .iter()
                .map(|(it, on)| (it.to_string(), on.arch_list.join(" ")))
                .collect(),
            tags,
            pinned: digest.map(|digest| format!("{repository}@{digest}")),
            reference: format!("{repository}:{tag}"),
            measured: figures.map(weight),
            record,
            packages_of_image: of_image.is_some(),
            packages: of_image
                .unwrap_or_else(|| packages(catalog, input.lock, (release, variant), &licences)),
            published,
            changes: since.as_ref().map_or_else(in_history, |it| it.packages.clone()),
            since,
            lines: sizes.into_iter().chain(times).collect(),
        })
    }
}

fn others<'a>(catalog: &'a Catalog, release: &str, variant: &str) -> Vec<(&'a str, String)> {
    let all = catalog.variants_in_order().into_iter().filter(|it| *it != variant);
    all.map(|it| (it, page_of(release, it))).collect()
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
        maps: [("wide", 960.0, 400.0), ("narrow", 360.0, 480.0)].map(|(class, width, height)| Treemap {
            class,
            width,
            height,
            tiles: treemap(&layers, (width, height)),
        }),
        layers: it.layers.iter().map(|(bytes, by)| (size(*bytes), by.clone())).collect(),
    }
}
