//! An answer in words, for a person: one line for each thing to know, the verdict first.

use super::combination::Combination;
use super::image::{ImageAnswer, Remark};
use super::machine::{DriverAnswer, Fit, GpuAnswer, Lack, Ours, Pair};
use super::{Answer, RunsHere, TorchAnswer, Verdict};

/// The answer as lines of text.
pub fn words(answer: &Answer) -> String {
    let it = &answer.combination;
    let mut lines = vec![format!("{}: {}", title(answer.verdict), subject(answer))];
    let mut say = |label: &str, text: String| lines.push(format!("  {label:<9} {text}"));
    if let Some(image) = &answer.image {
        image_words(image).into_iter().for_each(|text| say("image", text));
    }
    match it.verdict {
        Verdict::KnownGood => say("versions", together(it)),
        _ => it.why.iter().for_each(|why| say("versions", why.clone())),
    }
    it.instead.iter().for_each(|instead| say("instead", instead.clone()));
    if let Some(gpu) = &answer.gpu {
        say("GPU", gpu_words(gpu, answer));
    }
    say("driver", driver_words(&answer.driver));
    if let Some(runs) = instead(answer) {
        say("runs here", runs);
    }
    if !answer.ours.is_empty() {
        say("ours", ours_words(&answer.ours));
    }
    if let Some(torch) = &answer.torch {
        torch_words(torch).into_iter().for_each(|(label, text)| say(label, text));
    }
    lines.join("\n")
}

fn together(it: &Combination) -> String {
    match (&it.torch, it.torch_was_named) {
        (Some(torch), false) => format!("torch {torch} is the newest with this CUDA"),
        _ => "they go together".to_owned(),
    }
}

fn title(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::KnownGood => "known good",
        Verdict::Unknown => "not known to work",
        Verdict::KnownBad => "known bad",
    }
}

