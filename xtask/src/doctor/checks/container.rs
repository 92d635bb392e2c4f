//! A container that runs, and the room that containers have.

use crate::doctor::facts::Smi;
use crate::doctor::{Case, Check, Finding, Verdict, cure};
use crate::out::gigabytes;

/// What DataLoader workers and NCCL want at least; the entry point warns of less.
const SHM: u64 = 1_000_000_000;

pub fn gpu(case: &Case) -> Check {
    const NAME: &str = "container";
    let Some(container) = &case.facts.container else {
        return Check::skipped(NAME, "none was named");
    };
    let (engine, name) = (&case.facts.engine, container.name.as_str());
    let host = case.facts.driver.gpus().len().to_string();
    let bad = |verdict, cause: String, said: &str, lines| {
        let evidence = [("container", name), ("said", said), ("gpus_of_the_host", host.as_str())];
        Check::bad(NAME, Finding::new(verdict, cause, &evidence, lines))
    };
    match &container.smi {
        None => Check::skipped(
            NAME,
            format!("`{name}` has no nvidia-smi: the capability utility, or a GPU, is missing"),
        ),
        Some(Smi::Gpus(gpus)) => Check::good(NAME, format!("`{name}` sees {} of {host} GPUs", gpus.len())),
        Some(_) if case.facts.driver.gpus().is_empty() => Check::skipped(NAME, "the driver does not work"),
        Some(Smi::Failed(said)) if said.contains("Unknown Error") => {
            let cgroups = &engine.cgroup_driver;
            let cause = format!(
                "`{name}` says `{said}`, while the host's {host} GPUs work: its cgroup ({cgroups}) was reloaded without them"
            );
            bad(Verdict::GpuLostCgroup, cause, said, cure::lost(engine, name))
        }
        Some(Smi::Mismatch(library)) => {
            let library = library.as_deref().unwrap_or("another version");
            let cause = format!(
                "`{name}` holds the libraries of driver {library}: it was started before the driver was upgraded"
            );
            let line =
                format!("make the container anew; `{} restart` keeps the old libraries", engine.program);
            bad(Verdict::DriverUpgradedNeedsReboot, cause, library, vec![line])
        }
        Some(other) => {
            let said = match other {
                Smi::Failed(said) => said,
                _ => "No devices were found",
            };
            let line = format!("make the container anew with {}", cure::attach(engine));
            bad(
                Verdict::ToolkitNotConfigured,
                format!("no GPU is attached to `{name}`: {said}"),
                said,
                vec![line],
            )
        }
    }
}

pub fn shm(case: &Case) -> Check {
    const NAME: &str = "shared memory";
    let own = case.facts.container.as_ref().and_then(|it| Some((it.name.as_str(), it.shm?)));
    let Some((whose, bytes)) = own.or(case.facts.shm.map(|bytes| ("this host", bytes))) else {
        return Check::skipped(NAME, "its size is not known");
    };
    let size = format!("{} MB", bytes / 1_000_000);
    if bytes >= SHM {
        return Check::good(NAME, format!("/dev/shm of {whose} holds {size}"));
    }
    let line = match own {
        Some(_) => "make the container anew with `--shm-size 2g`, or with `--ipc host`",
        None => "start containers with `--shm-size 2g` and without `--ipc host`",
    };
    let cause = format!("/dev/shm of {whose} holds {size}; DataLoader workers and NCCL want 1000 MB");
    let evidence = [("size", size.as_str()), ("wanted", "1000 MB")];
    Check::bad(NAME, Finding::new(Verdict::ShmSmall, cause, &evidence, vec![line.to_owned()]))
}

/// Whether an image that is not there yet has room.
pub fn disk(case: &Case) -> Check {
    const NAME: &str = "disk";
    let (engine, free) = (&case.facts.engine, case.facts.free);
    let needed = case.facts.image.as_ref().filter(|image| !image.here).and_then(|image| image.bytes);
    match (free, needed) {
        (None, _) => Check::skipped(NAME, "where the engine keeps images is not on this machine"),
        (Some(free), None) => {
            Check::skipped(NAME, format!("{} are free below {}", gigabytes(free), engine.root))
        }
        (Some(free), Some(needed)) if free < needed => {
            let (free, needed) = (gigabytes(free), gigabytes(needed));
            let cause = format!("the image needs {needed} below {}, where {free} are free", engine.root);
            let evidence =
                [("free", free.as_str()), ("needed", needed.as_str()), ("path", engine.root.as_str())];
            let lines = vec![format!(
                "`{} system df` tells what takes the room, `{0} image prune` frees what has no name",
                engine.program
            )];
            Check::bad(NAME, Finding::new(Verdict::DiskLow, cause, &evidence, lines))
        }
        (Some(free), Some(needed)) => {
            Check::good(NAME, format!("{} are free, {} are needed", gigabytes(free), gigabytes(needed)))
        }
    }
}
