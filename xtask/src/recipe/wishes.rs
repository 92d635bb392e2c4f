//! What somebody wishes of a container beside its variant.

use super::Gpus;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

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
