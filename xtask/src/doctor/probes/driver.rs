//! The driver: its kernel module, its libraries, its devices, and what `nvidia-smi` makes of them.

use crate::doctor::facts::{Driver, Gpu, Smi};
use crate::doctor::source::{Ran, Source};
use crate::runner::Step;

/// Where the driver's libraries are, by distribution and machine.
const LIBRARIES: &[&str] =
    &["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// Where WSL puts the programs of the Windows driver; not everybody's PATH has it.
const WSL_SMI: &str = "/usr/lib/wsl/lib/nvidia-smi";

pub fn probe(source: &Source, wsl: bool) -> Driver {
    let program = if wsl && source.exists(WSL_SMI) { WSL_SMI } else { "nvidia-smi" };
    Driver {
        cards: cards(source),
        module: source.text("/proc/driver/nvidia/version").and_then(|text| module(&text)),
        libraries: libraries(source),
        smi: smi(source, program),
        cuda: source
            .run("nvidia-smi", Step::new("which CUDA the driver runs", [program]))
            .and_then(|ran| cuda(&ran.out)),
        control: source.exists("/dev/nvidiactl"),
        uvm: source.exists("/dev/nvidia-uvm"),
        dxg: source.exists("/dev/dxg"),
    }
}

/// Display and 3D controllers (class 03) of NVIDIA (vendor 10de).
fn cards(source: &Source) -> Option<usize> {
    const BUS: &str = "/sys/bus/pci/devices";
    let attribute = |device: &str, name: &str| source.text(&format!("{BUS}/{device}/{name}"));
    let is_card = |device: &&String| {
        attribute(device, "vendor").is_some_and(|vendor| vendor.trim() == "0x10de")
            && attribute(device, "class").is_some_and(|class| class.starts_with("0x03"))
    };
    Some(source.list(BUS)?.iter().filter(is_card).count())
}

/// The version in the module's own line, which names the machine before it where the module is the open one:
/// `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build …`.
fn module(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_version = |word: &&str| word.contains('.') && crate::compat::Version::parse(word).is_some();
    line.split_whitespace().find(is_version).map(str::to_owned)
}

/// The version in the name of the driver's library: `libcuda.so.550.90.07`.
fn libraries(source: &Source) -> Option<String> {
    LIBRARIES.iter().find_map(|folder| {
        let names = source.list(folder)?;
        let mut versions =
            names.iter().filter_map(|name| name.strip_prefix("libcuda.so.")).filter(|it| it.contains('.'));
        versions.next_back().map(str::to_owned)
    })
}

/// The newest CUDA, in the banner of all that `nvidia-smi` shows. Since 610 it says `CUDA UMD Version`.
fn cuda(banner: &str) -> Option<String> {
    let rest = ["CUDA Version: ", "CUDA UMD Version: "].iter().find_map(|it| banner.split_once(it))?.1;
    rest.split_whitespace().next().filter(|version| version.contains('.')).map(str::to_owned)
}

fn smi(source: &Source, program: &str) -> Smi {
    let ask = |probe: &str, fields: &str| {
        let fields = format!("--query-gpu={fields}");
        source.run(probe, Step::new("which GPUs", [program, &fields, "--format=csv,noheader"]))
    };
    let Some(mut ran) = ask("gpus", "index,name,driver_version,compute_cap,mig.mode.current") else {
        return Smi::Missing;
    };
    // Drivers before 495 do not tell the compute capability, and refuse the question as a whole.
    if ran.out.contains("is not a valid field to query") {
        ran = ask("gpus-old", "index,name,driver_version").unwrap_or(ran);
    }
    let mut smi = answer(&ran);
    if let Smi::Gpus(gpus) = &mut smi {
        let list = source.run("gpu-list", Step::new("which slices", [program, "-L"]));
        slices(gpus, &list.map(|ran| ran.out).unwrap_or_default());
    }
    smi
}

/// What `nvidia-smi` said, sorted into what it can mean. It writes its errors to either stream.
pub(super) fn answer(ran: &Ran) -> Smi {
    let said = format!("{}\n{}", ran.out, ran.err);
    let line = |part: &str| said.lines().find_map(|line| line.trim().strip_prefix(part));
    if said.contains("Driver/library version mismatch") {
        return Smi::Mismatch(line("NVML library version:").map(|version| version.trim().to_owned()));
    }
    if said.contains("No devices were found") {
        return Smi::NoDevices;
    }
    let gpus: Vec<Gpu> = ran.out.lines().filter_map(gpu).collect();
    match ran.code == 0 && !gpus.is_empty() {
        true => Smi::Gpus(gpus),
        false => {
            Smi::Failed(said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned())
        }
    }
}

/// One line: `0, NVIDIA A100-SXM4-80GB, 535.216.01, 8.0, Enabled`.
fn gpu(line: &str) -> Option<Gpu> {
    let mut cells = line.split(", ").map(str::trim);
    let (index, name, driver) = (cells.next()?, cells.next()?, cells.next()?);
    index.parse::<u32>().ok()?;
    let capability = cells.next().filter(|cell| cell.contains('.')).map(str::to_owned);
    let mig = cells.next() == Some("Enabled");
    let (index, name, driver) = (index.to_owned(), name.to_owned(), driver.to_owned());
    Some(Gpu { index, name, driver, capability, mig, slices: Vec::new() })
}

/// `nvidia-smi -L` names the slices below their GPU: `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`.
fn slices(gpus: &mut [Gpu], list: &str) {
    let mut current = None;
    for line in list.lines() {
        if let Some(rest) = line.strip_prefix("GPU ") {
            let index = rest.split(':').next().unwrap_or_default();
            current = gpus.iter().position(|gpu| gpu.index == index);
        } else if let (Some(rest), Some(at)) = (line.trim().strip_prefix("MIG "), current) {
            let profile = rest.split_whitespace().next().unwrap_or_default();
            let uuid = rest.split("UUID: ").nth(1).unwrap_or_default().trim_end_matches(')');
            gpus[at].slices.push(format!("{profile} {uuid}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_tells_its_version_in_both_forms() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (b@h)  Thu Oct 10 12:15:00 UTC 2024\nGCC version:  gcc version 13.3.0";
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n";
        let arm = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build";
        for (text, version) in [(open, "565.57.01"), (closed, "550.90.07"), (arm, "580.95.05")] {
            assert_eq!(module(text).as_deref(), Some(version));
        }
        assert_eq!(module("GCC version:  gcc version 13.3.0"), None);
    }

    #[test]
    fn the_banner_tells_cuda_under_both_names() {
        let old = "| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4     |";
        let new = "| NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3     |";
        assert_eq!((cuda(old).as_deref(), cuda(new).as_deref()), (Some("12.4"), Some("13.3")));
        assert_eq!(cuda("| CUDA Version: N/A |"), None);
    }

    #[test]
    fn what_nvidia_smi_says_is_told_apart() {
        let ran = |code, out: &str| Ran { code, out: out.to_owned(), err: String::new() };
        let mismatch =
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n";
        assert_eq!(answer(&ran(18, mismatch)), Smi::Mismatch(Some("570.124".to_owned())));
        assert_eq!(answer(&ran(6, "No devices were found\n")), Smi::NoDevices);
        assert!(matches!(answer(&ran(255, "Failed to initialize NVML: Unknown Error")), Smi::Failed(said)
            if said.contains("Unknown Error")));
        assert!(matches!(answer(&ran(0, "0, NVIDIA L4, 550.90.07, 8.9, [N/A]\n")), Smi::Gpus(gpus)
            if gpus[0].capability.as_deref() == Some("8.9") && !gpus[0].mig));
    }
}
