//! A recipe as files for others to start: Compose, Kubernetes, Slurm. Each is a template with what it is given.

use super::docker::bracketed;
use super::{Gpus, Listening, Recipe};
use crate::catalog::Catalog;
use crate::render::Templates;
use crate::runner::quote;
use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeMap;
use tera::Context;

/// What all files of one container have in common.
pub struct Container<'a> {
    /// Templates and companions come from there.
    pub catalog: &'a Catalog,
    /// The release's name.
    pub release: &'a str,
    /// What it needs.
    pub recipe: &'a Recipe,
    /// Whether the image's name begins with a registry.
    pub registry: bool,
}

/// How a cluster of Kubernetes is to have it.
pub struct Cluster {
    /// The namespace, which is made.
    pub namespace: String,
    /// A claim that is there already, with data that is only read.
    pub datasets: Option<String>,
}

/// How a cluster of Slurm is to have it.
pub struct Slurm {
    /// What runs containers on its nodes.
    pub runtime: Runtime,
    /// How many nodes.
    pub nodes: u32,
    /// The limit of time, as Slurm writes it.
    pub time: String,
    /// The partition; otherwise Slurm's default.
    pub partition: Option<String>,
}

/// What runs containers on the nodes of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// NVIDIA's Slurm plugin, with enroot
    Pyxis,
    /// Apptainer, formerly Singularity
    Apptainer,
}

/// Cores that a task gets for each GPU: a DataLoader's workers run on them.
const CORES: u32 = 8;

/// A file for `docker compose`, with the profiles `monitoring` and, where there is one, the tracking server `tracking`.
pub fn compose(container: &Container, tracking: Option<&Recipe>, templates: &Templates) -> Result<String> {
    let recipe = container.recipe;
    // A dollar sign begins a variable there.
    let word = |text: &str| serde_json::to_string(text).unwrap_or_default().replace('$', "$$");
    let mut context = context(container, &word, "./secrets/");
    let gpus = match &recipe.gpus {
        Gpus::None => None,
        Gpus::All => Some(Reservation { driver: "nvidia", count: "all".into(), ids: None }),
        Gpus::Count(count) => Some(Reservation { driver: "nvidia", count: count.to_string(), ids: None }),
        Gpus::Ids(ids) => {
            Some(Reservation { driver: "nvidia", count: String::new(), ids: Some(list(ids, &word)) })
        }
    };
    context.insert("gpus", &gpus);
    context.insert("address", &bracketed(recipe.address));
    let companions = container.catalog.companions.iter();
    context.insert(
        "companions",
        &companions.map(|(name, it)| (name, it.reference())).collect::<BTreeMap<_, _>>(),
    );
    context.insert("tracking", &tracking.and_then(|it| Tracking::new(it, &word)));
    context.insert("own_store", &recipe.secrets.iter().any(|it| it.service == "mlflow"));
    let dashboard = templates.render("deploy/gpus.json.tera", &Context::new())?;
    context.insert("dashboard", dashboard.trim());
    templates.render("deploy/compose.yaml.tera", &context)
}

/// Manifests for Kubernetes: a Deployment for what serves, a Job for what ends.
pub fn kubernetes(container: &Container, cluster: &Cluster, templates: &Templates) -> Result<String> {
    let word = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut context = context(container, &word, "");
    context.insert("namespace", &cluster.namespace);
    context.insert("datasets", &cluster.datasets);
    context.insert("gpus", &BTreeMap::from([("count", number(&container.recipe.gpus))]));
    // Docker's `g` is 2^30 bytes.
    let shm = container.recipe.shared_memory.replace('g', "Gi").replace('m', "Mi");
    context.insert("shm", &shm);
    templates.render("deploy/kubernetes.yaml.tera", &context)
}

/// A batch script for Slurm.
pub fn slurm(container: &Container, slurm: &Slurm, templates: &Templates) -> Result<String> {
    // A job has no secret that nobody gave it.
    let mut recipe = container.recipe.clone();
    recipe.secrets.retain(|it| it.file.is_some());
    let mut context = context(&Container { recipe: &recipe, ..*container }, &quote, "");
    let words: Vec<String> = recipe.runs.iter().map(|word| quote(word)).collect();
    context.insert("command", &words.join(" "));
    let gpus = number(&recipe.gpus);
    context.insert("runtime", &slurm.runtime);
    context.insert("nodes", &slurm.nodes);
    context.insert("time", &slurm.time);
    context.insert("partition", &slurm.partition);
    context.insert("cpus", &(CORES * gpus.parse::<u32>().unwrap_or(1).max(1)));
    context.insert("gpus", &BTreeMap::from([("count", gpus)]));
    context.insert("image", &quote(&reference(&recipe.image, slurm.runtime, container.registry)));
    templates.render("deploy/slurm.sh.tera", &context)
}

/// GPUs of a container in Compose.
#[derive(Serialize)]
struct Reservation {
    driver: &'static str,
    count: String,
    ids: Option<String>,
}

/// The tracking server beside a container.
#[derive(Serialize)]
struct Tracking {
    image: String,
    port: u16,
}

impl Tracking {
    fn new(recipe: &Recipe, word: &dyn Fn(&str) -> String) -> Option<Tracking> {
        let port = recipe.listening.first().map(|it: &Listening| it.port)?;
        Some(Tracking { image: word(&recipe.image), port })
    }
}

/// What a template sees of every container: `it`, and `q` with words in the quotes of its language.
fn context(container: &Container, word: &dyn Fn(&str) -> String, folder: &str) -> Context {
    let recipe = container.recipe;
    let mut context = Context::new();
    context.insert("it", recipe);
    context.insert("release", container.release);
    context.insert("registry", &container.registry);
    let own = recipe.secrets.iter().map(|it| (it.variable.clone(), it.path.clone()));
    let variables = recipe.variables.clone().into_iter().chain(recipe.caches.clone()).chain(own);
    let variables: BTreeMap<String, String> = variables.map(|(name, value)| (name, word(&value))).collect();
    let file = |it: &super::Secret| it.file.clone().unwrap_or_else(|| format!("{folder}{}", it.name));
    let files = recipe.secrets.iter().map(|it| (it.name.as_str(), word(&file(it))));
    context.insert(
        "q",
        &Quoted {
            image: word(&recipe.image),
            command: list(&recipe.command, word),
            variables,
            files: files.collect(),
        },
    );
    context
}

/// Words of a recipe in the quotes of a file's language.
#[derive(Serialize)]
struct Quoted<'a> {
    image: String,
    command: String,
    variables: BTreeMap<String, String>,
    files: BTreeMap<&'a str, String>,
}

/// A list in brackets; empty for none.
fn list(words: &[String], word: &dyn Fn(&str) -> String) -> String {
    match words.is_empty() {
        true => String::new(),
        false => format!("[{}]", words.iter().map(|it| word(it)).collect::<Vec<_>>().join(", ")),
    }
}

/// How many GPUs are asked of a cluster, which has no "all": one, unless more are named.
fn number(gpus: &Gpus) -> String {
    gpus.count().unwrap_or(1).to_string()
}

/// How a runtime wants an image named: enroot sets a registry apart with `#`, Apptainer wants to be told of docker's format.
fn reference(image: &str, runtime: Runtime, registry: bool) -> String {
    match (runtime, registry) {
        (Runtime::Pyxis, true) => image.replacen('/', "#", 1),
        (Runtime::Pyxis, false) => image.to_owned(),
        (Runtime::Apptainer, _) => format!("docker://{image}"),
    }
}
