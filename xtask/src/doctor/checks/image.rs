//! The image against the host: its start condition, its GPU code, what it does to libcuda.

use super::host::named;
use crate::compat::{Sm, Version};
use crate::doctor::facts::{Gpu, Image, Kind};
use crate::doctor::requirement::{Host, brand, wanted_cuda};
use crate::doctor::{Case, Check, Finding, Verdict, cure};

/// The image in question; a case without one is not checked.
fn image<'a>(case: &'a Case) -> Option<&'a Image> {
    case.facts.image.as_ref()
}

pub fn requirement(case: &Case) -> Check {
    const NAME: &str = "start condition";
    let (Some(image), Some(driver)) = (image(case), case.facts.driver.version()) else {
        return Check::skipped(NAME, "nothing to compare");
    };
    if let Some(finding) = below_floor(case, image, driver) {
        return Check::bad(NAME, finding);
    }
    let disabled = image.env.get("NVIDIA_DISABLE_REQUIRE").is_some_and(|it| it == "1" || it == "true");
    let conditions = image.env.iter().filter(|(name, _)| name.starts_with("NVIDIA_REQUIRE_") && !disabled);
    let unmet = conditions.flat_map(|(_, condition)| {
        case.facts.driver.gpus().iter().filter_map(move |gpu| unmet(case, image, gpu, condition))
    });
    match (unmet.into_iter().next(), &image.driver_floor) {
        (Some(finding), _) => Check::bad(NAME, finding),
        (None, Some(floor)) => Check::good(NAME, format!("driver {driver} is at least {floor}")),
        (None, None) => Check::good(NAME, format!("driver {driver} meets it")),
    }
}

/// Our images state the lowest driver in a label.
fn below_floor(case: &Case, image: &Image, driver: &str) -> Option<Finding> {
    let floor = image.driver_floor.as_deref()?;
    let (have, wanted) = Version::parse(driver).zip(Version::parse(floor))?;
    if have >= wanted {
        return None;
    }
    let cuda = image.cuda.as_deref().unwrap_or("unknown");
    let cause = format!("`{}` (CUDA {cuda}) needs driver {floor}, the host's is {driver}", image.name);
    let evidence = [("driver", driver), ("needed_driver", floor), ("image_cuda", cuda)];
    let lines = vec![case.instead(), cure::upgrade_driver(&case.facts.system, floor)];
    Some(Finding::new(Verdict::DriverBelowImageRequirement, cause, &evidence, lines))
}

/// What conditions see of a GPU. Where the driver does not tell its CUDA, the table tells whether it has the wanted one.
fn seen<'a>(case: &Case, gpu: &'a Gpu, wanted: &str, needed: &str) -> Option<Host<'a>> {
    let driver = Version::parse(&gpu.driver)?;
    let told = case.facts.driver.cuda.as_deref().and_then(Version::parse);
    let has_it = Version::parse(needed).is_some_and(|needed| driver >= needed);
    let cuda = told.or_else(|| Version::parse(wanted).filter(|_| has_it));
    Some(Host { cuda, driver, brand: brand(&gpu.name), sm: gpu.capability.as_deref().and_then(Sm::parse) })
}

/// Why a condition does not hold on a GPU. What would hold on a data center's card is a matter of the card.
fn unmet(case: &Case, image: &Image, gpu: &Gpu, condition: &str) -> Option<Finding> {
    let wanted = wanted_cuda(condition).unwrap_or("unknown");
    let needed = case.compat.lowest_driver_of(wanted).unwrap_or("unknown");
    let (major, floor) = case.compat.floor_of_toolkit(wanted).unwrap_or(("unknown", "unknown"));
    let host = seen(case, gpu, wanted, needed)?;
    if host.meets(condition) {
        return None;
    }
    let own = case.facts.driver.cuda.as_deref().unwrap_or("unknown");
    let evidence = [
        ("gpu", gpu.name.as_str()),
        ("driver", gpu.driver.as_str()),
        ("driver_cuda", own),
        ("image_cuda", wanted),
        ("needed_driver", needed),
        ("floor_of_major", floor),
        ("condition", condition),
    ];
    let above_floor = Version::parse(floor).is_some_and(|floor| host.driver >= floor);
    let by_card = Host { brand: "tesla", ..host }.meets(condition);
    let (verdict, cause) = match by_card {
        true => (
            Verdict::ForwardCompatNotOnGeforce,
            format!(
                "`{}` wants CUDA {wanted}; driver {} has CUDA {own}, and forward compatibility is not offered on {}",
                image.name, gpu.driver, gpu.name
            ),
        ),
        false => (
            Verdict::DriverBelowImageRequirement,
            format!(
                "`{}` wants CUDA {wanted} (driver {needed}), and driver {} has CUDA {own}; the floor of CUDA {major} is {floor}",
                image.name, gpu.driver
            ),
        ),
    };
    let minor = above_floor.then(|| {
        "or start it with `--env NVIDIA_DISABLE_REQUIRE=1`: minor version compatibility runs what needs no newer driver"
            .to_owned()
    });
    let lines = [case.instead(), cure::upgrade_driver(&case.facts.system, needed)];
    Some(Finding::new(verdict, cause, &evidence, lines.into_iter().chain(minor).collect()))
}

