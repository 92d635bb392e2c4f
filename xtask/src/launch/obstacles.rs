//! What would make a start fail, each told before anything is started.

use super::Starter;
use crate::problem::{Id, Problem, all_or_nothing};
use crate::recipe::{Gpus, Recipe, Run, User, secret_option};
use anyhow::Result;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What of this machine decides.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Who started this program.
    pub caller: User,
    /// Whether a driver has made devices for GPUs.
    pub has_gpu: bool,
}

impl Host {
    /// Looks.
    pub fn look() -> Host {
        // A process owns its own folder there.
        let own = std::fs::metadata("/proc/self").map(|it| User { uid: it.uid(), gid: it.gid() });
        // Linux, and Windows' subsystem for Linux.
        let has_gpu = ["/dev/nvidiactl", "/dev/dxg"].iter().any(|path| Path::new(path).exists());
        Host { caller: own.unwrap_or(User { uid: u32::MAX, gid: u32::MAX }), has_gpu }
    }
}

/// Folders and files that the container is to see.
fn paths(recipe: &Recipe, run: &Run, host: Host) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut look = |option: &str, path: &str, folder: bool| match std::fs::metadata(path) {
        Ok(it) if it.is_dir() == folder => Some(it),
        found => {
            let what = match found {
                Ok(_) if folder => format!("{path} is not a folder"),
                Ok(_) => format!("{path} is not a file"),
                Err(error) => format!("{path}: {error}"),
            };
            let cure =
                if folder { format!("mkdir -p {path}") } else { format!("give {option} an existing file") };
            problems.push(Problem::new(Id::Path, option, what, cure));
            None
        }
    };
    let work = run.work.as_deref().and_then(|path| Some((path, look("--work", path, true)?)));
    if let Some(path) = &run.datasets {
        look("--datasets", path, true);
    }
    let files = recipe.secrets.iter().filter_map(|it| Some((it, it.file.as_deref()?)));
    let files: Vec<_> = files
        .filter_map(|(it, path)| Some((it, path, look(secret_option(&it.service), path, false)?)))
        .collect();
    let user = recipe.user;
    for (secret, path, it) in files {
        let option = secret_option(&secret.service);
        if let Some((what, cure)) = (secret.service == "ssh").then(|| no_public_key(path)).flatten() {
            problems.push(Problem::new(Id::Path, option, what, cure));
        } else if !may(&it, user, 0o4) {
            let what = format!(
                "{path} belongs to uid {} and the container runs as uid {}, which cannot read it",
                it.uid(),
                user.uid
            );
            let cure = format!("give `--user {}`, or a copy that it can read", it.uid());
            problems.push(Problem::new(Id::Path, option, what, cure));
        }
    }
    if let Some((path, it)) = work {
        let by_caller = user.uid == host.caller.uid && tempfile::tempfile_in(path).is_ok();
        if !may(&it, user, 0o3) && !by_caller {
            let what = format!(
                "{path} belongs to uid {} and the container runs as uid {}, which cannot write there",
                it.uid(),
                user.uid
            );
            problems.push(Problem::new(
                Id::WorkdirNotWritable,
                "--work",
                what,
                unwritable_cure(path, &it, user),
            ));
        }
    }
    problems
}

/// What is wrong with a file of keys that may log in, and the way out: above all, that it is the half to keep.
fn no_public_key(path: &str) -> Option<(String, String)> {
    let text = std::fs::read_to_string(path).ok()?;
    if text.contains("PRIVATE KEY-----") {
        let cure = format!("give its public half, {path}.pub; the private one stays with you");
        return Some((format!("{path} is a private key"), cure));
    }
    // Every kind of key begins so in base64, whatever options stand before it.
    let has_key = text.split_whitespace().any(|word| word.starts_with("AAAA"));
    let cure = "give a file with one public key per line, such as ~/.ssh/id_ed25519.pub";
    (!has_key).then(|| (format!("{path} holds no public key"), cure.to_owned()))
}

