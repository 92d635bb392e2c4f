//! Questions as the command line asks them, and what must be said.

use super::*;
use crate::problem::Refusal;

/// Answers flags in one line; values are after the flag, up to the next.
fn ask(line: &str) -> Result<Answer> {
    put(line, explain)
}

/// Puts a question.
fn put<T>(
    line: &str,
    answer: fn(&Asked, &Catalog, &BTreeMap<String, Resolved>, &Compat) -> Result<T>,
) -> Result<T> {
    let text = include_str!("../../../variants.yaml");
    let catalog = Catalog::parse("variants.yaml", text).unwrap();
    let compat = Compat::bundled().unwrap();
    let ours = crate::resolve::resolve(&catalog, compat, false).unwrap();
    let value = |flag: &str| {
        let (_, after) = line.split_once(&format!("--{flag} "))?;
        Some(after.split(" --").next().unwrap().to_owned())
    };
    let platform = |text: String| *Platform::ALL.iter().find(|it| it.as_str() == text).unwrap();
    let asked = Asked {
        torch: value("torch"),
        cuda: value("cuda"),
        python: value("python"),
        platform: value("platform").map(platform),
        gpu: value("gpu"),
        sm: value("sm"),
        driver: value("driver"),
        image: value("image"),
    };
    answer(&asked, &catalog, &ours, compat)
}

/// Answers of this verdict that say all of this; parts are split by `|`.
#[track_caller]
fn says(verdict: Verdict, cases: &[(&str, &str)]) {
    for (line, said) in cases {
        let answer = ask(line).unwrap();
        let words = words(&answer);
        assert_eq!(answer.verdict, verdict, "{line}\n{words}");
        for part in said.split('|') {
            assert!(words.contains(part), "{line}: `{part}` was not said\n{words}");
        }
    }
}

#[test]
fn releases_stand_in_the_catalogs_order_whatever_they_are_called() {
    let text = include_str!("../../../variants.yaml").replace("\n  \"2.9\":", "\n  \"3.1-next\":");
    let catalog = Catalog::parse("variants.yaml", &text).unwrap();
    let compat = Compat::bundled().unwrap();
    let ours = crate::resolve::resolve(&catalog, compat, false).unwrap();
    let asked = Asked { driver: Some("580.65.06".to_owned()), ..Asked::default() };
    let answer = explain(&asked, &catalog, &ours, compat).unwrap();
    let names: Vec<&str> = answer.ours.iter().map(|it| it.release.as_str()).collect();
    assert_eq!(names, ["3.1-next", "2.15", "2.8", "2.6"]);
    assert_eq!(names, catalog.releases_newest_first());
}

#[test]
fn what_tutorials_repeat_is_known_to_be_bad() {
    let builds = "12.6 (cu126), 12.8 (cu128), 13.0 (cu130)";
    says(
        Verdict::KnownBad,
        &[
            ("--torch 2.9 --cuda 11.8", &format!("torch 2.9.1, CUDA 11.8|{builds}|with CUDA 11.8 is 2.7.1")),
            ("--torch 2.9 --cuda 12.1", &format!("torch 2.9.1, CUDA 12.1|{builds}|with CUDA 12.1 is 2.5.1")),
            (
                "--image pytorch/pytorch:2.8.0-cuda11.8-cudnn8-runtime",
                "no wheels for CUDA 11.8|12.8 (cu128)|with CUDA 11.8 is 2.7.1|no CUDA build of torch 2.8.0 has cuDNN `8`",
            ),
            ("--torch 2.6.0 --cuda cu121", "no wheels for CUDA 12.1|12.4 (cu124)|CUDA 12.1 is 2.5.1"),
            (
                "--image nvidia/cuda:12.1-devel-ubuntu20.04",
                "three numbers|nearest known: nvidia/cuda:12.1.1-devel-ubuntu20.04|Ubuntu 20.04 has had no standard support",
            ),
        ],
    );
}

