//! CDI specifications: the files from which engines know what belongs to a GPU.

use crate::doctor::facts::{Spec, SpecContent};
use crate::doctor::source::Source;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    kind: String,
    #[serde(default)]
    devices: Vec<Device>,
    #[serde(default)]
    container_edits: Edits,
}

#[derive(Deserialize)]
struct Device {
    name: String,
}

#[derive(Default, Deserialize)]
struct Edits {
    #[serde(default)]
    mounts: Vec<Mount>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    host_path: String,
}

/// NVIDIA's specifications in the folders, and every file that cannot be read: nobody knows whose it is.
pub fn probe(source: &Source, folders: &[String]) -> Vec<Spec> {
    let defaults = ["/etc/cdi".to_owned(), "/var/run/cdi".to_owned()];
    let folders = if folders.is_empty() { &defaults[..] } else { folders };
    let mut specs = Vec::new();
    for folder in folders {
        let names = source.list(folder).unwrap_or_default();
        for name in names.iter().filter(|name| [".yaml", ".json"].iter().any(|end| name.ends_with(end))) {
            let path = format!("{}/{name}", folder.trim_end_matches('/'));
            let Some(text) = source.read(&path) else { continue };
            match text.and_then(|text| content(&text)) {
                Ok(None) => {}
                Ok(Some(content)) => specs.push(Spec { path, content: Ok(content) }),
                Err(why) => specs.push(Spec { path, content: Err(why) }),
            }
        }
    }
    specs
}

/// What a specification holds; `None` where it is of another vendor. YAML is a superset of JSON.
fn content(text: &str) -> Result<Option<SpecContent>, String> {
    let file: File = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    if !file.kind.starts_with("nvidia.com/") {
        return Ok(None);
    }
    let version = |mount: &Mount| Some(mount.host_path.rsplit_once("/libcuda.so.")?.1.to_owned());
    let mut versions = file.container_edits.mounts.iter().filter_map(version);
    Ok(Some(SpecContent {
        devices: file.devices.iter().map(|device| format!("{}={}", file.kind, device.name)).collect(),
        driver: versions.find(|version| version.contains('.')),
    }))
}
