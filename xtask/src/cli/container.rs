//! Commands that start containers, or print what does.

use crate::recipe::{Gpus, Runtime};
use clap::{Args, ValueEnum};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// `run`.
#[derive(Args, Debug)]
pub struct Run {
    /// What the container needs
    #[command(flatten)]
    pub container: Container,
    /// Run in the background; the container is kept when it ends
    #[arg(long, short)]
    pub detach: bool,
    /// The folder to mount as /workspace
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub work: PathBuf,
    /// Data to mount read-only
    #[arg(long, value_name = "FOLDER")]
    pub datasets: Option<PathBuf>,
    /// Attach GPUs by their CDI names; always so with Podman
    #[arg(long)]
    pub cdi: bool,
    /// Print an entry for ~/.ssh/config, for remote editors
    #[arg(long)]
    pub ssh_config: bool,
}

/// `k8s`.
#[derive(Args, Debug)]
pub struct K8s {
    /// What the container needs
    #[command(flatten)]
    pub container: Container,
    /// The namespace; the manifests create it
    #[arg(long, value_name = "NAME", default_value = "pytorch-cuda", value_parser = name)]
    pub namespace: String,
    /// A claim in that namespace with data to mount read-only
    #[arg(long, value_name = "CLAIM", value_parser = name)]
    pub datasets: Option<String>,
}

/// `slurm`.
#[derive(Args, Debug)]
pub struct Slurm {
    /// What the container needs
    #[command(flatten)]
    pub container: Container,
    /// What runs containers on the nodes
    #[arg(long, value_enum, default_value = "pyxis")]
    pub runtime: Runtime,
    /// How many nodes
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: u32,
    /// The time limit, in Slurm syntax
    #[arg(long, value_name = "D-HH:MM:SS", default_value = "04:00:00", value_parser = time)]
    pub time: String,
    /// The partition [default: Slurm's default]
    #[arg(long, value_name = "NAME", value_parser = partition)]
    pub partition: Option<String>,
}

/// What a container needs beside its image.
#[derive(Args, Debug)]
pub struct Container {
    /// The variant
    #[arg(long, short = 'V', value_name = "NAME")]
    pub variant: String,
    /// The release [default: the catalog's defaults.release]
    #[arg(long, value_name = "NAME")]
    pub release: Option<String>,
    /// Use the image in this registry, e.g. registry.example.org/team [default: the one built here]
    #[arg(long, value_name = "REGISTRY")]
    pub registry: Option<String>,
    /// The container's name [default: repository and variant]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// GPUs: all, none, count=2, or ids (0,1 or GPU-… or MIG-…) [default: all, or none where the variant wants none]
    #[arg(long, value_name = "GPUS", value_parser = Gpus::parse)]
    pub gpus: Option<Gpus>,
    /// Size of /dev/shm [default: the catalog's containers.shared_memory]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub shm_size: Option<String>,
    /// The user to run as [default: you; for root, the image's own user]
    #[arg(long, value_name = "UID[:GID]", value_parser = user)]
    pub user: Option<(u32, u32)>,
    /// A service to run beside the command: jupyter, ssh, mlflow; repeatable
    #[arg(long, value_name = "NAME")]
    pub service: Vec<String>,
    /// Use another host port for a service; repeatable
    #[arg(long, value_name = "SERVICE=PORT", value_parser = port)]
    pub port: Vec<(String, u16)>,
    /// Where services can be reached; without a value, from anywhere that reaches this machine [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "0.0.0.0")]
    pub host: Option<IpAddr>,
    /// The network of the container
    #[arg(long, value_enum, value_name = "NETWORK")]
    pub network: Option<Network>,
    /// A public key that may log in; starts SSH
    #[arg(long, value_name = "FILE")]
    pub ssh_key: Option<PathBuf>,
    /// A file with JupyterLab's token [default: one is generated and kept]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A command to run instead of the variant's own
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl Container {
    /// The address at which services are reached.
    pub fn address(&self) -> IpAddr {
        self.host.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }
}

/// The network of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// The engine's own network; ports of services are published
    Bridge,
    /// The host's network, for engines without one of their own; services listen on loopback
    Host,
}

fn name(text: &str) -> Result<String, String> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    match text.starts_with(word) && text.chars().all(|c| word(c) || c == '-') && text.len() <= 50 {
        true => Ok(text.to_owned()),
        false => Err("use lower case letters, digits and `-`, a letter or digit first".to_owned()),
    }
}

fn time(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || "-:".contains(c)) {
        true => Ok(text.to_owned()),
        false => Err("write it as 30 (minutes), 04:00:00 or 2-12:00:00".to_owned()),
    }
}

fn partition(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_,.".contains(c)) {
        true => Ok(text.to_owned()),
        false => Err("use letters, digits, `-` and `_`".to_owned()),
    }
}

fn size(text: &str) -> Result<String, String> {
    match text.strip_suffix(['m', 'g']).is_some_and(|number| number.parse::<u32>().is_ok_and(|it| it > 0)) {
        true => Ok(text.to_owned()),
        false => Err("write it as 512m or 8g".to_owned()),
    }
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    match text.split_once(':') {
        Some((uid, gid)) => Ok((number(uid)?, number(gid)?)),
        None => Ok((number(text)?, 0)),
    }
}

fn port(text: &str) -> Result<(String, u16), String> {
    let pair = text.split_once('=').ok_or("write it as jupyter=8889")?;
    match pair.1.parse() {
        Ok(0) | Err(_) => Err(format!("`{}` is no port", pair.1)),
        Ok(port) => Ok((pair.0.to_owned(), port)),
    }
}
