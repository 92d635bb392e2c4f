//! `list`: releases × variants, with what a person chooses by.

use super::App;
use crate::cli::List as Args;
use crate::lock::{Lock, LockedRelease};
use crate::out::{columns, gigabytes};
use crate::project::Project;
use crate::publish::state::{self, Published};
use crate::registry::Repository;
use crate::tags::planned;
use anyhow::Result;
use serde::Serialize;

#[derive(Serialize)]
struct Row {
    release: String,
    variant: String,
    torch: String,
    cuda: String,
    cudnn: String,
    python: String,
    driver_floor: String,
    wheels_bytes: Option<u64>,
    tags: Vec<String>,
}

/// A table, or the same as JSON.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    if let Some(registry) = &args.registry {
        return published(app, &project, registry);
    }
    // A list is of use although the lock is stale: only the sizes are missing then.
    let lock = project.lock().ok();
    let mut rows = Vec::new();
    for name in project.catalog.releases_newest_first() {
        for variant in project.catalog.variants_in_order() {
            rows.push(row(&project, lock.as_ref(), name, variant)?);
        }
    }
    app.out.result(&table(&rows), &rows)
}

/// What a registry has, and what is proved of it.
fn published(app: &App, project: &Project, registry: &str) -> Result<()> {
    let at = Repository::below(registry, &project.catalog.repository)?;
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let mut images = Vec::new();
    for name in project.catalog.releases_newest_first() {
        for variant in project.catalog.variants_in_order() {
            let facts = &project.resolved[name];
            images.push(Published::ask(&registry, &at, &project.catalog, facts, variant)?);
        }
    }
    app.out.result(&state::table(&images), &images)
}

fn row(project: &Project, lock: Option<&Lock>, name: &str, variant: &str) -> Result<Row> {
    let facts = &project.resolved[name];
    Ok(Row {
        release: name.to_owned(),
        variant: variant.to_owned(),
        torch: facts.torch.clone(),
        cuda: facts.cuda.clone(),
        cudnn: facts.cudnn.clone(),
        python: facts.python.clone(),
        driver_floor: facts.driver_floor.clone(),
        wheels_bytes: lock.and_then(|lock| bytes_of(project, &lock.releases[name], variant)),
        tags: planned(&project.catalog, facts, variant)?,
    })
}

/// Bytes of all wheels of an image.
fn bytes_of(project: &Project, release: &LockedRelease, variant: &str) -> Option<u64> {
    let platform = project.catalog.first_platform();
    let tiers = project.catalog.tiers(variant).into_iter().map(|(tier, _)| tier);
    Some(release.bytes(platform).ok()? + release.bytes_above(tiers, platform))
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![
        ["RELEASE", "VARIANT", "TORCH", "CUDA", "CUDNN", "PYTHON", "DRIVER", "WHEELS", "TAGS"]
            .map(str::to_owned),
    ];
    lines.extend(rows.iter().map(|row| {
        [
            row.release.clone(),
            row.variant.clone(),
            row.torch.clone(),
            row.cuda.clone(),
            row.cudnn.clone(),
            row.python.clone(),
            format!("≥{}", row.driver_floor),
            row.wheels_bytes.map_or_else(|| "?".to_owned(), gigabytes),
            row.tags.join(" "),
        ]
    }));
    columns(&lines)
}