fn unwritable_cure(path: &str, it: &Metadata, user: User) -> String {
    match it.uid() {
        0 => format!("name another folder with --work, or chown {}:{} {path}", user.uid, user.gid),
        uid => format!("add `--user {uid}:{}`, or name another folder with --work", it.gid()),
    }
}

/// Whether the mode of a file lets a user do something: 4 read, 2 write, 1 go through. Everybody is in group 0 too.
fn may(it: &Metadata, user: User, bits: u32) -> bool {
    let mode = match (it.uid() == user.uid, [user.gid, 0].contains(&it.gid())) {
        _ if user.uid == 0 => 0o7,
        (true, _) => it.mode() >> 6,
        (_, true) => it.mode() >> 3,
        _ => it.mode(),
    };
    mode & bits == bits
}

/// Tells why a machine has no usable GPU, where somebody wants to know.
pub type Why<'a> = dyn Fn() -> Result<String> + 'a;

/// What of this machine stands in the way: paths, GPUs that are not there, ports that somebody else has.
///
/// Without `why` it is only printed what would be started, perhaps on another machine: paths alone are looked at.
///
/// Errors: `E_PATH`, `E_WORKDIR_NOT_WRITABLE`, `E_GPU_NOT_ATTACHED`, `E_PORT_TAKEN`, all at once.
pub fn on_the_host(recipe: &Recipe, run: &Run, host: Host, why: Option<&Why>) -> Result<()> {
    let mut problems = paths(recipe, run, host);
    if let Some(why) = why {
        problems.extend(gpus(recipe, host, why)?);
        problems.extend(ports(recipe));
    }
    all_or_nothing(problems)
}

fn gpus(recipe: &Recipe, host: Host, why: &Why) -> Result<Option<Problem>> {
    if recipe.gpus == Gpus::None || host.has_gpu {
        return Ok(None);
    }
    let cure = "add `--gpus none` to go without; `cargo xtask doctor` tells what to do";
    Ok(Some(Problem::new(Id::GpuNotAttached, "--gpus", why()?, cure)))
}

/// Whoever can listen there now is the only one who could.
fn ports(recipe: &Recipe) -> Vec<Problem> {
    let taken = recipe.listening.iter().filter_map(|it| {
        let error = TcpListener::bind((recipe.address, it.host_port)).err()?;
        // What this user may not do, the engine may.
        if error.kind() == ErrorKind::PermissionDenied {
            return None;
        }
        let what = format!("{}:{}: {error}", recipe.address, it.host_port);
        let other = it.host_port.checked_add(1).unwrap_or(it.port);
        let cure = format!("take another: `--port {}={other}`", it.service);
        Some(Problem::new(Id::PortTaken, it.service.clone(), what, cure))
    });
    taken.collect()
}

/// What the engine has already, or has not.
///
/// Errors: `E_NAME_TAKEN`; `E_NO_IMAGE`, unless it comes from a registry.
pub fn in_the_engine(recipe: &Recipe, starter: &Starter, from_registry: bool) -> Result<()> {
    let there = |kind: &str, name: &str| -> Result<bool> {
        let step = starter.step("what is there", [kind, "inspect", "--format", "{{.Id}}", name]);
        Ok(step.output()?.status.success())
    };
    let mut problems = Vec::new();
    if there("container", &recipe.name)? {
        let what = "there already is a container of this name";
        let cure = format!(
            "give another with --name, or remove it: {}",
            starter.step("", ["rm", "--force", &recipe.name]).to_line()
        );
        problems.push(Problem::new(Id::NameTaken, &recipe.name, what, cure));
    }
    if !from_registry && !there("image", &recipe.image)? {
        let what = "this engine has no such image";
        let cure = format!("cargo xtask build --variant {}", recipe.variant);
        problems.push(Problem::new(Id::NoImage, &recipe.image, what, cure));
    }
    all_or_nothing(problems)
}