#[test]
fn what_goes_together_is_good_and_says_what_belongs_to_it() {
    says(
        Verdict::KnownGood,
        &[
            (
                "--torch 2.9 --cuda 12.8 --python 3.13",
                "torch 2.9.1, CUDA 12.8 (cu128), Python 3.13|torchvision 0.24.1|torchaudio 2.9.1|glibc ≥ 2.28|\
                linux/arm64 cpu only|CUDA 12.x needs ≥ 525.60.13|toolkit 12.8.1 came with 570.124.06",
            ),
            ("--torch 2.15", "CUDA 13.2 (cu132)|linux/arm64 cu132"),
            ("--torch 2.9.0+cu126", "torch 2.9.0, CUDA 12.6 (cu126)"),
            ("--cuda 11.8", "torch 2.7.1 is the newest with this CUDA"),
            ("--torch 2.15 --platform linux/arm64", "linux/arm64|they go together"),
            ("--image nvidia/cuda:12.1.1-devel-ubuntu20.04", "torch 2.5.1 is the newest|no standard support"),
            ("--image docker.io/nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04@sha256:00", "toolkit 12.4.1"),
            (
                "--image nvidia/cuda:13.1.0-base-ubuntu24.04",
                "no other torch from 2.0.0 to 2.15.0 has CUDA 13.1.0",
            ),
            ("--image pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel", "torch 2.9.1, CUDA 12.8 (cu128)"),
        ],
    );
}

#[test]
fn what_nobody_verified_is_not_known() {
    says(
        Verdict::Unknown,
        &[
            ("--torch 2.9 --cuda 12.9", "`12.9` is not verified|secondary sources only"),
            ("--torch 2.20 --cuda 12.8", "nothing is known about torch `2.20`|take torch 2.15.0"),
            (
                "--image nvidia/cuda:12.2.0-base-ubuntu22.04",
                "whether there is an image of 12.2.0 is not known",
            ),
            ("--image nvidia/cuda:12.4.1-base-ubi8", "`ubi8` are not known|12.4.1-base-ubuntu22.04"),
            (
                "--torch 2.9 --cuda 12.6 --platform linux/arm64 --sm 9.0",
                "nothing is known of what such a build",
            ),
        ],
    );
}

#[test]
fn images_that_never_existed_are_known_to_be_bad() {
    let cases = [
        (
            "12.6.3-cudnn8-runtime-ubuntu24.04",
            "images with cuDNN say `cudnn`|12.6.3-cudnn-runtime-ubuntu24.04",
        ),
        (
            "13.1.0-cudnn-runtime-ubuntu24.04",
            "has no images with cuDNN|nvidia/cuda:13.1.0-runtime-ubuntu24.04",
        ),
        (
            "13.0.2-base-ubuntu20.04",
            "no images for Ubuntu 20.04, only for 22.04, 24.04|13.0.2-base-ubuntu24.04",
        ),
        ("12.8.1-full-ubuntu24.04", "the flavor `full` never existed: base, runtime, devel"),
    ];
    for (tag, said) in cases {
        says(Verdict::KnownBad, &[(&format!("--image nvidia/cuda:{tag}"), said)]);
    }
}

#[test]
fn a_gpu_and_a_driver_are_judged_in_either_direction() {
    says(
        Verdict::KnownBad,
        &[
            (
                "--torch 2.15 --cuda 13.2 --gpu GTX 1080 Ti --driver 535.104",
                "GTX 1080 Ti (sm 6.1) is too old|CUDA 13.x needs ≥ 580.65.06|535.104 is too old|\
                the newest is torch 2.14.1 (cu126)|2.15 cu132: no (no code for this GPU, driver ≥ 580.65.06)",
            ),
            (
                "--torch 2.9 --cuda 12.8 --sm 6.1",
                "sm 6.1 is too old|of torch 2.9.1: cu126; the newest is torch 2.14.1",
            ),
            (
                "--torch 2.6 --cuda 12.4 --gpu RTX 5090",
                "too new|the oldest is torch 2.7.0 (cu128), the newest torch 2.15.0",
            ),
            (
                "--torch 2.9 --cuda 12.8 --gpu RTX 5090 --driver 550.90.07",
                "this GPU needs ≥ 570.26|550.90.07 is too old|no torch that is known",
            ),
            ("--torch 2.15 --gpu Jetson AGX Orin", "linux/arm64|there is no code for Jetson AGX Orin"),
            (
                "--torch 2.15 --gpu GH200 --platform linux/amd64",
                "machines of linux/amd64 do not have a GH200",
            ),
            ("--torch 2.9 --python 3.9 --gpu V100", "no wheels for Python `3.9`|the newest is torch 2.8.0"),
        ],
    );
    says(
        Verdict::KnownGood,
        &[
            ("--torch 2.9 --cuda 12.6 --gpu NVIDIA GeForce GTX 1080 Ti", "runs the sm_60 of this build"),
            (
                "--torch 2.9 --cuda 12.8 --gpu rtx4090 --driver 535.104.05",
                "sm_86|enough (minor version compatibility)",
            ),
            ("--torch 2.15 --gpu GH200 --driver 595.58.03", "linux/arm64|595.58.03 is enough"),
            ("--torch 2.15 --gpu Jetson Thor", "runs the sm_110"),
        ],
    );
}

