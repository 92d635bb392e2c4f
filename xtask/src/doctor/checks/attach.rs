//! What stands between the engine and the GPU: the toolkit, the engine's settings, CDI specifications.

use crate::doctor::facts::{Kind, Spec, SpecContent};
use crate::doctor::{Case, Check, Finding, Verdict, cure};

pub fn toolkit(case: &Case) -> Check {
    const NAME: &str = "toolkit";
    let (engine, system) = (&case.facts.engine, &case.facts.system);
    let name = cure::name(engine);
    match (engine.kind, &case.facts.toolkit.version) {
        (Kind::Desktop | Kind::Snap, _) => Check::skipped(NAME, format!("{name} brings its own")),
        (Kind::Private, _) => {
            let lines =
                vec!["start Docker Engine or podman with NVIDIA's toolkit; builds need no GPU".to_owned()];
            let cause = "the private engine has no GPU support".to_owned();
            Check::bad(NAME, Finding::new(Verdict::ToolkitMissing, cause, &[("engine", &name)], lines))
        }
        (_, Some(version)) => Check::good(NAME, format!("NVIDIA Container Toolkit {version}")),
        (_, None) if knows_nvidia(case) => Check::good(NAME, format!("{name} has it, if not on PATH")),
        (_, None) => {
            let runtimes = engine.runtimes.join(", ");
            let evidence =
                [("engine", name.as_str()), ("runtimes", &runtimes), ("nvidia-ctk", "not on PATH")];
            let cause = match runtimes.is_empty() {
                true => format!("nvidia-ctk is not on PATH, and no CDI specification is there for {name}"),
                false => format!("nvidia-ctk is not on PATH, and {name} knows the runtimes {runtimes} only"),
            };
            let lines = cure::install_toolkit(system, engine);
            Check::bad(NAME, Finding::new(Verdict::ToolkitMissing, cause, &evidence, lines))
        }
    }
}

fn has_runtime(case: &Case) -> bool {
    case.facts.engine.runtimes.iter().any(|runtime| runtime == "nvidia")
}

fn knows_nvidia(case: &Case) -> bool {
    has_runtime(case) || !case.facts.engine.cdi_devices.is_empty() || !case.facts.cdi.is_empty()
}

/// Whether the toolkit is there at all; where it is not, nothing of it can be configured.
fn has_toolkit(case: &Case) -> bool {
    case.facts.toolkit.version.is_some() || knows_nvidia(case)
}

pub fn configuration(case: &Case) -> Check {
    const NAME: &str = "configuration";
    let engine = &case.facts.engine;
    let name = cure::name(engine);
    let runtimes = engine.runtimes.join(", ");
    let toolkit = case.facts.toolkit.version.as_deref().unwrap_or("unknown version");
    let evidence = [("engine", name.as_str()), ("runtimes", &runtimes), ("toolkit", toolkit)];
    match engine.kind {
        Kind::Desktop | Kind::Private => Check::skipped(NAME, format!("nothing to set in {name}")),
        Kind::Podman => Check::skipped(NAME, "podman attaches GPUs by CDI"),
        Kind::Snap if has_runtime(case) || !engine.cdi_devices.is_empty() => {
            Check::good(NAME, format!("{name} knows NVIDIA's runtime"))
        }
        Kind::Snap => {
            let cause =
                format!("{name} knows the runtimes {runtimes} only: it did not find the host's driver");
            Check::bad(NAME, Finding::new(Verdict::DockerFromSnap, cause, &evidence, cure::snap()))
        }
        Kind::Engine | Kind::Rootless if !has_toolkit(case) => Check::skipped(NAME, "there is no toolkit"),
        Kind::Engine | Kind::Rootless => match (has_runtime(case), engine.cdi_devices.is_empty()) {
            (true, _) => cgroups(case),
            (false, false) => Check::good(NAME, format!("{name} has GPUs by CDI")),
            (false, true) => {
                let cause =
                    format!("toolkit {toolkit} is installed, and {name} knows the runtimes {runtimes} only");
                let finding =
                    Finding::new(Verdict::ToolkitNotConfigured, cause, &evidence, cure::configure(engine));
                Check::bad(NAME, finding)
            }
        },
    }
}

