//! `site`: the catalogue as a folder of pages, for whoever serves a branch or a bucket.

use super::App;
use crate::attest::sbom;
use crate::build::{Measured, measured};
use crate::cli::Site as Args;
use crate::compat::Compat;
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::site::{HISTORY, History, Input, Report, Reports, packages};
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

/// Writes the pages; the history in the folder is read first and goes on.
///
/// Errors: `E_USAGE` where the folder is a file.
pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.out.is_file() {
        let what = format!("{} is a file", args.out.display());
        return refuse(Id::Usage, "--out", what, "name a folder; it is made where it is not there");
    }
    let project = app.project()?;
    let lock = project.lock()?;
    let reports = reports(app.state(), &project)?;
    let mut history = history(&args.out)?;
    for ((release, variant), report) in &reports {
        if let Some(measured) = &report.measured {
            history.add(measured, &packages(&project.catalog, &lock, (release, variant), &report.licences));
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
    let measured = reports.values().filter(|report| report.measured.is_some()).count();
    app.out.say(&format!("{} files; {measured} of {} images were measured here", files.len(), reports.len()));
    let result = Written { folder: args.out.clone(), files: files.into_keys().collect(), measured };
    app.out.result(&args.out.join("index.html").display().to_string(), &result)
}

/// What builds with this state folder have left of every image of the catalog.
fn reports(state: &Path, project: &Project) -> Result<Reports> {
    let mut reports = Reports::new();
    for release in project.catalog.releases.keys() {
        for variant in project.catalog.variants.keys() {
            let bill = measured::kept_bill(state, release, variant)?;
            let report = Report {
                measured: Measured::kept(state, release, variant)?,
                record: measured::kept_record(state, release, variant)?,
                licences: bill.as_ref().map(sbom::licences).unwrap_or_default(),
            };
            reports.insert((release.clone(), variant.clone()), report);
        }
    }
    Ok(reports)
}

fn history(folder: &Path) -> Result<History> {
    let path = folder.join(HISTORY);
    match std::fs::read_to_string(&path) {
        Ok(text) => History::parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(History::default()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}
