//! The text of a release, and what becomes of it.

use super::*;
use crate::problem::{Exit, Id, Refusal};

/// The project's own catalog, with other releases in it.
fn catalog(releases: &str) -> Catalog {
    let text = include_str!("../../../variants.yaml");
    let (before, rest) = text.split_once("\nreleases:").unwrap();
    let (_, after) = rest.split_once("\nvariants:").unwrap();
    let text = format!("{before}\nreleases:\n{releases}\nvariants:{after}");
    let mut catalog = Catalog::parse("variants.yaml", &text).unwrap();
    put(&mut catalog, "3.13", vec![Platform::Amd64]);
    catalog
}

/// Another interpreter in the roots, and other platforms.
fn put(catalog: &mut Catalog, python: &str, platforms: Vec<Platform>) {
    catalog.defaults.platforms = platforms;
    catalog.roots.values_mut().for_each(|root| root.python = python.to_owned());
}

/// A catalog with one release, in one line: `torch torchvision [torchaudio] cuda [/ cudnn] [on python platform...]`.
fn catalog_of(line: &str) -> Catalog {
    let (line, place) = line.split_once(" on ").unwrap_or((line, ""));
    let (trio, cudnn) = line.split_once(" / ").unwrap_or((line, ""));
    let words: Vec<&str> = trio.split(' ').collect();
    let mut release = vec![("torch", words[0]), ("torchvision", words[1]), ("cuda", words[words.len() - 1])];
    release.extend(words[2..words.len() - 1].iter().map(|version| ("torchaudio", *version)));
    release.extend(Some(("cudnn", cudnn)).filter(|(_, version)| !version.is_empty()));
    let fields = release.iter().map(|(field, version)| format!("    {field}: \"{version}\"\n"));
    let mut catalog = catalog(&format!("  \"2.15\":\n{}", fields.collect::<String>()));
    if let Some((python, platforms)) =
        place.split(' ').collect::<Vec<_>>().split_first().filter(|_| !place.is_empty())
    {
        let named =
            |name: &&str| Platform::ALL.iter().copied().find(|platform| platform.as_str() == *name).unwrap();
        let platforms: Vec<Platform> = platforms.iter().map(named).collect();
        put(&mut catalog, python, if platforms.is_empty() { vec![Platform::Amd64] } else { platforms });
    }
    catalog
}

fn good(catalog: &Catalog) -> Resolved {
    let mut resolved = resolve(catalog, Compat::bundled().unwrap(), false).unwrap();
    resolved.remove("2.15").unwrap()
}

fn problems(catalog: &Catalog, allow_unverified: bool) -> Vec<Problem> {
    let error = resolve(catalog, Compat::bundled().unwrap(), allow_unverified).unwrap_err();
    let refusal = error.downcast::<Refusal>().unwrap();
    assert_eq!(refusal.exit(), Exit::Refused);
    refusal.0
}

/// Every problem in three lines, without line and column: id and field, what is wrong, the way out.
fn said(problems: &[Problem]) -> String {
    let place = |problem: &Problem| problem.place.split_once(": ").unwrap().1.to_owned();
    problems.iter().map(|p| format!("{} {}\n  {}\n  {}\n", p.id, place(p), p.what, p.cure)).collect()
}

#[test]
fn what_goes_together_is_resolved() {
    // torch torchvision [torchaudio] cuda: build, CUDA, toolkit, cuDNN, its major, driver, triton, channel
    let cases = [
        ("2.15.0 0.29.2 cu132", "cu132 13.2 13.2.2 9.26.0.51 9 580.65.06 ~=3.9.0 Pypi"),
        ("2.15.0 0.29.2 2.11.1 13.2", "cu132 13.2 13.2.2 9.26.0.51 9 580.65.06 ~=3.9.0 Pypi"),
        ("2.15.0 0.29.2 13.2.2", "cu132 13.2 13.2.2 9.26.0.51 9 580.65.06 ~=3.9.0 Pypi"),
        ("2.9.1 0.24.1 2.9.1 cu128", "cu128 12.8 12.8.1 9.10.2.21 9 525.60.13 ==3.5.1 Pypi"),
        ("2.8.0 0.23.0 2.8.0 cu128 / 9", "cu128 12.8 12.8.1 9.10.2.21 9 525.60.13 ==3.4.0 Pypi"),
        ("2.6.0 0.21.0 2.6.0 cu124", "cu124 12.4 12.4.1 9.1.0.70 9 525.60.13 ==3.2.0 Pypi"),
        ("2.9.1+cu126 0.24.1 12.6 / 9.10.2.21", "cu126 12.6 12.6.3 9.10.2.21 9 525.60.13 ==3.5.1 Index"),
        ("2.7.1 0.22.1 2.7.1 11.8", "cu118 11.8 11.8.0 9.1.0.70 9 450.80.02 ==3.3.1 Index"),
    ];
    for (words, expected) in cases {
        let r = good(&catalog_of(words));
        let facts =
            [&r.cuda_build, &r.cuda, &r.cuda_toolkit, &r.cudnn, &r.cudnn_major, &r.driver_floor, &r.triton];
        let facts: Vec<&str> = facts.into_iter().map(String::as_str).collect();
        assert_eq!(format!("{} {:?}", facts.join(" "), r.channel), expected, "{words}");
        assert!(r.unverified.is_empty(), "{words}");
    }
}

