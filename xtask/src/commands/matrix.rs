//! `matrix`: the jobs of continuous integration. One job makes each base, with the variant that stands on it first; when that
//! is pushed, the others find the base in the registry.

use super::{App, plan};
use crate::catalog::{Catalog, Platform};
use crate::cli::{Base, Matrix as Args, Plan, Select};
use crate::plan::{Action, Chosen};
use crate::project::Project;
use anyhow::Result;
use serde::Serialize;

/// The jobs, three times in the form that GitHub's `strategy.matrix` takes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Matrix {
    /// A job a base, for what is done when everything is built.
    all: Jobs,
    /// A job a base, for the variants that are built with it.
    first: Jobs,
    /// A job for each of the other stacks of variants, once the bases are there.
    rest: Jobs,
}

/// Jobs as GitHub takes them.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Jobs {
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
    let mut matrix = Matrix::default();
    for platform in &project.catalog.defaults.platforms {
        let select = Select { all: true, platform: Some(*platform), ..Select::default() };
        let chosen = match &args.registry {
            Some(registry) => missing(app, &project, select, registry)?,
            None => project.select(&select)?,
        };
        matrix.add(&project.catalog, *platform, &chosen);
    }
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

impl Matrix {
    /// Adds the jobs of each release that has wheels for the platform.
    fn add(&mut self, catalog: &Catalog, platform: Platform, chosen: &Chosen) {
        let releases = catalog.releases_newest_first().into_iter();
        for release in releases.filter(|it| catalog.platforms(&catalog.releases[*it]).contains(&platform)) {
            let of_release = chosen.iter().filter(|(of, _)| of == release);
            let variants: Vec<&str> = of_release.map(|(_, variant)| variant.as_str()).collect();
            let job = |variants: Vec<&str>| {
                let variants = variants.into_iter().map(str::to_owned).collect();
                Job { release: release.to_owned(), platform, variants }
            };
            let mut stacks = stacks(catalog, &variants).into_iter();
            if let Some(first) = stacks.next() {
                self.all.include.push(job(variants));
                self.first.include.push(job(first));
                self.rest.include.extend(stacks.map(job));
            }
        }
    }
}

/// Variants that are built of one another: what is below two of them is built once.
fn stacks<'a>(catalog: &Catalog, variants: &[&'a str]) -> Vec<Vec<&'a str>> {
    let lowest = |variant: &str| catalog.tiers(variant).first().map(|(tier, _)| (*tier).to_owned());
    let mut stacks: Vec<Vec<&str>> = Vec::new();
    for variant in variants {
        match stacks.iter_mut().find(|stack| lowest(stack[0]) == lowest(variant)) {
            Some(stack) => stack.push(variant),
            None => stacks.push(vec![variant]),
        }
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_made_by_one_job_and_what_is_there_by_none() {
        let catalog = Catalog::parse("v.yaml", include_str!("../../../variants.yaml")).unwrap();
        let chosen: Chosen =
            [("2.9", "devel"), ("2.15", "runtime"), ("2.15", "devel"), ("2.15", "debug"), ("2.15", "mlflow")]
                .map(|(release, variant)| (release.to_owned(), variant.to_owned()))
                .into();
        let told = |platform| {
            let mut matrix = Matrix::default();
            matrix.add(&catalog, platform, &chosen);
            let line = |job: &Job| format!("{} {}", job.release, job.variants.join(" "));
            [matrix.all, matrix.first, matrix.rest]
                .map(|it| it.include.iter().map(line).collect::<Vec<_>>().join(", "))
        };
        let rest = "2.15 devel debug, 2.15 mlflow";
        assert_eq!(
            told(Platform::Amd64),
            ["2.15 runtime devel debug mlflow, 2.9 devel", "2.15 runtime, 2.9 devel", rest]
        );
        assert_eq!(told(Platform::Arm64), ["2.15 runtime devel debug mlflow", "2.15 runtime", rest]);
        assert_eq!(stacks(&catalog, &["debug", "devel"]), [["debug", "devel"]]);
    }
}
