//! `site`: the catalogue as a folder of pages, for whoever serves a branch or a bucket.

use super::App;
use crate::attest::sbom;
use crate::build::{Measured, measured};
use crate::cli::Site as Args;
use crate::compat::Compat;
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::publish::shown;
use crate::registry::Repository;
use crate::site::{Figures, HISTORY, History, Input, Report, Reports, packages};
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was written, as a result.
#[derive(Serialize)]
struct Written {
    folder: PathBuf,
    files: Vec<PathBuf>,
    measured: usize,
}

/// Writes the pages, about what was built here or what a registry has; the history in the folder is read first and goes on.
///
/// Errors: `E_USAGE` where the folder is a file; a registry's own.
pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.out.is_file() {
        let what = format!("{} is a file", args.out.display());
        return refuse(Id::Usage, "--out", what, "name a folder; it is created if need be");
    }
    let project = app.project()?;
    let lock = project.lock()?;
    let built = built(app.state(), &project)?;
    let reports = match &args.registry {
        Some(registry) => published(app, &project, registry, built)?,
        None => built,
    };
    let mut history = history(&args.out)?;
    for ((release, variant), report) in &reports {
        if let Some(figures) = &report.figures {
            let image = (release.as_str(), variant.as_str());
            let locked = || packages(&project.catalog, &lock, image, &report.licences);
            history.add(image, figures, &report.packages.clone().unwrap_or_else(locked));
        }
    }
    let input = Input {
        catalog: &project.catalog,
        lock: &lock,
        compat: Compat::bundled()?,
        templates: &project.templates()?,
        registry: args.registry.as_deref(),
        reports: &reports,
        history: &history,
    };
    let files = input.pages()?;
    if !app.dry_run {
        for (path, text) in &files {
            crate::files::write(&args.out.join(path), text.as_bytes())?;
        }
    }
    let measured = reports.values().filter(|report| report.figures.is_some()).count();
    let where_from = if args.registry.is_some() { "are published" } else { "were measured here" };
    app.out.say(&format!("{} files; {measured} of {} images {where_from}", files.len(), reports.len()));
    let result = Written { folder: args.out.clone(), files: files.into_keys().collect(), measured };
    app.out.result(&args.out.join("index.html").display().to_string(), &result)
}

/// What builds with this state folder have left of every image of the catalog.
fn built(state: &Path, project: &Project) -> Result<Reports> {
    let mut reports = Reports::new();
    for release in project.catalog.releases.keys() {
        for variant in project.catalog.variants.keys() {
            let bill = measured::kept_bill(state, release, variant)?;
            let report = Report {
                figures: Measured::kept(state, release, variant)?.map(Figures::from),
                record: measured::kept_record(state, release, variant)?,
                licences: bill.as_ref().map(sbom::licences).unwrap_or_default(),
                ..Report::default()
            };
            reports.insert((release.clone(), variant.clone()), report);
        }
    }
    Ok(reports)
}

/// What a registry has of them; an image that is not published has no figures, although it was built here.
fn published(app: &App, project: &Project, registry: &str, mut built: Reports) -> Result<Reports> {
    let at = Repository::below(registry, &project.catalog.repository)?;
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let tags = registry.tags(&at)?;
    for ((release, variant), report) in &mut built {
        let image = (&project.resolved[release], variant.as_str());
        let shown = shown::ask(&registry, &at, &project.catalog, image, &tags)?;
        *report = shown.map(|it| Report::of(it, report.figures.take())).unwrap_or_default();
    }
    Ok(built)
}

fn history(folder: &Path) -> Result<History> {
    let path = folder.join(HISTORY);
    match std::fs::read_to_string(&path) {
        Ok(text) => History::parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(History::default()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}
