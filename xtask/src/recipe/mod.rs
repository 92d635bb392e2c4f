//! What a container of a variant needs: one description, from catalog and wishes, for every way to start one. Pure.

mod docker;
mod gpus;
mod pages;
#[cfg(test)]
pub mod tests;

pub use docker::{Client, Run, arguments, bracketed};
pub use gpus::Gpus;
pub use pages::{Cluster, Container, Runtime, Slurm, compose, kubernetes, slurm};

use crate::catalog::{Catalog, Service};
use crate::problem::{Problem, Refusal, unknown_name};
use crate::resolve::Resolved;
use crate::tags;
use anyhow::Result;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// The folder in which containers find secrets.
const SECRETS: &str = "/run/secrets";

/// The folder of the images' services: a command below it is a service itself.
pub const SERVICES: &str = "/opt/services/";

/// What somebody wishes beside the variant.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// A key of `variants`.
    pub variant: String,
    /// The registry, and what stands before the repository there, that the image is pulled from.
    pub registry: Option<String>,
    /// What the container is called.
    pub name: Option<String>,
    /// GPUs; otherwise all, or none for a variant that wants none.
    pub gpus: Option<Gpus>,
    /// Size of `/dev/shm`.
    pub shared_memory: Option<String>,
    /// Who it runs as; otherwise the images' own user.
    pub user: Option<User>,
    /// Services beside the command.
    pub services: Vec<String>,
    /// Ports of the host by service.
    pub ports: BTreeMap<String, u16>,
    /// Files with secrets by service. A secret of ssh starts it.
    pub secrets: BTreeMap<String, String>,
    /// The network.
    pub network: Network,
    /// The address of the host that services are reached at.
    pub address: IpAddr,
    /// What to run instead of the variant's own command.
    pub command: Vec<String>,
}

impl Wishes {
    /// None beside the variant.
    pub fn new(variant: &str) -> Wishes {
        Wishes {
            variant: variant.to_owned(),
            registry: None,
            name: None,
            gpus: None,
            shared_memory: None,
            user: None,
            services: Vec::new(),
            ports: BTreeMap::new(),
            secrets: BTreeMap::new(),
            network: Network::Published,
            address: Ipv4Addr::LOCALHOST.into(),
            command: Vec::new(),
        }
    }
}

/// The network of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// One of its own; the ports of its services are published.
    Published,
    /// The host's: nothing is published, and its services listen where they are told to.
    Host,
}

/// Who a container runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

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
    /// Whether the service does without it.
    #[serde(skip)]
    pub optional: bool,
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
    let tiers = catalog.tiers(&wishes.variant);
    let inherited = |of: fn(&crate::catalog::Variant) -> &Vec<String>| {
        tiers.iter().rev().map(|(_, it)| of(it)).find(|list| !list.is_empty()).cloned().unwrap_or_default()
    };
    let known = inherited(|it| &it.services);
    all_known(wishes, &known)?;
    let own = inherited(|it| &it.command);
    let command = match (wishes.command.is_empty(), own.is_empty()) {
        (true, true) => catalog.containers.command.clone(),
        _ => wishes.command.clone(),
    };
    let runs = if command.is_empty() { own } else { command.clone() };
    let foreground = runs.first().and_then(|program| program.strip_prefix(SERVICES)).map(str::to_owned);
    let beside = beside(wishes, foreground.as_deref());
    let asked: Vec<&String> =
        known.iter().filter(|it| foreground.as_ref() == Some(it) || beside.contains(*it)).collect();
    let service = |name: &String| (name.clone(), &catalog.services[name]);
    let asked: Vec<(String, &Service)> = asked.into_iter().map(service).collect();
    let listening: Vec<Listening> = asked.iter().map(|(name, it)| listens(name, it, wishes)).collect();
    let secrets = asked.iter().map(|(name, it)| secret(name, it, wishes));
    let secrets: Vec<Secret> = secrets.filter(|it| it.file.is_some() || !it.optional).collect();
    let mut variables = BTreeMap::new();
    if !beside.is_empty() {
        variables.insert("SERVICES".into(), beside.iter().cloned().collect::<Vec<_>>().join(","));
    }
    if wishes.network == Network::Host {
        for ((_, it), listens) in asked.iter().zip(&listening) {
            variables.insert(it.variables.address.clone(), wishes.address.to_string());
            variables.insert(it.variables.port.clone(), listens.port.to_string());
        }
    }
    let repository = catalog.repository.rsplit('/').next().unwrap_or_default();
    let folders = &catalog.containers.folders;
    Ok(Recipe {
        name: wishes.name.clone().unwrap_or_else(|| format!("{repository}-{}", wishes.variant)),
        variant: wishes.variant.clone(),
        about: variant.about.clone(),
        image: image(catalog, facts, wishes)?,
        gpus: wishes.gpus.clone().unwrap_or(if variant.gpus { Gpus::All } else { Gpus::None }),
        shared_memory: wishes
            .shared_memory
            .clone()
            .unwrap_or_else(|| catalog.containers.shared_memory.clone()),
        user: wishes.user.unwrap_or(User { uid: catalog.user.uid, gid: 0 }),
        capabilities: inherited(|it| &it.capabilities),
        network: wishes.network,
        address: wishes.address,
        listening,
        variables,
        caches: catalog.containers.caches.clone(),
        secrets,
        login: catalog.user.name.clone(),
        folders: Folders {
            home: format!("/home/{}", catalog.user.name),
            work: catalog.user.workdir.clone(),
            notebooks: folders.notebooks.clone(),
            models: folders.models.clone(),
            datasets: folders.datasets.clone(),
        },
        command,
        runs,
        serves: foreground.is_some(),
    })
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

/// Every service that is named anywhere is one of the variant's.
fn all_known(wishes: &Wishes, known: &[String]) -> Result<()> {
    let named = [("--service", wishes.services.iter().collect::<Vec<_>>())].into_iter();
    let named = named.chain([("--port", wishes.ports.keys().collect())]);
    let secrets =
        wishes.secrets.keys().map(|name| (if name == "ssh" { "--ssh-key" } else { "--secret" }, vec![name]));
    let problems: Vec<Problem> = named
        .chain(secrets)
        .flat_map(|(place, names)| names.into_iter().map(move |name| (place, name)))
        .filter(|(_, name)| !known.contains(name))
        .map(|(place, name)| {
            let kind = format!("service of {}", wishes.variant);
            unknown_name(place, &kind, name, known.iter().map(String::as_str))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Refusal(problems).into()) }
}

fn listens(name: &str, service: &Service, wishes: &Wishes) -> Listening {
    let host_port = wishes.ports.get(name).copied().unwrap_or(service.port);
    Listening {
        service: name.to_owned(),
        port: if wishes.network == Network::Host { host_port } else { service.port },
        host_port,
        page: service.page.clone(),
    }
}

fn secret(name: &str, service: &Service, wishes: &Wishes) -> Secret {
    Secret {
        name: service.secret.name.clone(),
        service: name.to_owned(),
        variable: service.secret.variable.clone(),
        path: format!("{SECRETS}/{}", service.secret.name),
        file: wishes.secrets.get(name).cloned(),
        optional: service.secret.optional,
    }
}
