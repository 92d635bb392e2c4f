//! The data against itself: what no type can say.

use super::*;
use std::collections::BTreeSet;

fn bundled() -> &'static Compat {
    Compat::bundled().unwrap()
}

fn builds() -> impl Iterator<Item = (&'static Version, &'static str, &'static Build)> {
    let torches = bundled().torch.facts.iter();
    torches.flat_map(|(v, torch)| torch.builds.iter().map(move |(name, build)| (v, name.as_str(), build)))
}

fn is_version(text: &str) -> bool {
    Version::parse(text).is_some()
}

/// `3.9` or `3.13t`, in the order of releases, the one without the lock behind the one with it.
fn python(text: &str) -> (Version, bool) {
    let free = text.strip_suffix('t');
    (Version::parse(free.unwrap_or(text)).unwrap(), free.is_some())
}

#[test]
fn every_torch_from_2_0_to_2_15_is_there() {
    let compat = bundled();
    let (oldest, newest) = compat.range().unwrap();
    assert_eq!((oldest.to_string(), newest.to_string()), ("2.0.0".into(), "2.15.0".into()));
    for minor in 0..=15 {
        assert!(compat.torch(&format!("2.{minor}.0")).is_some(), "2.{minor}.0");
    }
}

#[test]
fn what_pypi_serves_is_among_the_builds_with_its_architectures() {
    for (version, torch) in &bundled().torch.facts {
        let amd64 = torch.on_pypi(Platform::Amd64).unwrap();
        assert_ne!(amd64, "cpu", "{version}");
        for (platform, wheels) in torch.wheels.iter().filter(|(_, wheels)| wheels.pypi != "cpu") {
            let build = &torch.builds[&wheels.pypi];
            assert!(build.verified && build.source == ["wheel"], "{version} {}", wheels.pypi);
            assert!(build.arch.contains_key(platform), "{version} {platform}");
        }
    }
}

#[test]
fn a_verified_build_is_known_and_any_other_says_why() {
    for (version, name, build) in builds() {
        assert_eq!(build.verified, build.note.is_none(), "{version} {name}");
        if build.verified {
            assert!(bundled().known(name, build).is_some(), "{version} {name}");
        }
    }
}

#[test]
fn names_of_builds_and_their_toolkits_agree() {
    for (version, name, build) in builds() {
        let cuda = bundled().version_of(name).unwrap();
        let starts = |toolkit: &String| toolkit.starts_with(&format!("{cuda}."));
        assert!(build.toolkit.iter().all(starts), "{version} {name}");
    }
    for (name, cuda) in &bundled().cuda.facts {
        assert_eq!(format!("cu{}", cuda.version.replace('.', "")), *name);
        assert!(cuda.version.starts_with(&format!("{}.", cuda.major)), "{name}");
        assert!(bundled().driver_floor(name).is_some(), "{name}");
    }
}

#[test]
fn architectures_are_sorted_and_not_empty() {
    let number = |arch: &String| arch.strip_prefix("sm_").unwrap().parse::<u32>().unwrap();
    for (version, name, build) in builds() {
        assert!(build.arch.contains_key(&Platform::Amd64), "{version} {name}");
        for archs in build.arch.values() {
            let numbers: Vec<u32> = archs.iter().map(number).collect();
            assert!(!numbers.is_empty() && numbers.is_sorted_by(|a, b| a < b), "{version} {name}: {archs:?}");
        }
    }
}

#[test]
fn versions_are_versions_and_pythons_are_in_order() {
    for (version, torch) in &bundled().torch.facts {
        let builds = torch.builds.values().flat_map(|build| build.toolkit.iter().chain(&build.cudnn));
        let trio = torch.torchvision.iter().chain(&torch.torchaudio);
        assert!(builds.chain(trio).all(|text| is_version(text)), "{version}");
        assert!(!torch.torchvision.is_empty() && !torch.torchaudio.is_empty(), "{version}");
        assert!(torch.triton.starts_with("==") || torch.triton.starts_with("~="), "{version}");
        for platform in Platform::ALL {
            let pythons: Vec<_> = torch.pythons(*platform).iter().map(|text| python(text)).collect();
            assert!(pythons.len() >= 4 && pythons.is_sorted_by(|a, b| a < b), "{version}: {pythons:?}");
        }
    }
}

