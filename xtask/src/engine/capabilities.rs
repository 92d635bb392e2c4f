//! What an engine can do, asked of the engine and never guessed from a version.

use super::{Engine, Kind};
use crate::problem::{Id, refuse};
use crate::runner::{Step, tail};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How the engine keeps images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageStore {
    /// containerd's: holds indexes, several platforms and attestations.
    Containerd,
    /// docker's classic graph drivers: one platform for each tag, nothing beside the image.
    Classic,
}

/// What the engine and its builder can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Version of the daemon.
    pub version: String,
    /// How it keeps images.
    pub image_store: ImageStore,
    /// Whether `buildx bake` knows `--allow`; where it does, it wants it for the host's network.
    pub bake_allow: bool,
    /// Whether `buildx bake` heeds `network` of a target; old ones drop it without a word.
    pub bake_network: bool,
}

impl Capabilities {
    /// What a private engine can do once it is started: a dry run starts none to ask.
    pub fn of_private() -> Capabilities {
        Capabilities {
            version: String::new(),
            image_store: ImageStore::Containerd,
            bake_allow: true,
            bake_network: true,
        }
    }
}

/// Where an engine keeps its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// The data root.
    pub root: PathBuf,
    /// Bytes that are free on its file system.
    pub free: u64,
}

/// The part of `docker info --format '{{json .}}'` that is used.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Info {
    server_version: String,
    docker_root_dir: String,
    operating_system: String,
    driver_status: Option<Vec<Vec<String>>>,
}

/// Asks the engine.
pub fn ask(engine: &Engine) -> Result<Capabilities> {
    let info = info(engine)?;
    // The words of a builder that is broken are no answer; the build itself will say what is wrong with it.
    let bake = engine.docker("what bake can do", ["buildx", "bake", "--help"]).output()?.stdout;
    Ok(Capabilities {
        version: info.server_version.clone(),
        image_store: info.image_store(),
        bake_allow: bake.contains("--allow"),
        bake_network: keeps_network(engine)?,
    })
}

/// Has a bake file read and printed, and looks whether its network is still there.
fn keeps_network(engine: &Engine) -> Result<bool> {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
    file.write_all(br#"{"target":{"probe":{"network":"host"}}}"#)?;
    let path = file.path().display().to_string();
    let args = ["buildx", "bake", "--print", "--file", &path, "probe"];
    let out = engine.docker("what bake keeps of a file", args).output()?;
    Ok(out.stdout.contains("\"network\""))
}

/// The data root and its free bytes, where it is on this machine.
pub fn disk(engine: &Engine) -> Result<Option<Disk>> {
    let info = info(engine)?;
    let root = PathBuf::from(&info.docker_root_dir);
    // Docker Desktop keeps its data in a machine of its own, behind a local socket.
    if !is_local(engine) || info.operating_system == "Docker Desktop" || !root.is_dir() {
        return Ok(None);
    }
    let free = free_bytes(&root)?;
    Ok(Some(Disk { root, free }))
}

fn is_local(engine: &Engine) -> bool {
    let args = ["context", "inspect", "--format", "{{.Endpoints.docker.Host}}"];
    let out = engine.docker("where the engine is", args).output();
    engine.kind() == Kind::Private || out.is_ok_and(|out| out.stdout.starts_with("unix://"))
}

/// Bytes that an unprivileged user can still write on the file system of a path.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let path = path.display().to_string();
    let step = Step::new("free disk space", ["df", "--output=avail", "--block-size=1", &path]);
    let text = step.env("LC_ALL", "C").read()?;
    let free = text.lines().nth(1).and_then(|line| line.trim().parse().ok());
    match free {
        Some(free) => Ok(free),
        None => refuse(Id::Disk, path, "`df` does not tell its free space", "name a folder on a local disk"),
    }
}

fn info(engine: &Engine) -> Result<Info> {
    let step = engine.docker("what the engine is", ["info", "--format", "{{json .}}"]);
    let out = step.output()?;
    let info: Info = serde_json::from_str(out.stdout.trim()).unwrap_or_default();
    if info.server_version.is_empty() {
        return refuse(
            Id::Engine,
            "docker info",
            format!("the engine does not answer: {}", tail(out.stderr.trim(), 3)),
            "run `cargo xtask engine status`, then the same command again",
        );
    }
    Ok(info)
}

impl Info {
    fn image_store(&self) -> ImageStore {
        let snapshotter = |pair: &Vec<String>| {
            pair.first().is_some_and(|k| k == "driver-type")
                && pair.get(1).is_some_and(|v| v.starts_with("io.containerd.snapshotter"))
        };
        match self.driver_status.iter().flatten().any(snapshotter) {
            true => ImageStore::Containerd,
            false => ImageStore::Classic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_store_is_read_from_the_drivers_status() {
        let store = |json: &str| serde_json::from_str::<Info>(json).unwrap().image_store();
        let containerd =
            r#"{"Driver":"overlayfs","DriverStatus":[["driver-type","io.containerd.snapshotter.v1"]]}"#;
        let classic = r#"{"Driver":"overlay2","DriverStatus":[["Backing Filesystem","extfs"],["Supports d_type","true"]]}"#;
        assert_eq!(store(containerd), ImageStore::Containerd);
        assert_eq!(store(classic), ImageStore::Classic);
        assert_eq!(store(r#"{"DriverStatus":null}"#), ImageStore::Classic);
    }

    #[test]
    fn free_space_is_a_number() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
    }
}