/// What the answer is about, in a line.
fn subject(answer: &Answer) -> String {
    let it = &answer.combination;
    let cuda = match (&it.cuda, &it.cuda_build) {
        (Some(cuda), Some(name)) if cuda != name => Some(format!("CUDA {cuda} ({name})")),
        (cuda, _) => cuda.as_ref().map(|cuda| format!("CUDA {cuda}")),
    };
    let parts = [
        answer.image.as_ref().map(|image| image.reference.clone()),
        it.torch.as_ref().map(|torch| format!("torch {torch}")),
        cuda,
        it.python.as_ref().map(|python| format!("Python {python}")),
        Some(answer.platform.to_string()),
        answer.gpu.as_ref().map(gpu_name),
        answer.driver.given.as_ref().map(|driver| format!("driver {driver}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn gpu_name(gpu: &GpuAnswer) -> String {
    match &gpu.name {
        Some(name) => format!("{name} (sm {})", gpu.sm),
        None => format!("sm {}", gpu.sm),
    }
}

fn gpu_words(gpu: &GpuAnswer, answer: &Answer) -> String {
    let (name, list) = (gpu_name(gpu), gpu.arch_list.join(" "));
    let compiled = format!("this build is compiled for {list}; no PTX is known to be in it");
    match gpu.fit {
        Fit::Runs => format!("{name} runs the {} of this build", gpu.runs.as_deref().unwrap_or_default()),
        Fit::TooOld => format!("{name} is too old: {compiled}"),
        Fit::TooNew => format!("{name} is too new: {compiled}"),
        Fit::NotAmong => format!("there is no code for {name}: {compiled}"),
        Fit::OtherPlatform => format!("machines of {} do not have a {name}", answer.platform),
        Fit::NotKnown => format!("{name}: nothing is known of what such a build is compiled for"),
    }
}

fn driver_words(driver: &DriverAnswer) -> String {
    let floor = match (&driver.cuda_major, &driver.floor) {
        (Some(major), Some(floor)) => format!("CUDA {major}.x needs ≥ {floor}"),
        _ => "the lowest for this CUDA is not known".to_owned(),
    };
    let toolkit = driver.toolkit.as_ref().map(|(toolkit, own)| format!("toolkit {toolkit} came with {own}"));
    let gpu = driver.gpu_floor.as_ref().map(|floor| format!("this GPU needs ≥ {floor}"));
    let given = driver.given.as_ref().map(|given| match driver.verdict {
        Some(Verdict::KnownGood) if driver.by_minor_version => {
            format!("{given} is enough (minor version compatibility)")
        }
        Some(Verdict::KnownGood) => format!("{given} is enough"),
        Some(Verdict::KnownBad) => format!("{given} is too old"),
        _ => format!("nobody knows about {given}"),
    });
    [Some(floor), gpu, toolkit, given].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What runs on the machine, where the combination does not.
fn instead(answer: &Answer) -> Option<String> {
    let gpu = answer.gpu.as_ref().map(|gpu| gpu.verdict);
    let verdicts = [Some(answer.combination.verdict), gpu, answer.driver.verdict];
    let is_good = verdicts.into_iter().flatten().all(|verdict| verdict == Verdict::KnownGood);
    let runs = answer.runs_here.as_ref().filter(|_| !is_good)?;
    let too_new = answer.gpu.as_ref().is_some_and(|gpu| gpu.fit == Fit::TooNew);
    let sides = runs_words(runs, too_new);
    if runs.newest.is_none() {
        return Some(sides);
    }
    let torch = answer.combination.torch.as_deref().unwrap_or_default();
    Some(match runs.same_torch.is_empty() {
        true => sides,
        false => format!("of torch {torch}: {}; {sides}", runs.same_torch.join(", ")),
    })
}

/// The torch that runs on a machine; both ends of what does, where the older one matters.
pub(super) fn runs_words(runs: &RunsHere, with_oldest: bool) -> String {
    let pair = |pair: &Pair| format!("torch {} ({})", pair.torch, pair.cuda_build);
    match (&runs.newest, &runs.oldest) {
        (Some(newest), Some(oldest)) if with_oldest => {
            format!("the oldest is {}, the newest {}", pair(oldest), pair(newest))
        }
        (Some(newest), _) => format!("the newest is {}", pair(newest)),
        (None, _) => "no torch that is known; a newer driver, or another machine".to_owned(),
    }
}

/// Releases of the catalog, and why each does not run here.
pub fn ours_words(ours: &[Ours]) -> String {
    let lack = |lack: &Lack| match lack {
        Lack::Platform => "not for this platform".to_owned(),
        Lack::Code => "no code for this GPU".to_owned(),
        Lack::Driver(floor) => format!("driver ≥ {floor}"),
    };
    let one = |it: &Ours| {
        let lacks = it.lacks.iter().map(lack).collect::<Vec<_>>().join(", ");
        let why = if lacks.is_empty() { "yes".to_owned() } else { format!("no ({lacks})") };
        format!("{} {}: {why}", it.release, it.cuda_build)
    };
    ours.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn torch_words(torch: &TorchAnswer) -> Vec<(&'static str, String)> {
    let amount = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let builds = torch.builds.iter().map(|build| {
        let verified = if build.verified { "" } else { ", not verified" };
        format!(
            "{} (toolkit {}, cuDNN {}{verified})",
            build.name,
            amount(&build.toolkit),
            amount(&build.cudnn)
        )
    });
    let has_cuda = |name: &String| torch.builds.iter().any(|build| build.name == *name);
    let pypi = torch.pypi.iter().map(|(platform, build)| match has_cuda(build) {
        true => format!("{platform} {build}"),
        false => format!("{platform} {build} only"),
    });
    let trio = [
        format!("torchvision {}", torch.torchvision.join(" or ")),
        format!("torchaudio {}", torch.torchaudio.join(" or ")),
        format!("triton {}", torch.triton),
    ];
    let system = match &torch.glibc {
        Some(glibc) => format!("Python {}; glibc ≥ {glibc}", torch.python.join(", ")),
        None => "no wheels for this platform are known".to_owned(),
    };
    vec![
        ("torch", format!("{}: {}", torch.version, builds.collect::<Vec<_>>().join(", "))),
        ("PyPI", pypi.collect::<Vec<_>>().join(", ")),
        ("wheels", system),
        ("trio", trio.join(", ")),
    ]
}

fn image_words(image: &ImageAnswer) -> Vec<String> {
    let mut said: Vec<String> = image.remarks.iter().map(remark_words).collect();
    said.extend(image.nearest.as_ref().map(|nearest| format!("the nearest known: {nearest}")));
    said.extend(image.starts.map(|starts| match starts {
        true => "it starts on this driver".to_owned(),
        false => "it refuses to start on this driver, by its NVIDIA_REQUIRE_CUDA".to_owned(),
    }));
    said
}

fn remark_words(remark: &Remark) -> String {
    match remark {
        Remark::ShortToolkit { toolkit } => {
            format!("no tag begins with `{toolkit}-`: such tags have three numbers")
        }
        Remark::ToolkitNotKnown { toolkit } => format!("whether there is an image of {toolkit} is not known"),
        Remark::NoFlavor { flavor, known } => {
            format!("the flavor `{flavor}` never existed: {}", known.join(", "))
        }
        Remark::NoCudnnFlavor { flavor, right: Some(right) } => {
            format!("`{flavor}` never existed for this toolkit: images with cuDNN say `{right}`")
        }
        Remark::NoCudnnFlavor { flavor, right: None } => {
            format!("`{flavor}`: this toolkit has no images with cuDNN")
        }
        Remark::NoUbuntu { ubuntu, known } => {
            format!("this toolkit has no images for Ubuntu {ubuntu}, only for {}", known.join(", "))
        }
        Remark::SystemNotKnown { system } => format!("images for `{system}` are not known"),
        Remark::UbuntuEnded { ubuntu, month } => {
            format!("Ubuntu {ubuntu} has had no standard support since {month}")
        }
    }
}