#[test]
fn drivers_rise_with_the_toolkit() {
    let drivers = &bundled().drivers;
    let mut by_toolkit: Vec<(Version, Version)> = drivers
        .toolkit
        .facts
        .iter()
        .map(|(toolkit, driver)| (Version::parse(toolkit).unwrap(), Version::parse(driver).unwrap()))
        .collect();
    by_toolkit.sort();
    assert!(by_toolkit.is_sorted_by(|a, b| a.1 <= b.1), "{by_toolkit:?}");
    assert!(drivers.gpu.facts.values().all(|driver| is_version(driver)));
    assert!(drivers.image_require.facts.values().flatten().all(|branch| is_version(branch)));
}

#[test]
fn every_source_is_spelt_out_and_used() {
    let compat = bundled();
    let drivers = &compat.drivers;
    let groups = [
        &compat.cuda.source,
        &compat.cudnn.source,
        &compat.torch.source,
        &compat.nvidia_cuda_images.source,
        &compat.gpus.source,
        &compat.image_tags.source,
        &compat.ubuntu_ended.source,
        &drivers.minor_version_compatibility.source,
        &drivers.gpu.source,
        &drivers.toolkit.source,
        &drivers.image_require.source,
    ];
    let of_builds = builds().map(|(_, _, build)| &build.source);
    let used: BTreeSet<&String> = groups.into_iter().chain(of_builds).flatten().collect();
    assert_eq!(used, compat.sources.keys().collect());
}

#[test]
fn a_gpu_is_known_by_every_spelling_of_its_name() {
    let compat = bundled();
    let cases = [
        ("NVIDIA GeForce GTX 1080 Ti", "GTX 1080 Ti", "6.1"),
        ("gtx1080ti", "GTX 1080 Ti", "6.1"),
        ("GeForceRTX4090", "RTX 4090", "8.9"),
        ("Tesla V100-SXM2-16GB", "V100", "7.0"),
        ("NVIDIA A100-SXM4-80GB", "A100", "8.0"),
        ("NVIDIA H100 80GB HBM3", "H100", "9.0"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "8.9"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "RTX 3080", "8.6"),
        ("rtx 4070 ti super", "RTX 4070 Ti", "8.9"),
    ];
    for (written, name, sm) in cases {
        let (found, gpu) = compat.gpu(written).unwrap_or_else(|| panic!("{written}"));
        assert_eq!((found, gpu.sm.to_string()), (name, sm.to_owned()), "{written}");
    }
    assert!(compat.gpu("RTX 1080 Tie").is_none() && compat.gpu("").is_none());
    assert_eq!(compat.nearest_gpu("GTX 1080 Tie"), Some("GTX 1080 Ti"));
    for name in compat.gpus.facts.keys() {
        assert_eq!(compat.gpu(name).unwrap().0, name, "two GPUs are spelt alike");
    }
}

#[test]
fn a_generation_with_a_driver_of_its_own_has_gpus() {
    let generations: BTreeSet<&String> = bundled().gpus.facts.values().map(|gpu| &gpu.generation).collect();
    assert!(bundled().drivers.gpu.facts.keys().all(|generation| generations.contains(generation)));
}

#[test]
fn code_runs_on_the_same_major_from_its_minor_on() {
    let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let cases = [
        ("6.1", "sm_50 sm_60 sm_70", false, Some("sm_60")),
        ("8.9", "sm_80 sm_86 sm_90", false, Some("sm_86")),
        ("8.0", "sm_86 sm_90", false, None),
        ("12.1", "sm_100 sm_120", false, Some("sm_120")),
        ("12.0", "sm_90 sm_100", false, None),
        ("7.0", "sm_75 sm_80", false, None),
        ("8.7", "sm_80 sm_86", true, None),
        ("11.0", "sm_100 sm_110", true, Some("sm_110")),
    ];
    for (sm, archs, exact, by) in cases {
        assert_eq!(Sm::parse(sm).unwrap().runs(&list(archs), exact), by, "{sm} {archs}");
    }
}

#[test]
fn each_cudnn_has_one_major() {
    let majors = &bundled().cudnn.facts;
    let all: Vec<&String> = majors.values().flatten().collect();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len());
    for (major, versions) in majors {
        assert!(versions.iter().all(|version| version.starts_with(&format!("{major}."))), "{major}");
    }
}

#[test]
fn unknown_fields_are_refused() {
    let wrong = TEXT.replacen("released:", "relaesed:", 1);
    assert!(Compat::parse(&wrong).is_err());
}
