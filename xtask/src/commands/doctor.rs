//! `doctor`: the cause when a GPU does not work.

use super::App;
use crate::catalog::Platform;
use crate::cli::Doctor as Args;
use crate::compat::Compat;
use crate::doctor::{Facts, Image, Report, Source, Subject, diagnose, look, words};
use crate::explain::{Asked, Ours, explain};
use crate::problem::{Exit, Id, refuse};
use crate::project::Project;
use crate::runner::Step;
use crate::tags;
use anyhow::Result;

/// The report on standard output; a failed check, or a host that cannot be used, where the verdict is not `OK`.
pub fn run(app: &App, args: Args) -> Result<()> {
    let project = app.project()?;
    let subject = Subject { plan: plan(&project, &args)?, image: args.image, container: args.container };
    let source = match (&args.fixtures, app.dry_run) {
        (Some(folder), _) if !folder.is_dir() => {
            let cure = "name a folder of recorded probes";
            return refuse(Id::Schema, "--fixtures", format!("`{}` is not a folder", folder.display()), cure);
        }
        (Some(folder), false) => Source::fixtures(folder),
        (_, true) => Source::nowhere(docker_env(app, &project)),
        (None, false) => Source::host(docker_env(app, &project)),
    };
    let facts = facts(&source, subject, &project)?;
    if app.dry_run {
        let steps = source.steps();
        let lines: Vec<String> = steps.iter().map(Step::to_script).collect();
        return app.out.result(&lines.join("\n"), &steps);
    }
    let report = judge(facts, &project)?;
    app.out.result(&words(&report), &report)?;
    let verdict = report.main.verdict;
    let id = match verdict.failure() {
        None => return Ok(()),
        Some(Exit::Unusable) => Id::Engine,
        Some(_) => Id::Check,
    };
    let cure = report.main.cure.first().cloned().unwrap_or_default();
    refuse(id, "cargo xtask doctor", format!("{verdict}: {}", report.main.cause), cure)
}

fn facts(source: &Source, subject: Subject, project: &Project) -> Result<Facts> {
    look(source, subject, &|key| project.catalog.label(key))
}

fn judge(facts: Facts, project: &Project) -> Result<Report> {
    let ours = ours(&facts, project)?;
    Ok(diagnose(facts, ours, Compat::bundled()?))
}

/// The verdict on this host with its cause, in a line, for other commands.
pub fn cause(app: &App, project: &Project) -> Result<String> {
    let source = Source::host(docker_env(app, project));
    let main = judge(facts(&source, Subject::default(), project)?, project)?.main;
    Ok(format!("{}: {}", main.verdict, main.cause))
}

/// The private engine is asked where it is the one that answers; otherwise whatever has docker's name.
fn docker_env(app: &App, project: &Project) -> Vec<(String, String)> {
    let engine = app.find_engine(project).ok().filter(|engine| engine.answers());
    engine.map(|engine| engine.docker("ask", ["version"]).env).unwrap_or_default()
}

/// The image of a variant, as the catalog has it.
fn plan(project: &Project, args: &Args) -> Result<Option<Image>> {
    let Some(variant) = &args.variant else {
        return Ok(None);
    };
    let catalog = &project.catalog;
    catalog.variant(variant)?;
    let release = args.release.as_ref().unwrap_or(&catalog.defaults.release);
    let budget = &catalog.release(release)?.budget;
    let facts = &project.resolved[release];
    let names = tags::references(catalog, tags::planned(catalog, facts, variant)?);
    let budgets = catalog.tiers(variant).into_iter().map(|(_, tier)| &tier.budget).chain([budget]);
    // While it is fetched, the packed layers lie beside the unpacked ones.
    let megabytes: u64 = budgets.flatten().map(|it| it.compressed_mb + it.unpacked_mb).sum();
    let platform = Platform::ALL.iter().find(|it| it.machine() == std::env::consts::ARCH);
    Ok(Some(Image {
        name: names[0].clone(),
        driver_floor: Some(facts.driver_floor.clone()),
        arch_list: facts.arch_list(platform.copied().unwrap_or(catalog.first_platform())).to_vec(),
        cuda: Some(facts.cuda.clone()),
        bytes: Some(megabytes * 1_000_000),
        ..Image::default()
    }))
}

/// The catalog's releases, the newest first, and what each lacks on the driver with any of its GPUs.
fn ours(facts: &Facts, project: &Project) -> Result<Vec<Ours>> {
    let mut all: Vec<Ours> = Vec::new();
    let compat = Compat::bundled()?;
    for gpu in facts.driver.gpus() {
        let name = compat.gpu(&gpu.name).map(|(name, _)| name.to_owned());
        let asked = Asked {
            sm: gpu.capability.clone().filter(|_| name.is_none()),
            gpu: name,
            driver: Some(gpu.driver.clone()),
            platform: facts.system.platform,
            ..Asked::default()
        };
        for it in explain(&asked, &project.catalog, &project.resolved, compat)?.ours {
            match all.iter_mut().find(|other| other.release == it.release) {
                Some(other) => other.lacks.extend(it.lacks),
                None => all.push(it),
            }
        }
    }
    for it in &mut all {
        it.lacks.dedup();
    }
    Ok(all)
}
