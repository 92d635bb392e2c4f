//! What a container of a variant needs: one description, from catalog and wishes, for every way to start one. Pure.

mod docker;
mod gpus;
mod pages;
#[cfg(test)]
pub mod tests;
mod wishes;

pub use docker::{Client, Run, arguments, bracketed};
pub use gpus::Gpus;
pub use pages::{Cluster, Container, Runtime, Slurm, compose, kubernetes, slurm};
pub use wishes::{Network, User, Wishes};

use crate::catalog::{Catalog, Service, Variant};
use crate::problem::{Id, Problem, Refusal, unknown_name};
use crate::resolve::Resolved;
use crate::tags;
use anyhow::Result;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The folder in which containers find secrets.
const SECRETS: &str = "/run/secrets";

/// The folder of the images' services: a command below it is a service itself.
pub const SERVICES: &str = "/opt/services/";

/// What a container of a variant needs.
#[derive(Clone, Debug, Serialize)]
pub struct Recipe {
    /// What it is called.
    pub name: String,
    /// The variant's name.
    pub variant: String,
    /// What the variant is for.
    pub about: String,
    /// The image's reference.
    pub image: String,
    /// Its GPUs.
    #[serde(skip)]
    pub gpus: Gpus,
    /// Size of `/dev/shm`, as docker writes it.
    pub shared_memory: String,
    /// Who it runs as. Group 0, which may write what the image's own user may, comes with everybody.
    pub user: User,
    /// Capabilities that are not dropped.
    pub capabilities: Vec<String>,
    /// Its network.
    pub network: Network,
    /// The address of the host that its services are reached at.
    pub address: IpAddr,
    /// What will listen in it.
    pub listening: Vec<Listening>,
    /// Its variables.
    pub variables: BTreeMap<String, String>,
    /// Variables beside these where the models have a place of their own.
    pub caches: BTreeMap<String, String>,
    /// Files with secrets.
    pub secrets: Vec<Secret>,
    /// The name that one logs in with.
    pub login: String,
    /// Where users' files are.
    pub folders: Folders,
    /// What it runs; empty where the image's own command will do.
    pub command: Vec<String>,
    /// What runs in the end: that, or the image's own command.
    pub runs: Vec<String>,
    /// Whether the image's own command, or the one that is asked for, is a service, which runs until it is stopped.
    pub serves: bool,
}

/// A service that will listen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listening {
    /// Its name.
    pub service: String,
    /// The port inside.
    pub port: u16,
    /// The port of the host.
    pub host_port: u16,
    /// The page that a browser opens.
    pub page: Option<String>,
}

/// A file with a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// The service that reads it.
    pub service: String,
    /// The variable that tells the service where it is.
    pub variable: String,
    /// Where it is in the container.
    pub path: String,
    /// The file of the host, where one is given.
    pub file: Option<String>,
}

/// Where users' files are in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Folders {
    pub home: String,
    pub work: String,
    pub notebooks: String,
    pub models: String,
    pub datasets: String,
}

/// What a container of a variant needs.
///
/// Errors: `E_UNKNOWN_NAME` for a variant, or a service that the variant has not; `E_TAG` for a tag that is illegal.
pub fn recipe(catalog: &Catalog, facts: &Resolved, wishes: &Wishes) -> Result<Recipe> {
    let variant = catalog.variant(&wishes.variant)?;
    let known = inherited(catalog, wishes, |it| &it.services);
    all_known(wishes, &known)?;
    let own = inherited(catalog, wishes, |it| &it.command);
    let command = match (wishes.command.is_empty(), own.is_empty()) {
        (true, true) => catalog.containers.command.clone(),
        _ => wishes.command.clone(),
    };
    let runs = if command.is_empty() { own } else { command.clone() };
    let foreground = runs.first().and_then(|program| program.strip_prefix(SERVICES)).map(str::to_owned);
    let beside = beside(wishes, foreground.as_deref());
    let is_asked = |name: &&String| foreground.as_ref() == Some(name) || beside.contains(*name);
    let asked: Vec<Asked> =
        known.iter().filter(is_asked).map(|name| Asked::new(name, &catalog.services[name], wishes)).collect();
    let containers = &catalog.containers;
    let repository = catalog.repository.rsplit('/').next().unwrap_or_default();
    let wanted = wishes.shared_memory.as_ref();
    Ok(Recipe {
        name: wishes.name.clone().unwrap_or_else(|| format!("{repository}-{}", wishes.variant)),
        variant: wishes.variant.clone(),
        about: variant.about.clone(),
        image: image(catalog, facts, wishes)?,
        gpus: wishes.gpus.clone().unwrap_or(if variant.gpus { Gpus::All } else { Gpus::None }),
        shared_memory: wanted.unwrap_or(&containers.shared_memory).clone(),
        user: wishes.user.unwrap_or(User { uid: catalog.user.uid, gid: 0 }),
        capabilities: inherited(catalog, wishes, |it| &it.capabilities),
        network: wishes.network,
        address: wishes.address,
        variables: variables(wishes, &asked, &beside),
        caches: containers.caches.clone(),
        secrets: asked.iter().filter_map(|it| it.secret.clone()).collect(),
        listening: asked.into_iter().map(|it| it.listens).collect(),
        login: catalog.user.name.clone(),
        folders: folders(catalog),
        command,
        runs,
        serves: foreground.is_some(),
    })
}

