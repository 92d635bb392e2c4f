//! The page of one image.

use super::chart::{Line, Tile, line, treemap};
use super::contents::{Package, packages};
use super::history::{Change, Point};
use super::{Input, Report, page_of};
use crate::build::Measured;
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
    /// What changed since the image before; `None` where there was none.
    changes: Option<&'a [Change]>,
    sizes: Option<Line>,
    times: Option<Line>,
}

/// What was measured, in words.
#[derive(Serialize)]
struct Weight {
    digest: String,
    built: String,
    seconds: u64,
    compressed: Option<String>,
    unpacked: String,
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
        let Report { measured, record, licences } = input.report(release, variant);
        let tags = planned(catalog, facts, variant)?;
        let registry = input.registry.map(|registry| format!("{}/", registry.trim_end_matches('/')));
        let tag = tags.last().cloned().unwrap_or_default();
        let points = input.history.of(release, variant);
        let over_time = |value: fn(&Point) -> f64| {
            let values: Vec<(u64, f64)> = points.iter().map(|it| (it.built, value(it))).collect();
            line(&values, LINE)
        };
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
            measured: measured.map(weight),
            record,
            packages: packages(catalog, input.lock, (release, variant), &licences),
            changes: points.last().filter(|_| points.len() > 1).map(|it| it.changes.as_slice()),
            sizes: over_time(|it| it.compressed.unwrap_or(it.unpacked) as f64 / 1e9),
            times: over_time(|it| it.seconds),
        })
    }
}

fn weight(it: Measured) -> Weight {
    let layers: Vec<(String, u64)> = it.layers.iter().map(|(bytes, by)| (by.clone(), *bytes)).collect();
    Weight {
        digest: it.digest,
        built: humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(it.built)).to_string(),
        seconds: it.seconds.round() as u64,
        compressed: it.compressed.map(gigabytes),
        unpacked: gigabytes(it.unpacked),
        tiles: treemap(&layers, TREEMAP),
        layers: it.layers.iter().map(|(bytes, by)| (gigabytes(*bytes), by.clone())).collect(),
    }
}
