//! The probes: each looks at one thing and says what it found. None of them judges.

mod cdi;
mod driver;
mod engine;
mod image;

use super::facts::{Facts, State, System, Toolkit};
use super::source::Source;
use crate::apt::OsRelease;
use crate::catalog::Platform;
use crate::problem::{Problem, Refusal};
use crate::runner::Step;
use anyhow::Result;

pub use image::Subject;

/// Looks at everything; `subject` is what the host is judged for.
///
/// Errors: `E_UNKNOWN_NAME` for a container or an image that is nowhere.
pub fn look(source: &Source, subject: Subject, label: &dyn Fn(&str) -> String) -> Result<Facts> {
    let system = system(source);
    let engine = engine::probe(source);
    let driver = driver::probe(source, system.wsl);
    let (image, container) = match (engine.state, source.is_dry()) {
        (State::Answers, _) | (_, true) => image::probe(source, &engine, subject, label).map_err(unknown)?,
        _ => (subject.plan, None),
    };
    Ok(Facts {
        toolkit: toolkit(source),
        cdi: cdi::probe(source, &engine.cdi_folders),
        shm: bytes(source, "shm", "how much /dev/shm holds", "size", "/dev/shm"),
        free: match source.exists(&engine.root) && !engine.root.is_empty() {
            true => bytes(source, "disk", "how much room the engine has", "avail", &engine.root),
            false => None,
        },
        system,
        driver,
        engine,
        image,
        container,
    })
}

fn unknown(problem: Problem) -> anyhow::Error {
    Refusal::from(problem).into()
}

fn system(source: &Source) -> System {
    let machine = source.run("machine", Step::new("what machine this is", ["uname", "-m"]));
    let machine = machine.map(|ran| ran.out.trim().to_owned()).unwrap_or_default();
    let kernel = source.text("/proc/sys/kernel/osrelease").unwrap_or_default().to_lowercase();
    System {
        os: OsRelease::parse(&source.text("/etc/os-release").unwrap_or_default()),
        wsl: kernel.contains("microsoft"),
        platform: Platform::ALL.iter().copied().find(|platform| platform.machine() == machine),
    }
}

/// `NVIDIA Container Toolkit CLI version 1.17.8`, and the one setting that engines without root's rights need.
fn toolkit(source: &Source) -> Toolkit {
    let ran = source.run("nvidia-ctk", Step::new("which toolkit", ["nvidia-ctk", "--version"]));
    let version = ran.map(|ran| match ran.out.split("version ").nth(1) {
        Some(rest) => rest.split_whitespace().next().unwrap_or_default().to_owned(),
        None => "of unknown version".to_owned(),
    });
    let config = source.text("/etc/nvidia-container-runtime/config.toml").unwrap_or_default();
    let config: toml::Table = config.parse().unwrap_or_default();
    let no_cgroups = config.get("nvidia-container-cli").and_then(|cli| cli.get("no-cgroups"));
    Toolkit { version, no_cgroups: no_cgroups.and_then(toml::Value::as_bool).unwrap_or(false) }
}

/// A column of `df` for a path, in bytes.
fn bytes(source: &Source, probe: &str, reason: &str, column: &str, path: &str) -> Option<u64> {
    let column = format!("--output={column}");
    let ran = source.run(probe, Step::new(reason, ["df", &column, "--block-size=1", path]))?;
    ran.out.lines().nth(1)?.trim().parse().ok()
}