/// What a variant says of something, or else the tier below it.
fn inherited(catalog: &Catalog, wishes: &Wishes, of: fn(&Variant) -> &Vec<String>) -> Vec<String> {
    let tiers = catalog.tiers(&wishes.variant);
    let said = tiers.into_iter().rev().map(|(_, it)| of(it)).find(|list| !list.is_empty());
    said.cloned().unwrap_or_default()
}

fn folders(catalog: &Catalog) -> Folders {
    let it = &catalog.containers.folders;
    Folders {
        home: format!("/home/{}", catalog.user.name),
        work: catalog.user.workdir.clone(),
        notebooks: it.notebooks.clone(),
        models: it.models.clone(),
        datasets: it.datasets.clone(),
    }
}

/// The name that says most about the image, in its registry.
fn image(catalog: &Catalog, facts: &Resolved, wishes: &Wishes) -> Result<String> {
    let tags = tags::planned(catalog, facts, &wishes.variant)?;
    let names = tags::references(catalog, tags);
    let name = names.into_iter().next().unwrap_or_default();
    Ok(match &wishes.registry {
        Some(registry) => format!("{}/{name}", registry.trim_end_matches('/')),
        None => name,
    })
}

/// Services that run beside the command: those that are asked for, and ssh where somebody is to be let in.
fn beside(wishes: &Wishes, foreground: Option<&str>) -> BTreeSet<String> {
    let mut beside: BTreeSet<String> = wishes.services.iter().cloned().collect();
    if wishes.secrets.contains_key("ssh") {
        beside.insert("ssh".to_owned());
    }
    beside.retain(|name| foreground != Some(name));
    beside
}

/// The option that gives a service its secret.
pub fn secret_option(service: &str) -> &'static str {
    if service == "ssh" { "--ssh-key" } else { "--token-file" }
}

/// Every service that is named anywhere is one of the variant's.
fn all_known(wishes: &Wishes, known: &[String]) -> Result<()> {
    let named = [("--service", wishes.services.iter().collect::<Vec<_>>())].into_iter();
    let named = named.chain([("--port", wishes.ports.keys().collect())]);
    let secrets = wishes.secrets.keys().map(|name| (secret_option(name), vec![name]));
    let problems: Vec<Problem> = named
        .chain(secrets)
        .flat_map(|(place, names)| names.into_iter().map(move |name| (place, name)))
        .filter(|(_, name)| !known.contains(name))
        .map(|(place, name)| {
            let kind = format!("service of {}", wishes.variant);
            if known.is_empty() {
                let what = format!("{} has no services, so no `{name}`", wishes.variant);
                let cure = "leave it out, or choose a variant with `services` in variants.yaml";
                return Problem::new(Id::UnknownName, place, what, cure);
            }
            unknown_name(place, &kind, name, known.iter().map(String::as_str))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Refusal(problems).into()) }
}

/// Which services run beside the command; and in the host's network, where each is to listen.
fn variables(wishes: &Wishes, asked: &[Asked], beside: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    if !beside.is_empty() {
        variables.insert("SERVICES".into(), beside.iter().cloned().collect::<Vec<_>>().join(","));
    }
    if wishes.network == Network::Host {
        for it in asked {
            variables.insert(it.service.variables.address.clone(), wishes.address.to_string());
            variables.insert(it.service.variables.port.clone(), it.listens.port.to_string());
        }
    }
    variables
}

/// A service that was asked for.
struct Asked<'a> {
    service: &'a Service,
    listens: Listening,
    /// Its secret, where a file is given or the service wants one.
    secret: Option<Secret>,
}

impl<'a> Asked<'a> {
    fn new(name: &str, service: &'a Service, wishes: &Wishes) -> Asked<'a> {
        let host_port = wishes.ports.get(name).copied().unwrap_or(service.port);
        let listens = Listening {
            service: name.to_owned(),
            port: if wishes.network == Network::Host { host_port } else { service.port },
            host_port,
            page: service.page.clone(),
        };
        let secret = Secret {
            name: service.secret.name.clone(),
            service: name.to_owned(),
            variable: service.secret.variable.clone(),
            path: format!("{SECRETS}/{}", service.secret.name),
            file: wishes.secrets.get(name).cloned(),
        };
        let is_needed = secret.file.is_some() || !service.secret.optional;
        Asked { service, listens, secret: is_needed.then_some(secret) }
    }
}
