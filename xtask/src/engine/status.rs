//! `engine status`, `down` and `prune`.

use super::private::Private;
use super::{Choice, Engine, ImageStore, Kind};
use crate::runner::Step;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What an engine is and what it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Whose engine it is.
    pub kind: Kind,
    /// Whether it answers.
    pub running: bool,
    /// Versions by package of a private engine, or of the daemon.
    pub versions: BTreeMap<String, String>,
    /// The socket of a private engine.
    pub socket: Option<PathBuf>,
    /// How a person speaks to a private engine: the beginning of a docker command.
    pub client: Option<String>,
    /// Where its data is, if that is on this machine.
    pub data_root: Option<PathBuf>,
    /// Bytes that the data takes, where they can be counted.
    pub data_bytes: Option<u64>,
    /// Bytes that are free beside the data.
    pub free_bytes: Option<u64>,
    /// How it keeps images, if it answers.
    pub image_store: Option<ImageStore>,
}

/// Tells about the engine that [`Engine::find`] chooses; starts nothing.
///
/// Errors: those of [`Engine::find`].
pub fn status(choice: Choice, state: &Path, suite: &str) -> Result<Status> {
    let engine = Engine::find(choice, state, suite)?;
    let running = engine.answers();
    let mut status = match &engine.private {
        Some(private) => of_private(private, running),
        None => Status::empty(Kind::Docker, running),
    };
    if running {
        let capabilities = engine.capabilities()?;
        status.image_store = Some(capabilities.image_store);
        if engine.private.is_none() {
            status.versions.insert("docker".to_owned(), capabilities.version.clone());
        }
        if let Some(disk) = engine.disk()? {
            status.data_root = Some(disk.root);
            status.free_bytes = Some(disk.free);
        }
    }
    Ok(status)
}

impl Status {
    fn empty(kind: Kind, running: bool) -> Status {
        Status {
            kind,
            running,
            versions: BTreeMap::new(),
            socket: None,
            client: None,
            data_root: None,
            data_bytes: None,
            free_bytes: None,
            image_store: None,
        }
    }
}

fn of_private(private: &Private, running: bool) -> Status {
    Status {
        versions: private.bundle().map(|b| b.versions).unwrap_or_default(),
        socket: Some(private.socket()),
        client: Some(format!(
            "{} --host unix://{}",
            private.state.join("tools/engine/usr/bin/docker").display(),
            private.socket().display()
        )),
        // Its blobs are beside the daemon's folder.
        data_bytes: Some(size(&private.home())),
        data_root: Some(private.data_root()),
        ..Status::empty(Kind::Private, running)
    }
}

/// Bytes on disk below a folder; none where it is not there. Mounted layers are not counted twice.
fn size(folder: &Path) -> u64 {
    let path = folder.display().to_string();
    let step =
        Step::new("size of the data", ["du", "--summarize", "--one-file-system", "--block-size=1", &path]);
    let text = step.output().map(|out| out.stdout).unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Stops the private engine of a state folder; the user's docker is left alone. Returns what was done, as a sentence.
///
/// Errors: `E_ENGINE` where something of it cannot be ended.
pub fn down(choice: Choice, state: &Path, suite: &str, say: &dyn Fn(&str)) -> Result<String> {
    let private = Private::new(state, suite)?;
    if choice == Choice::Docker || !private.left_something() {
        return Ok(not_ours(choice, "is running"));
    }
    private.down(say)?;
    Ok("the private engine is stopped; its images and caches are kept".to_owned())
}

/// Stops the private engine of a state folder and removes all it put on disk; the user's docker is left alone. Returns
/// what was done, as a sentence.
///
/// Errors: `E_ENGINE` where something of it cannot be ended or is still mounted.
pub fn prune(choice: Choice, state: &Path, suite: &str, say: &dyn Fn(&str)) -> Result<String> {
    let private = Private::new(state, suite)?;
    let nothing = !private.left_something() && !private.home().exists() && private.bundle().is_none();
    if choice == Choice::Docker || nothing {
        return Ok(not_ours(choice, "is here"));
    }
    private.prune(say)?;
    Ok("the private engine is gone, with its images and caches".to_owned())
}

fn not_ours(choice: Choice, is: &str) -> String {
    let own = "your own docker is not ours and is left alone";
    match choice {
        Choice::Docker => own.to_owned(),
        Choice::Auto | Choice::Private => format!("no private engine {is}; {own}"),
    }
}