#[test]
fn the_default_release_is_resolved_whole() {
    let facts = good(&catalog_of("2.15.0+cu132 0.29.2 2.11.1+cu132 cu132 on 3.14 linux/amd64 linux/arm64"));
    let json = serde_json::to_value(&facts).unwrap();
    let expected = serde_json::json!({
        "release": "2.15",
        "torch": "2.15.0",
        "torchvision": "0.29.2",
        "torchaudio": "2.11.1",
        "cuda_build": "cu132",
        "cuda": "13.2",
        "cuda_toolkit": "13.2.2",
        "cudnn": "9.26.0.51",
        "cudnn_major": "9",
        "python": "3.14",
        "channel": "pypi",
        "triton": "~=3.9.0",
        "driver_floor": "580.65.06",
        "platforms": {
            "linux/amd64": {"arch_list": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]},
            "linux/arm64": {"arch_list": ["sm_80", "sm_90", "sm_100", "sm_110", "sm_120"]},
        },
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<Resolved>(json).unwrap(), facts);
}

#[test]
fn what_does_not_go_together_is_refused_with_the_nearest_that_does() {
    // The first line of a case is a release for `catalog_of`, the others are what `said` makes of the refusal.
    let cases = include_str!("refusals.txt").trim_end();
    for case in cases.split("\n\n") {
        let (line, expected) = case.split_once('\n').unwrap();
        assert_eq!(said(&problems(&catalog_of(line), false)).trim_end(), expected, "{line}");
    }
}

#[test]
fn what_nobody_verified_needs_the_flag_and_is_noted() {
    let cases = [
        (
            "2.9.1 0.24.1 cu129",
            "torch 2.9.1 for CUDA 12.9 (cu129): outside the advertised release matrix; secondary sources only",
        ),
        ("2.15.0 0.29.3 cu132", "torchvision 0.29.3 with torch 2.15.0"),
        ("2.12.1 0.27.1 cu126 on 3.13 linux/arm64", "wheels of torch 2.12.1 cu126 for linux/arm64"),
    ];
    for (line, note) in cases {
        let catalog = catalog_of(line);
        let refused = problems(&catalog, false);
        assert!(refused.len() == 1 && refused[0].cure.contains("--allow-unverified"), "{line}: {refused:?}");
        let allowed = resolve(&catalog, Compat::bundled().unwrap(), true).unwrap();
        assert_eq!(allowed["2.15"].unverified, [note], "{line}");
    }
}

#[test]
fn what_is_bad_or_wholly_unknown_stays_refused() {
    for line in ["2.15.0 0.29.2 cu130", "2.9.1 0.24.0 cu128", "2.7.1 0.22.1 12.4", "2.16.0 0.30.0 cu132"] {
        let refused = problems(&catalog_of(line), true);
        assert!(refused.len() == 1 && !refused[0].cure.contains("--allow-unverified"), "{line}: {refused:?}");
    }
}

#[test]
fn all_problems_of_all_releases_come_at_once_with_their_positions() {
    let releases = concat!(
        "  \"2.15\": {torch: \"2.15.0\", torchvision: \"0.29.0\", cuda: cu132}\n",
        "  \"2.9\": {torch: \"2.9.1\", torchvision: \"0.24.1\", cuda: \"11.8\"}\n",
        "  good: {torch: \"2.8.0\", torchvision: \"0.23.0\", cuda: cu128}\n",
    );
    let found = problems(&catalog(releases), false);
    let ids: Vec<Id> = found.iter().map(|problem| problem.id).collect();
    assert_eq!(ids, [Id::TrioMismatch, Id::NoWheelChannel]);
    let text = include_str!("../../../variants.yaml");
    let line = text.lines().position(|line| line == "releases:").unwrap() + 3;
    assert_eq!(found[1].place, format!("variants.yaml:{line}:56: releases.\"2.9\".cuda"));
}
