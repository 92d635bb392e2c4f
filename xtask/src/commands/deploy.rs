//! `compose`, `k8s`, `slurm`: files for others to start, on stdout; nothing is looked at but the catalog.

use super::App;
use super::run::described;
use crate::cli::{Container as Options, K8s, Slurm as SlurmArgs};
use crate::launch::Host;
use crate::project::Project;
use crate::recipe::{self, Cluster, Container, Network, Recipe, Slurm, Wishes};
use crate::render::Templates;
use anyhow::Result;

/// The variant that is MLflow's server.
const TRACKING: &str = "mlflow";

/// A file for `docker compose`.
pub fn compose(app: &App, args: &Options) -> Result<()> {
    let (project, templates) = read(app)?;
    let recipe = described(&project, args, Some(Host::look().caller), Network::Published)?;
    let tracking = tracking(&project, args)?;
    print(app, &recipe::compose(&container(&project, args, &recipe), tracking.as_ref(), &templates)?)
}

/// Manifests for Kubernetes.
pub fn k8s(app: &App, args: &K8s) -> Result<()> {
    let (project, templates) = read(app)?;
    let recipe = described(&project, &args.container, None, Network::Published)?;
    let cluster = Cluster { namespace: args.namespace.clone(), datasets: args.datasets.clone() };
    print(app, &recipe::kubernetes(&container(&project, &args.container, &recipe), &cluster, &templates)?)
}

/// A batch script for Slurm, whose jobs have the network of their node.
pub fn slurm(app: &App, args: &SlurmArgs) -> Result<()> {
    let (project, templates) = read(app)?;
    let recipe = described(&project, &args.container, None, Network::Host)?;
    let slurm = Slurm {
        runtime: args.runtime,
        nodes: args.nodes,
        time: args.time.clone(),
        partition: args.partition.clone(),
    };
    print(app, &recipe::slurm(&container(&project, &args.container, &recipe), &slurm, &templates)?)
}

fn read(app: &App) -> Result<(Project, Templates)> {
    let project = app.project()?;
    let templates = Templates::read(&project.catalog.folder().join("templates"))?;
    Ok((project, templates))
}

fn container<'a>(project: &'a Project, options: &'a Options, recipe: &'a Recipe) -> Container<'a> {
    let catalog = &project.catalog;
    let release = options.release.as_ref().unwrap_or(&catalog.defaults.release);
    Container { catalog, release, recipe, registry: options.registry.is_some() }
}

/// The tracking server of the same release, where the catalog has one.
fn tracking(project: &Project, options: &Options) -> Result<Option<Recipe>> {
    let catalog = &project.catalog;
    if !catalog.variants.contains_key(TRACKING) {
        return Ok(None);
    }
    let release = options.release.as_ref().unwrap_or(&catalog.defaults.release);
    let wishes = Wishes { registry: options.registry.clone(), ..Wishes::new(TRACKING) };
    Ok(Some(recipe::recipe(catalog, &project.resolved[release], &wishes)?))
}

/// The file is the result, as it is: it ends with one line break.
fn print(app: &App, text: &str) -> Result<()> {
    app.out.result(text.trim_end(), &text)
}