#[test]
fn a_machine_alone_is_told_what_runs_on_it() {
    let cases = [
        (
            "--gpu T4 --driver 535.104.05",
            Verdict::KnownGood,
            "some of these images run on T4 (sm 7.5), linux/amd64, driver 535.104.05|take      release 2.9: |\
             2.15 cu132: no (driver ≥ 580.65.06); 2.9 cu128: yes; 2.8 cu128: yes; 2.6 cu124: yes",
        ),
        (
            "--sm 7.5",
            Verdict::KnownGood,
            "run on sm 7.5, linux/amd64|take      release 2.15: |2.15 cu132: yes",
        ),
        ("--gpu T4 --driver 535", Verdict::KnownGood, "linux/amd64, driver 535|take      release 2.9: "),
        ("--driver 525.60.13", Verdict::KnownGood, "take      release 2.9: |2.15 cu132: no"),
        ("--gpu GTX 1080 Ti", Verdict::KnownGood, "release 2.6: |2.9 cu128: no (no code for this GPU)"),
        (
            "--gpu RTX 5090 --driver 565.57.01",
            Verdict::KnownBad,
            "none of these images runs|this GPU needs ≥ 570.26|no torch that is known; a newer driver",
        ),
        (
            "--gpu GH200",
            Verdict::KnownGood,
            "GH200 (sm 9.0), linux/arm64|2.9 cu128: no (not for this platform)",
        ),
        ("--gpu GH200 --platform linux/amd64", Verdict::KnownBad, "2.15 cu132: no (not for this platform)"),
    ];
    for (line, verdict, said) in cases {
        let answer = put(line, here).unwrap();
        let words = answer.words();
        assert_eq!(answer.verdict, verdict, "{line}\n{words}");
        for part in said.split('|') {
            assert!(words.contains(part), "{line}: `{part}` was not said\n{words}");
        }
    }
    let refusal = put("--gpu T5", here).unwrap_err().to_string();
    assert!(refusal.contains("E_UNKNOWN_NAME]: --gpu"), "{refusal}");
}

#[test]
fn an_image_tells_whether_it_starts_on_a_driver() {
    let image = "--image nvidia/cuda:12.4.1-base-ubuntu22.04 --driver";
    says(Verdict::KnownGood, &[(&format!("{image} 535.104.05"), "it starts on this driver")]);
    says(Verdict::KnownGood, &[(&format!("{image} 545.23.08"), "it refuses to start on this driver")]);
}

#[test]
fn every_malformed_value_is_refused_at_its_flag() {
    let cases = [
        ("--torch two", "E_SCHEMA]: --torch: `two`"),
        ("--cuda 12", "E_SCHEMA]: --cuda: `12`"),
        ("--cuda cpu", "E_SCHEMA]: --cuda: `cpu`"),
        ("--torch 2.9 --python 3.13.1", "E_SCHEMA]: --python: `3.13.1`"),
        ("--torch 2.9 --driver 580", "E_SCHEMA]: --driver: `580`|580.65.06"),
        ("--torch 2.9 --driver new", "E_SCHEMA]: --driver: `new`"),
        ("--image nvidia/cuda:12.4.1-base-ubuntu22.04 --driver 535", "E_SCHEMA]: --driver: `535`"),
        ("--torch 2.9 --sm x", "E_SCHEMA]: --sm: `x`"),
        ("--torch 2.9 --gpu 5090", "E_UNKNOWN_NAME]: --gpu: there is no GPU `5090`|`RTX 5090`"),
        (
            "--torch 2.9 --gpu GTX 1080 Tie",
            "E_UNKNOWN_NAME]: --gpu: there is no GPU `GTX 1080 Tie`|`GTX 1080 Ti`",
        ),
        ("--image nvidia/cuda", "E_SCHEMA]: --image: `nvidia/cuda` has no tag"),
        ("--image nvidia/cuda:latest", "E_SCHEMA]: --image: `nvidia/cuda:latest`"),
        ("--image foo/bar:1", "E_UNKNOWN_NAME]: --image: `foo/bar:1`|nvidia/cuda, pytorch/pytorch"),
        ("--torch 2.9+cu128 --cuda 12.6", "E_SCHEMA]: --torch: `cu128` is not the `12.6` of --cuda"),
        ("--torch two --cuda 12", "--torch|--cuda"),
    ];
    for (line, said) in cases {
        let refusal = ask(line).unwrap_err().downcast::<Refusal>().unwrap();
        assert_eq!(refusal.exit(), crate::problem::Exit::Refused);
        for part in said.split('|') {
            assert!(refusal.to_string().contains(part), "{line}: {refusal}");
        }
    }
}
