//! `matrix`: the jobs of continuous integration. A job builds all variants of one base, so that no base is built twice.

use super::{App, plan};
use crate::catalog::{Catalog, Platform};
use crate::cli::{Base, Matrix as Args, Plan, Select};
use crate::plan::{Action, Chosen};
use crate::project::Project;
use anyhow::Result;
use serde::Serialize;

/// The form that GitHub's `strategy.matrix` takes.
#[derive(Serialize)]
struct Matrix {
    include: Vec<Job>,
}

/// One job.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Job {
    release: String,
    platform: Platform,
    variants: Vec<String>,
}

/// The jobs as JSON; with a registry, only those that have something to build.
pub fn run(app: &App, args: Args) -> Result<()> {
    let project = app.project()?;
    let mut include = Vec::new();
    for platform in &project.catalog.defaults.platforms {
        let select = Select { all: true, platform: Some(*platform), ..Select::default() };
        let chosen = match &args.registry {
            Some(registry) => missing(app, &project, select, registry)?,
            None => project.select(&select)?,
        };
        include.extend(jobs(&project.catalog, *platform, &chosen));
    }
    let matrix = Matrix { include };
    app.out.result(&serde_json::to_string_pretty(&matrix)?, &matrix)
}

/// What a registry does not have as it would be built now.
fn missing(app: &App, project: &Project, select: Select, registry: &str) -> Result<Chosen> {
    let plan = plan::plan(
        app,
        project,
        Plan { select, base: Base::default(), registry: Some(registry.to_owned()) },
    )?;
    let missing = plan.images.into_iter().filter(|image| image.plan.action == Action::Build);
    Ok(missing.map(|image| (image.plan.release, image.plan.variant)).collect())
}

/// A job for each release that has wheels for the platform.
fn jobs(catalog: &Catalog, platform: Platform, chosen: &Chosen) -> Vec<Job> {
    let releases = catalog.releases_newest_first().into_iter();
    let served = releases.filter(|name| catalog.platforms(&catalog.releases[*name]).contains(&platform));
    let job = |release: &str| {
        let variants: Vec<String> =
            chosen.iter().filter(|(of, _)| of == release).map(|(_, variant)| variant.clone()).collect();
        Job { release: release.to_owned(), platform, variants }
    };
    served.map(job).filter(|job| !job.variants.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_one_job_and_what_is_there_is_none() {
        let catalog = Catalog::parse("v.yaml", include_str!("../../../variants.yaml")).unwrap();
        let chosen: Chosen = [("2.9", "devel"), ("2.15", "runtime"), ("2.15", "mlflow")]
            .map(|(release, variant)| (release.to_owned(), variant.to_owned()))
            .into();
        let told = |platform| {
            let jobs = jobs(&catalog, platform, &chosen);
            jobs.into_iter()
                .map(|job| format!("{} {}", job.release, job.variants.join(" ")))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(Platform::Amd64), ["2.15 runtime mlflow", "2.9 devel"]);
        assert_eq!(told(Platform::Arm64), ["2.15 runtime mlflow"]);
    }
}
