//! `smoke`: run the checks of an image that exists, here or in a registry.

use super::App;
use crate::build::{Images, Transfer, revision};
use crate::catalog::{Platform, names_registry};
use crate::cli::Smoke as Args;
use crate::engine::Engine;
use crate::github;
use crate::out::word;
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::publish::{Candidate, Report, candidate};
use crate::registry::{Reference, Registry, Repository};
use crate::resolve::Resolved;
use crate::smoke::{Record, Request};
use crate::tags;
use anyhow::Result;

/// A variant is compared with its plan; any other image is judged by its own checks.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let facts = facts(&project, args)?;
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let engine = app.find_engine(&project)?;
    let remote = remote(&project, &registry, args, engine.is_new())?;
    let image = match (&remote, &args.variant, facts) {
        (Some(remote), ..) => remote.to_string(),
        (None, Some(variant), Some(facts)) => {
            let planned = tags::planned(&project.catalog, facts, variant)?;
            tags::references(&project.catalog, planned)[0].clone()
        }
        _ => args.image.clone().unwrap_or_default(),
    };
    let request =
        Request { image: &image, plan: facts, gpus: args.gpus.as_deref(), require_gpu: args.require_gpu };
    // An engine that is not here yet has nothing but what a registry gives it.
    let is_nowhere = remote.is_none() && engine.is_new();
    if !is_nowhere {
        app.start(&engine)?;
    }
    let transfer = Transfer { engine: &engine, registry: &registry, out: &app.out };
    if app.dry_run {
        let pull = remote.as_ref().map(|remote| transfer.pull_step(remote));
        let steps: Vec<_> = pull.into_iter().chain([request.step(&engine)]).collect();
        let lines: Vec<String> = steps.iter().map(|step| step.to_line()).collect();
        return app.out.result(&lines.join("\n"), &steps);
    }
    let is_ours = remote.is_none() && args.variant.is_some();
    if is_nowhere || (is_ours && !(Images { engine: &engine, catalog: &project.catalog }).has(&image)?) {
        let cure = "`cargo xtask build` makes it; one of a registry is named with --image HOST/NAME:TAG";
        return refuse(Id::NoImage, &image, "this engine has no such image", cure);
    }
    if let Some(remote) = &remote {
        transfer.pull(remote)?;
    }
    let result = test(app, &request, &engine);
    // An engine that ended tells nothing of the image.
    let tells = result.is_ok() || !engine.has_ended();
    if let (Some(remote), true) = (&remote, args.attach && tells) {
        attach(&project, &registry, remote, &request, &result)?;
        app.out.say(&format!("attached the report to {remote}"));
    }
    let record = result?;
    github::summarize(
        "Smoke test",
        &[["IMAGE", "RESULT"].map(str::to_owned), [image.clone(), text(&record)]],
    );
    app.out.result(&text(&record), &record)
}

fn test(app: &App, request: &Request, engine: &Engine) -> Result<Record> {
    let tested = request.run(engine, |line| app.out.say(line));
    tested.map_err(|error| engine.blame("the smoke test", error))
}

/// What a variant was planned to hold; an image of unknown origin has no plan.
fn facts<'a>(project: &'a Project, args: &Args) -> Result<Option<&'a Resolved>> {
    let Some(variant) = &args.variant else {
        return Ok(None);
    };
    project.catalog.variant(variant)?;
    let release = release(project, args);
    project.catalog.release(release)?;
    Ok(project.resolved.get(release))
}

fn release<'a>(project: &'a Project, args: &'a Args) -> &'a str {
    args.release.as_ref().unwrap_or(&project.catalog.defaults.release)
}

/// The image in its registry by digest, where it comes from one and is to be pulled or told about. A new engine is started
/// only for an image that is there.
///
/// Errors: `E_BASE_GONE` where it is not there.
fn remote(
    project: &Project,
    registry: &Registry,
    args: &Args,
    engine_is_new: bool,
) -> Result<Option<Reference>> {
    if let (Some(at), Some(variant)) = (&args.registry, &args.variant) {
        let at = Repository::below(at, &project.catalog.repository)?;
        let (release, platform) = (release(project, args), Platform::host());
        let revision = revision(&project.catalog.folder());
        candidate::check_revision("git", &revision, revision.ends_with("-dirty"))?;
        let tag = candidate::tag(&revision, (release, variant), platform);
        let image = (release, variant.as_str(), platform);
        let found = Candidate::find(registry, &at, &project.catalog, &tag, image)?;
        return Ok(Some(at.at(found.manifest.digest)));
    }
    let is_remote =
        |image: &str| args.attach || image.contains('@') || (engine_is_new && names_registry(image));
    let Some(image) = args.image.as_ref().filter(|image| is_remote(image)) else {
        return Ok(None);
    };
    let reference = Reference::parse("--image", image)?;
    match registry.resolve(&reference)? {
        Some(found) => Ok(Some(reference.repository.at(found.digest))),
        None => refuse(Id::BaseGone, image, "there is no such image", "see `cargo xtask list --registry …`"),
    }
}

/// A failure is told too: an image that failed once is not published because it passed elsewhere.
fn attach(
    project: &Project,
    registry: &Registry,
    image: &Reference,
    request: &Request,
    result: &Result<Record>,
) -> Result<()> {
    let Some(subject) = registry.resolve(image)? else {
        return refuse(Id::BaseGone, image.to_string(), "it is gone", "push it again");
    };
    let report = Report::new(&subject.digest, request.gpus.is_some(), result);
    report.attach(registry, &image.repository, &subject, &project.catalog).map(drop)
}

/// The result for a person: the state first, so that a skipped GPU test never looks like a passed one.
pub fn text(record: &Record) -> String {
    let counts = &record.counts;
    let state = word(record.state);
    format!("{state}: {} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
}
