//! The engine and the host's own driver.

use crate::doctor::facts::{Gpu, Kind, Smi, State};
use crate::doctor::{Case, Check, Finding, Verdict, cure};

pub fn engine(case: &Case) -> Check {
    let (engine, system) = (&case.facts.engine, &case.facts.system);
    let name = cure::name(engine);
    let bad = |verdict, cause: String, lines| {
        let evidence = [("engine", name.as_str()), ("said", engine.said.as_str())];
        Check::bad("engine", Finding::new(verdict, cause, &evidence, lines))
    };
    match engine.state {
        State::Missing => bad(
            Verdict::EngineMissing,
            "neither docker nor podman is on PATH".to_owned(),
            cure::install_engine(system),
        ),
        State::Silent => bad(
            Verdict::EngineMissing,
            format!("{name} is installed and does not answer: {}", engine.said),
            cure::start(engine, system),
        ),
        State::Denied => bad(
            Verdict::EngineNoPermission,
            format!("{name} runs and does not let this user in: {}", engine.said),
            cure::permission(engine),
        ),
        // On Windows it runs on WSL's kernel, which has the GPU.
        State::Answers if engine.kind == Kind::Desktop && engine.kernel.contains("linuxkit") => bad(
            Verdict::DockerDesktopNoGpu,
            format!("{name} answers, whose virtual machine (kernel {}) has no GPU", engine.kernel),
            cure::desktop(),
        ),
        State::Answers => Check::good("engine", format!("{name} answers")),
    }
}

pub fn driver(case: &Case) -> Check {
    let driver = &case.facts.driver;
    if let Smi::Gpus(gpus) = &driver.smi {
        let names: Vec<String> = gpus.iter().map(named).collect();
        let cuda = driver.cuda.as_ref().map(|cuda| format!(" (CUDA {cuda})")).unwrap_or_default();
        let version = driver.version().unwrap_or_default();
        return Check::good("driver", format!("{version}{cuda}: {}", names.join(", ")));
    }
    Check::bad("driver", broken(case))
}

/// `GPU 0 NVIDIA L4 (8.9)`
pub(super) fn named(gpu: &Gpu) -> String {
    let capability = gpu.capability.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    format!("GPU {} {}{capability}", gpu.index, gpu.name)
}

/// Why the driver does not work.
fn broken(case: &Case) -> Finding {
    let (driver, system) = (&case.facts.driver, &case.facts.system);
    let module = driver.module.as_deref();
    let shown = module.unwrap_or("none");
    let cards = driver.cards.map_or("unknown".to_owned(), |cards| cards.to_string());
    let said = match &driver.smi {
        Smi::Failed(said) => said.as_str(),
        Smi::NoDevices => "No devices were found",
        _ => "",
    };
    if let Smi::Mismatch(library) = &driver.smi {
        return mismatch(
            shown,
            library.as_deref().or(driver.libraries.as_deref()).unwrap_or("another version"),
        );
    }
    let evidence = [("kernel_module", shown), ("cards", cards.as_str()), ("said", said)];
    let missing = |cause: String, lines| Finding::new(Verdict::DriverMissing, cause, &evidence, lines);
    if system.wsl {
        let cause = match driver.dxg {
            true => "WSL has a GPU (/dev/dxg), and the Windows driver's nvidia-smi does not work here",
            false => "Windows passes no GPU into WSL: /dev/dxg is missing",
        };
        let line = "install NVIDIA's driver in Windows, then `wsl --update` and `wsl --shutdown`; install none \
                    inside of WSL";
        return missing(cause.to_owned(), vec![line.to_owned()]);
    }
    match (module, &driver.smi, driver.cards) {
        (None, Smi::Missing | Smi::Failed(_), Some(0)) => missing(
            "this machine has no NVIDIA GPU (0 on its PCI bus)".to_owned(),
            vec!["use another machine; the images run without a GPU too, on the CPU".to_owned()],
        ),
        (None, Smi::Missing, _) if driver.libraries.is_none() => missing(
            format!("no driver is installed; NVIDIA GPUs on the PCI bus: {cards}"),
            cure::install_driver(system),
        ),
        (None, ..) => {
            let libraries = driver.libraries.as_deref().unwrap_or("unknown version");
            let cause = format!("the driver is installed ({libraries}) and its kernel module is not loaded");
            missing(cause, cure::load_driver(driver))
        }
        (Some(module), Smi::Missing, _) => missing(
            format!("the kernel module {module} is loaded, and the driver's nvidia-smi is not installed"),
            cure::load_driver(driver),
        ),
        (Some(module), ..) => missing(
            format!("the kernel module {module} is loaded and finds no usable device: {said}"),
            cure::load_driver(driver),
        ),
    }
}

fn mismatch(module: &str, libraries: &str) -> Finding {
    Finding::new(
        Verdict::DriverUpgradedNeedsReboot,
        format!("the driver was upgraded to {libraries}, and the kernel still runs the module {module}"),
        &[("kernel_module", module), ("libraries", libraries)],
        vec![
            "reboot".to_owned(),
            "or, with nothing on the GPU: `sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo nvidia-smi`"
                .to_owned(),
        ],
    )
}

pub fn uvm(case: &Case) -> Check {
    let driver = &case.facts.driver;
    if case.facts.system.wsl {
        return Check::skipped("unified memory", "WSL has /dev/dxg in its place");
    }
    if driver.uvm {
        return Check::good("unified memory", "/dev/nvidia-uvm is there");
    }
    let control = if driver.control { "present" } else { "missing" };
    let evidence = [("/dev/nvidiactl", control), ("/dev/nvidia-uvm", "missing")];
    let cause = format!("/dev/nvidia-uvm is missing (/dev/nvidiactl is {control}): CUDA cannot start");
    Check::bad("unified memory", Finding::new(Verdict::UvmMissing, cause, &evidence, cure::uvm()))
}

/// A GPU that is to be split and is not gives CUDA no device.
pub fn mig(case: &Case) -> Check {
    let split: Vec<&Gpu> = case.facts.driver.gpus().iter().filter(|gpu| gpu.mig).collect();
    if let Some(gpu) = split.iter().find(|gpu| gpu.slices.is_empty()) {
        let name = named(gpu);
        let evidence = [("gpu", name.as_str()), ("mode", "Enabled"), ("slices", "0")];
        let lines = vec![
            format!(
                "make slices: `sudo nvidia-smi mig -i {} -lgip` lists what there may be, `-cgi ID -C` makes one",
                gpu.index
            ),
            format!("or turn MIG off: `sudo nvidia-smi -i {} -mig 0`", gpu.index),
        ];
        let cause = format!("MIG is on for {name}, and it has 0 slices: CUDA finds no device");
        return Check::bad("MIG", Finding::new(Verdict::MigWithoutInstance, cause, &evidence, lines));
    }
    match split.as_slice() {
        [] => Check::good("MIG", "no GPU is split"),
        _ => {
            let slices: Vec<String> =
                split.iter().map(|gpu| format!("GPU {}: {}", gpu.index, gpu.slices.join(", "))).collect();
            Check::good("MIG", slices.join("; "))
        }
    }
}
