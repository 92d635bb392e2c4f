//! `smoke`: run the checks of an image that exists.

use super::App;
use crate::cli::Smoke as Args;
use crate::github;
use crate::out::word;
use crate::smoke::{Record, Request};
use crate::tags;
use anyhow::Result;

/// A variant is compared with its plan; any other image is judged by its own checks.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let (image, plan) = match (&args.variant, &args.image) {
        (Some(variant), _) => {
            project.catalog.variant(variant)?;
            let release = args.release.as_ref().unwrap_or(&project.catalog.defaults.release);
            project.catalog.release(release)?;
            let facts = &project.resolved[release];
            let references =
                tags::references(&project.catalog, tags::planned(&project.catalog, facts, variant)?);
            (references[0].clone(), Some(facts))
        }
        (None, image) => (image.clone().unwrap_or_default(), None),
    };
    let request = Request { image: &image, plan, gpus: args.gpus.as_deref(), require_gpu: args.require_gpu };
    let engine = app.engine(&project)?;
    if app.dry_run {
        let step = request.step(&engine);
        return app.out.result(&step.to_line(), &step.argv);
    }
    let record = request.run(&engine, |line| app.out.say(line))?;
    github::summarize(
        "Smoke test",
        &[["IMAGE", "RESULT"].map(str::to_owned), [image.clone(), text(&record)]],
    );
    app.out.result(&text(&record), &record)
}

/// The result for a person: the state first, so that a skipped GPU test never looks like a passed one.
pub fn text(record: &Record) -> String {
    let counts = &record.counts;
    let state = word(record.state);
    format!("{state}: {} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
}
