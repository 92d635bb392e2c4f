//! How containers of the images are started, what listens in them, and whose images stand beside them.

use super::root::reference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What listens inside a container: a program below `/opt/services` of the images.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The port where nothing else is said.
    pub port: u16,
    /// The page that a browser opens; none where it is not for browsers.
    #[serde(default)]
    pub page: Option<String>,
    /// Variables that tell it where to listen.
    pub variables: Variables,
    /// What decides who gets in, or what it may use.
    pub secret: Secret,
}

/// Variables that tell a service where to listen.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variables {
    /// The address.
    pub address: String,
    /// The port.
    pub port: String,
}

/// A secret that a service reads from a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Its file below `/run/secrets`.
    pub name: String,
    /// The variable that holds the file's path.
    pub variable: String,
    /// Whether the service also does without it in a container that is meant to stay.
    #[serde(default)]
    pub optional: bool,
}

/// How containers are started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Containers {
    /// Size of `/dev/shm`, as docker writes it: `2g`.
    pub shared_memory: String,
    /// What runs where a variant has no command of its own and none is asked for.
    pub command: Vec<String>,
    /// Where users' files are.
    pub folders: Folders,
    /// Variables that put what libraries download beside the models.
    pub caches: BTreeMap<String, String>,
}

/// An image of others that stands beside ours.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Companion {
    /// Repository and tag.
    pub image: String,
    /// Digest of its index.
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
}

impl Companion {
    /// `repository:tag@digest`.
    pub fn reference(&self) -> String {
        reference(Some(&self.image), Some(&self.digest)).unwrap_or_default()
    }
}

/// Where users' files are in containers, beside the home and the work folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Folders {
    /// What JupyterLab opens.
    pub notebooks: String,
    /// What training leaves behind, and what is downloaded.
    pub models: String,
    /// What is only read.
    pub datasets: String,
}
