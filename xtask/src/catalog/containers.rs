//! How containers of the images are started, what listens in them, and whose images stand beside them.

use super::root::reference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What listens inside a container: a program below `/opt/services` of the images.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// The default port.
    pub port: u16,
    /// The page to open in a browser, if it has one.
    #[serde(default)]
    pub page: Option<String>,
    /// Variables that tell it where to listen.
    pub variables: Variables,
    /// The secret that decides who may log in, or what it may access.
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
    /// Whether a long-running service also works without it.
    #[serde(default)]
    pub optional: bool,
}

/// How containers are started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Containers {
    /// Size of `/dev/shm`, as docker writes it: `2g`.
    pub shared_memory: String,
    /// The command to run if the variant has none and none is given.
    pub command: Vec<String>,
    /// Where users' files are.
    pub folders: Folders,
    /// Environment variables that make libraries download next to the models.
    pub caches: BTreeMap<String, String>,
}

/// A third-party image used beside ours.
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
    /// The folder JupyterLab opens.
    pub notebooks: String,
    /// Trained and downloaded models.
    pub models: String,
    /// Read-only data.
    pub datasets: String,
}