/// The toolkit must leave cgroups alone without root's rights, and set them with these.
fn cgroups(case: &Case) -> Check {
    const NAME: &str = "configuration";
    let (engine, toolkit) = (&case.facts.engine, &case.facts.toolkit);
    if toolkit.no_cgroups == engine.rootless {
        return Check::good(NAME, format!("{} knows NVIDIA's runtime", cure::name(engine)));
    }
    let set = toolkit.no_cgroups.to_string();
    let cause =
        format!("the toolkit's setting no-cgroups is {set}, which is wrong for {}", cure::name(engine));
    let value = engine.rootless;
    let line = format!("`sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups={value} --in-place`");
    let wanted = value.to_string();
    let evidence = [("no-cgroups", set.as_str()), ("wanted", wanted.as_str())];
    Check::bad(NAME, Finding::new(Verdict::ToolkitNotConfigured, cause, &evidence, vec![line]))
}

pub fn cdi(case: &Case) -> Check {
    const NAME: &str = "CDI";
    let (engine, specs) = (&case.facts.engine, &case.facts.cdi);
    if !engine.uses_cdi() {
        let paths: Vec<&str> = specs.iter().map(|spec| spec.path.as_str()).collect();
        let what = if paths.is_empty() { "no specification".to_owned() } else { paths.join(", ") };
        return Check::skipped(NAME, format!("{what}; {} uses its runtime", cure::name(engine)));
    }
    if !has_toolkit(case) {
        return Check::skipped(NAME, "there is no toolkit");
    }
    let bad = specs.iter().find_map(|spec| unreadable(case, spec).or_else(|| stale(case, spec)));
    match bad {
        Some(finding) => Check::bad(NAME, finding),
        None if specs.is_empty() && engine.cdi_devices.is_empty() => {
            let folders = engine.cdi_folders.join(" and ");
            let toolkit = case.facts.toolkit.version.as_deref().unwrap_or("unknown version");
            let evidence = [("folders", folders.as_str()), ("toolkit", toolkit)];
            let cause =
                format!("no CDI specification of a GPU is in {folders}, where {} looks", cure::name(engine));
            Check::bad(NAME, Finding::new(Verdict::CdiSpecMissing, cause, &evidence, vec![cure::generate()]))
        }
        None => {
            let devices =
                specs.iter().filter_map(|spec| spec.content.as_ref().ok()).flat_map(|it| &it.devices);
            Check::good(NAME, devices.map(String::as_str).collect::<Vec<_>>().join(", "))
        }
    }
}

fn unreadable(case: &Case, spec: &Spec) -> Option<Finding> {
    let why = spec.content.as_ref().err()?;
    let lines = match why.to_lowercase().contains("permission denied") {
        true => vec![format!("`sudo chmod 644 {}`", spec.path)],
        false => cure::regenerate(&case.facts.engine, &spec.path),
    };
    let cause = format!("{} cannot be read: {why}", spec.path);
    let evidence = [("path", spec.path.as_str()), ("why", why.as_str())];
    Some(Finding::new(Verdict::CdiSpecUnreadable, cause, &evidence, lines))
}

/// A specification names the libraries of one driver, and the slices that there were when it was made.
fn stale(case: &Case, spec: &Spec) -> Option<Finding> {
    let content = spec.content.as_ref().ok()?;
    let driver = case.facts.driver.version()?;
    let lines = cure::regenerate(&case.facts.engine, &spec.path);
    let finding = |cause: String, evidence: &[(&'static str, &str)]| {
        Finding::new(Verdict::CdiSpecStale, format!("{} {cause}", spec.path), evidence, lines)
    };
    match &content.driver {
        Some(of) if of != driver => Some(finding(
            format!("is of driver {of}, and {driver} runs"),
            &[("specification", of), ("driver", driver), ("path", &spec.path)],
        )),
        _ if lacks_slices(case, content) => Some(finding(
            "has no MIG slice, and the GPU is split".to_owned(),
            &[("specification", "no slices"), ("path", &spec.path)],
        )),
        _ => None,
    }
}

/// `nvidia.com/gpu=0:1` is the second slice of the first GPU.
fn lacks_slices(case: &Case, content: &SpecContent) -> bool {
    let split = case.facts.driver.gpus().iter().any(|gpu| !gpu.slices.is_empty());
    let is_slice = |device: &String| {
        device.split('=').nth(1).is_some_and(|it| it.contains(':') || it.starts_with("MIG"))
    };
    split && !content.devices.iter().any(is_slice)
}