pub fn architecture(case: &Case) -> Check {
    const NAME: &str = "GPU code";
    let Some(image) = image(case).filter(|image| !image.arch_list.is_empty()) else {
        return Check::skipped(NAME, "the image does not tell what it is compiled for");
    };
    let gpus = case.facts.driver.gpus();
    let all: Vec<(&Gpu, Sm, bool)> = gpus.iter().filter_map(|gpu| known(case, gpu)).collect();
    if let Some((gpu, sm, _)) = all.iter().find(|(_, sm, exact)| sm.runs(&image.arch_list, *exact).is_none())
    {
        return Check::bad(NAME, no_code(case, image, gpu, *sm));
    }
    let runs: Vec<String> = all
        .iter()
        .filter_map(|(gpu, sm, exact)| {
            Some(format!("GPU {} runs {}", gpu.index, sm.runs(&image.arch_list, *exact)?))
        })
        .collect();
    match runs.is_empty() {
        true => Check::skipped(NAME, "the GPU's compute capability is not known"),
        false => Check::good(NAME, runs.join(", ")),
    }
}

/// By the driver's word, or by the name, and whether the GPU runs only code for exactly this.
fn known<'a>(case: &Case, gpu: &'a Gpu) -> Option<(&'a Gpu, Sm, bool)> {
    let known = case.compat.gpu(&gpu.name).map(|(_, gpu)| gpu);
    let told = gpu.capability.as_deref().and_then(Sm::parse);
    Some((gpu, told.or(known.map(|gpu| gpu.sm))?, known.is_some_and(|gpu| gpu.tegra)))
}

fn no_code(case: &Case, image: &Image, gpu: &Gpu, sm: Sm) -> Finding {
    let newest = image.arch_list.iter().filter_map(|arch| Sm::of_arch(arch)).max();
    let too_new = newest.is_some_and(|newest| sm > newest);
    let (verdict, than) = match too_new {
        true => (Verdict::GpuTooNewForImage, "newer"),
        false => (Verdict::GpuTooOldForImage, "older"),
    };
    let (list, sm) = (image.arch_list.join(" "), sm.to_string());
    let cause = format!(
        "{} is {than} than what `{}` is compiled for: {list}",
        named(&Gpu { capability: Some(sm.clone()), ..gpu.clone() }),
        image.name
    );
    let evidence = [("gpu", gpu.name.as_str()), ("capability", &sm), ("arch_list", &list)];
    let mut lines = vec![case.instead()];
    let others = case.facts.driver.gpus().iter().filter(|other| other.index != gpu.index);
    let others: Vec<&str> = others.map(|other| other.index.as_str()).collect();
    if !others.is_empty() {
        lines.push(format!("or leave this GPU out: `--gpus '\"device={}\"'`", others.join(",")));
    }
    Finding::new(verdict, cause, &evidence, lines)
}

/// A folder of an older libcuda on the search path stands before the one that the driver brings.
pub fn shadow(case: &Case) -> Check {
    const NAME: &str = "libcuda";
    let Some(image) = image(case) else { return Check::skipped(NAME, "no image was named") };
    let path = image.env.get("LD_LIBRARY_PATH").map(String::as_str).unwrap_or_default();
    let is_compat = |folder: &&str| folder.trim_end_matches('/').ends_with("/compat");
    let Some(folder) = path.split(':').find(is_compat) else {
        return Check::good(NAME, "nothing stands before the driver's own");
    };
    let parse = |text: &Option<String>| text.as_deref().and_then(Version::parse);
    match parse(&case.facts.driver.cuda).zip(parse(&image.cuda)) {
        Some((own, cuda)) if cuda < own => {
            let (own, cuda) = (own.to_string(), cuda.to_string());
            let driver = case.facts.driver.version().unwrap_or_default();
            let rest: Vec<&str> = path.split(':').filter(|it| *it != folder).collect();
            let cause = format!(
                "{folder} on LD_LIBRARY_PATH has the libcuda of CUDA {cuda}, and driver {driver} has CUDA {own}"
            );
            let evidence = [
                ("folder", folder),
                ("image_cuda", cuda.as_str()),
                ("driver", driver),
                ("driver_cuda", own.as_str()),
            ];
            let line = format!("start it with `--env LD_LIBRARY_PATH={}`", rest.join(":"));
            Check::bad(NAME, Finding::new(Verdict::CompatLibcudaShadowsDriver, cause, &evidence, vec![line]))
        }
        Some(_) => Check::good(NAME, format!("{folder} is for drivers older than this image")),
        None => {
            Check::skipped(NAME, format!("{folder} is on LD_LIBRARY_PATH; which CUDA it has is not known"))
        }
    }
}

/// Without `compute` the toolkit mounts no libcuda. CDI knows no capabilities.
fn without_compute(image: &Image, asked: &[String]) -> Option<String> {
    let words = match asked.is_empty() {
        true => image.env.get("NVIDIA_DRIVER_CAPABILITIES")?.clone(),
        false => asked.join(","),
    };
    let has = |wanted: &str| words.split(',').any(|word| word.trim() == wanted);
    (!words.is_empty() && !has("compute") && !has("all")).then_some(words)
}

pub fn capability(case: &Case) -> Check {
    const NAME: &str = "capabilities";
    let Some(image) = image(case) else { return Check::skipped(NAME, "no image was named") };
    if case.facts.engine.kind == Kind::Podman {
        return Check::skipped(NAME, "CDI attaches all libraries");
    }
    let asked = case.facts.container.as_ref().map(|it| it.capabilities.as_slice()).unwrap_or_default();
    match without_compute(image, asked) {
        None => Check::good(NAME, "compute is among them"),
        Some(words) => {
            let cause =
                format!("the driver capabilities are `{words}`, without compute: no libcuda is mounted");
            let line = match asked.is_empty() {
                true => "start it with `--env NVIDIA_DRIVER_CAPABILITIES=compute,utility`",
                false => "ask with `--gpus all`, or add compute to the capabilities in `--gpus`",
            };
            let evidence = [("capabilities", words.as_str()), ("wanted", "compute")];
            let finding =
                Finding::new(Verdict::CapabilityComputeMissing, cause, &evidence, vec![line.to_owned()]);
            Check::bad(NAME, finding)
        }
    }
}
