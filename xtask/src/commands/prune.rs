//! `prune`: what the registry need not keep. Without `--delete` it only tells.

use super::App;
use crate::build::shared;
use crate::catalog::Catalog;
use crate::cli::Prune as Args;
use crate::plan::Inputs;
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::publish::candidate::{PREFIX, configuration};
use crate::publish::prune::{Known, gone, judge, table};
use crate::publish::report::Report;
use crate::registry::{Manifest, Registry, Repository, fallback_tag};
use crate::tags::{Truth, day_of};
use anyhow::Result;
use std::time::SystemTime;

/// Judges every tag; removes what goes, and what is attached to it, where that was asked for.
pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.keep == 0 {
        return refuse(Id::Schema, "--keep", "0 would keep no build to go back to", "keep at least 1");
    }
    let project = app.project()?;
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let at = Repository::below(&args.registry, &project.catalog.repository)?;
    let known = know(&project, &registry, &at)?;
    let since = SystemTime::now().checked_sub(*args.candidates).unwrap_or(SystemTime::UNIX_EPOCH);
    let verdicts = judge(&known, args.keep, &humantime::format_rfc3339_seconds(since).to_string());
    let gone = gone(&known, &verdicts);
    if args.delete && !app.dry_run {
        for digest in &gone {
            remove(&registry, &at, digest)?;
            app.out.say(&format!("removed {}", at.at(digest)));
        }
    } else if !gone.is_empty() {
        app.out.say(&format!("{} manifests would go; give --delete to remove them", gone.len()));
    }
    app.out.result(&table(&verdicts), &verdicts)
}

fn know(project: &Project, registry: &Registry, at: &Repository) -> Result<Known> {
    let catalog = &project.catalog;
    let mut known = Known::default();
    for tag in registry.tags(at)? {
        let Some(manifest) = registry.manifest(&at.at(&tag))?.filter(|_| !tag.starts_with("sha256-")) else {
            continue;
        };
        let children = manifest.document()?.manifests.unwrap_or_default();
        let children: Vec<String> = children.into_iter().map(|it| it.digest).collect();
        if !known.children.contains_key(&manifest.digest) {
            let held = children.iter().filter_map(|image| registry.manifest(&at.at(image)).transpose());
            for image in held.chain([Ok(manifest.clone())]) {
                let image = image?;
                known.bases.extend(base_of(registry, at, catalog, &image)?.map(|base| (image.digest, base)));
            }
        }
        known.children.insert(manifest.digest.clone(), children);
        if tag.starts_with(PREFIX) {
            let reports = Report::all(registry, at, &manifest.digest, catalog)?;
            if let Some(last) = reports.into_iter().map(|report| report.created).max() {
                known.tested.insert(tag.clone(), last);
            }
        }
        for (release, facts) in &project.resolved {
            for variant in catalog.variants.keys() {
                if let Some(day) = day_of(catalog, &Truth::planned(facts, variant), &tag) {
                    known.days.insert(tag.clone(), (format!("{release} {variant}"), day));
                }
            }
        }
        known.tags.insert(tag, manifest.digest);
    }
    Ok(known)
}

/// The tag of the base that an image says it was made from.
fn base_of(
    registry: &Registry,
    at: &Repository,
    catalog: &Catalog,
    image: &Manifest,
) -> Result<Option<String>> {
    let labels = configuration(registry, at, image)?.map(|it| it.labels()).unwrap_or_default();
    let input = Inputs::of(catalog, &labels).base_input;
    let release = labels.get(&catalog.label("release")).filter(|_| !input.is_empty());
    Ok(release.map(|release| shared::tag(release, &input)))
}

/// What is attached goes first: an image that is gone could not be asked for it.
fn remove(registry: &Registry, at: &Repository, digest: &str) -> Result<()> {
    for attached in registry.all_referrers(at, digest)? {
        registry.delete(at, &attached.digest)?;
    }
    if let Some(list) = registry.resolve(&at.at(fallback_tag(digest)))? {
        registry.delete(at, &list.digest)?;
    }
    registry.delete(at, digest)
}
