//! Bad input is a feature: each refusal has an id, a place, the value and one way out, and nothing was started.

use crate::support::{Copy, project};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn an_unknown_variant_is_refused_with_the_known_ones_and_the_nearest() {
    let copy = Copy::new();
    let said = ["error[E_UNKNOWN_NAME]: --variant", "`runtme`", "did you mean `runtime`?", "Known: "];
    copy.xtask(&["build", "--variant", "runtme"]).expect(2, &said);
}

#[test]
fn an_unknown_release_is_refused_with_the_known_ones_and_the_nearest() {
    let copy = Copy::new();
    let said = ["error[E_UNKNOWN_NAME]: --release", "`2.51`", "did you mean `2.15`?", "Known: "];
    copy.xtask(&["build", "--variant", "runtime", "--release", "2.51"]).expect(2, &said);
}

#[test]
fn unknown_names_come_together() {
    let outcome = Copy::new().xtask(&["plan", "--variant", "x", "--release", "y", "--root", "z"]);
    outcome.expect(2, &["--variant", "--release", "--root"]);
    assert_eq!(outcome.stderr.matches("error[").count(), 3);
}

#[test]
fn a_misspelt_key_is_refused_with_its_line() {
    let copy = Copy::new();
    copy.edit("    torchvision:", "    torchvison:");
    let line = line_of(&copy, "torchvison");
    let said = [
        "error[E_SCHEMA]: variants.yaml:",
        &format!(":{line}:"),
        "`torchvison`",
        "did you mean `torchvision`?",
    ];
    copy.xtask(&["check"]).expect(2, &said);
}

#[test]
fn a_duplicate_key_is_refused_with_the_line_of_the_second() {
    let copy = Copy::new();
    copy.edit("    cuda: cu132\n", "    cuda: cu132\n    cuda: cu130\n");
    let line = line_of(&copy, "cu130");
    copy.xtask(&["check"]).expect(2, &["E_SCHEMA", &format!(":{line}:"), "second time", "keep one"]);
}

#[test]
fn a_duplicate_entry_of_a_section_is_refused() {
    let copy = Copy::new();
    copy.edit("variants:\n", "variants:\n  runtime: {about: twice, from: base}\n");
    copy.xtask(&["check"]).expect(2, &["E_SCHEMA", "variants.runtime", "second time"]);
}

#[test]
fn a_wrong_type_is_refused_with_its_line() {
    let copy = Copy::new();
    copy.edit("uid: 1000", "uid: many");
    let line = line_of(&copy, "uid: many");
    copy.xtask(&["check"]).expect(2, &["E_SCHEMA", &format!(":{line}:"), "user.uid", "many"]);
}

#[test]
fn a_version_without_quotes_never_becomes_another_version() {
    let copy = Copy::new();
    copy.edit("torch: \"2.15.0\"", "torch: 2.10").edit("release: \"2.15\"", "release: 2.10");
    let outcome = copy.xtask(&["check"]);
    outcome.expect(
        2,
        &["error[E_VERSION_NOT_TEXT]", "releases.\"2.15\".torch", "defaults.release", "write \"2.10\""],
    );
    assert_eq!(outcome.stderr.matches("error[").count(), 2, "{outcome:#?}");
}

#[test]
fn a_name_without_quotes_never_becomes_another_name() {
    let copy = Copy::new();
    copy.edit("  \"2.15\":\n", "  2.10:\n");
    copy.xtask(&["check"]).expect(2, &["E_VERSION_NOT_TEXT", "write \"2.10\""]);
}

#[test]
fn all_problems_of_a_file_come_at_once() {
    let copy = Copy::new();
    copy.edit("    suite: trixie", "    sweet: trixie")
        .edit("    about:", "    abuot:")
        .edit("uid: 1000", "uid: []");
    let outcome = copy.xtask(&["check"]);
    outcome.expect(2, &["sweet", "abuot", "user.uid"]);
    assert_eq!(outcome.stderr.matches("error[").count(), 3, "{outcome:#?}");
}

#[test]
fn broken_yaml_is_refused_with_its_line() {
    let copy = Copy::new();
    copy.edit("defaults:", "defaults: ]");
    copy.xtask(&["check"]).expect(2, &["E_SCHEMA", "variants.yaml:"]);
}

/// What tutorials write down, and what is true instead.
#[test]
fn combinations_that_do_not_exist_are_refused_within_a_second() {
    let cases = [
        ("2.9.1", "0.24.1", "11.8", None, "2.9.1 11.8 12.6 12.8 13.0 2.7.1"),
        ("2.9.1", "0.24.1", "12.1", None, "2.9.1 12.1 12.6 12.8 13.0 2.5.1"),
        ("2.6.0", "0.21.0", "cu121", None, "2.6.0 cu121 11.8 12.4 12.6 2.5.1"),
        ("2.8.0", "0.23.0", "11.8", Some("8"), "2.8.0 11.8 12.6 12.8 12.9 2.7.1"),
        ("2.7.1", "0.22.1", "12.4", None, "2.7.1 12.4 11.8 12.6 12.8"),
    ];
    for (torch, torchvision, cuda, cudnn, said) in cases {
        let copy = Copy::new();
        let cudnn = cudnn.map(|major| format!("\n    cudnn: \"{major}\"")).unwrap_or_default();
        copy.edit("torch: \"2.15.0\"", &format!("torch: \"{torch}\""))
            .edit("torchvision: \"0.29.2\"", &format!("torchvision: \"{torchvision}\""))
            .edit("cuda: cu132", &format!("cuda: \"{cuda}\"{cudnn}"));
        let start = Instant::now();
        let outcome = copy.xtask(&["build", "--variant", "runtime"]);
        let took = start.elapsed();
        let said: Vec<&str> = said.split(' ').collect();
        outcome
            .expect(2, &said)
            .expect(2, &["error[E_NO_WHEEL_CHANNEL]: variants.yaml:", "releases.\"2.15\".cuda"]);
        assert!(took < Duration::from_secs(1), "torch {torch}: {took:?}");
    }
}

#[test]
fn a_trio_that_does_not_belong_together_is_refused() {
    let copy = Copy::new();
    copy.edit("torchvision: \"0.29.2\"", "torchvision: \"0.21.0\"");
    copy.xtask(&["check"]).expect(2, &["E_TRIO_MISMATCH", "0.21.0", "0.29.2"]);
}

#[test]
fn a_stale_lock_stops_before_anything_starts() {
    let copy = Copy::new();
    copy.edit("    - numpy\n", "    - numpy\n    - pandas\n");
    let said = ["error[E_LOCK_STALE]", "releases.2.15 changed", "cargo xtask lock --update"];
    copy.xtask(&["build", "--variant", "runtime"]).expect(1, &said);
    copy.xtask(&["lock", "--check"]).expect(1, &said);
    copy.xtask(&["check"]).expect(1, &said);
    std::fs::remove_file(copy.path("images/lock.json")).unwrap();
    copy.xtask(&["build", "--variant", "runtime"]).expect(1, &["E_LOCK_STALE", "there is no lock yet"]);
}

#[test]
fn a_comment_makes_no_lock_stale() {
    let copy = Copy::new();
    copy.edit("project: pytorch", "# a remark\nproject: pytorch");
    copy.xtask(&["lock", "--check"]).expect(0, &[]);
}

#[test]
fn stale_files_are_named_with_the_command_that_repairs() {
    let copy = Copy::new();
    copy.edit_file("images/2.15/runtime/Dockerfile", "FROM base", "FROM other");
    std::fs::write(copy.path("images/left-over"), "x").unwrap();
    std::fs::remove_file(copy.path("images/docker-bake.json")).unwrap();
    let said =
        ["E_RENDER_STALE", "runtime/Dockerfile", "left-over", "docker-bake.json", "`cargo xtask render`"];
    for command in [["render", "--check"].as_slice(), &["check"], &["build", "--variant", "runtime"]] {
        copy.xtask(command).expect(1, &said);
    }
    copy.xtask(&["render"]).expect(0, &[]);
    copy.xtask(&["check"]).expect(0, &[]);
    assert!(!copy.path("images/left-over").exists());
}

#[test]
fn a_tag_that_lies_about_its_fields_is_refused() {
    let copy = Copy::new();
    copy.edit("\"{torch}-{variant}\"", "\"{torhc}-{variant}\"")
        .edit("\"{release}-{variant}\"", "\"{release}\"");
    copy.xtask(&["check"]).expect(2, &["E_TAG", "did you mean `{torch}`?", "E_TAG_COLLISION", "`{release}`"]);
}

#[test]
fn a_named_ca_that_is_not_there_stops_before_an_engine_starts() {
    let copy = Copy::new();
    let args = ["build", "--variant", "runtime", "--ca-cert", "/no/such/ca.pem"];
    copy.xtask(&args).expect(3, &["error[E_TLS]: --ca-cert", "/no/such/ca.pem"]);
}

#[test]
fn a_cache_that_cannot_be_made_stops_before_an_engine_is_asked() {
    let doubles = crate::order::Doubles::new();
    let args = ["build", "--variant", "runtime", "--cache-dir", "variants.yaml/cache"];
    doubles.run(&args, &[]).expect(3, &["error[E_HOST]: creating ", "variants.yaml/cache"]);
    assert_eq!(doubles.all_calls(), "");
}

fn line_of(copy: &Copy, text: &str) -> usize {
    let catalog = std::fs::read_to_string(copy.path("variants.yaml")).unwrap();
    1 + catalog.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn an_image_without_tag_or_digest_is_refused() {
    let cases = [
        ("image: debian:trixie-slim", "image: debian", "names no version"),
        ("image: debian:trixie-slim", "image: debian:latest", "names no version"),
        ("image: debian:trixie-slim", "image: localhost:5000/debian", "names no version"),
        ("    digest: sha256:a292", "    digest: sha256:A292", "is not pinned"),
    ];
    for (from, to, said) in cases {
        let copy = Copy::new();
        copy.edit(from, to)
            .xtask(&["check"])
            .expect(2, &["error[E_BASE_UNPINNED]: variants.yaml:", "roots.debian-slim", said]);
    }
    let copy = Copy::new();
    copy.edit(
        "    suite: trixie\n    python: \"3.13\" # the suite's",
        "    distribution: ubuntu\n    suite: noble\n    python: \"3.13\" # the suite's",
    );
    copy.xtask(&["check"]).expect(2, &["error[E_SCHEMA]", "bootstrapped", "Debian's packages only"]);
}

#[test]
fn a_toolkit_comes_from_one_place() {
    let copy = Copy::new();
    copy.edit("  cu132: # NVIDIA", "  cu132:\n    image: nvidia/cuda:13.2.0-devel-ubuntu24.04 # NVIDIA");
    copy.xtask(&["check"]).expect(2, &["error[E_SCHEMA]", "toolkits.cu132", "packages or from an image"]);
    let copy = Copy::new();
    copy.edit("nvidia/cuda:12.8.1-devel", "nvidia/cuda:12.6.3-devel");
    copy.xtask(&["plan", "--variant", "runtime"])
        .expect(2, &["error[E_TOOLKIT_MISMATCH]", "toolkits.cu128.image", "12.8"]);
}

#[test]
fn a_user_or_folder_that_a_shell_would_read_otherwise_is_refused() {
    for (from, to) in [
        ("name: user", "name: a;b"),
        ("workdir: /workspace", "workdir: /work space"),
        ("workdir: /workspace", "workdir: relative"),
    ] {
        let copy = Copy::new();
        copy.edit(from, to).xtask(&["check"]).expect(2, &["error[E_NAME]", "user."]);
    }
}

#[test]
fn a_root_with_another_python_is_no_root_for_locked_wheels() {
    let said = ["error[E_PYTHON]: --root", "write `root: ubuntu` into the release"];
    Copy::new().xtask(&["build", "--variant", "runtime", "--root", "ubuntu"]).expect(2, &said);
}

/// Options that belong together can be given together.
#[test]
fn what_a_command_offers_can_be_combined() {
    let empty = Copy::new();
    let lines: [&[&str]; 4] = [
        &["lock", "--update", "--release", "2.15", "--apt-sources", "none"],
        &["smoke", "--variant", "runtime", "--release", "2.9", "--gpus", "all", "--require-gpu"],
        &["build", "--all", "--release", "2.9", "--keep-going", "--mirror", "m.example.org", "--locked"],
        &["plan", "--all", "--release", "2.9", "--platform", "linux/amd64", "--registry", "r.example.org"],
    ];
    for line in lines {
        let outcome = empty.xtask(line);
        assert!(!outcome.stderr.contains("E_USAGE"), "{outcome:#?}");
    }
    for line in [
        &["lock"][..],
        &["lock", "--check", "--update"],
        &["smoke"],
        &["smoke", "--variant", "x", "--image", "y"],
    ] {
        empty.xtask(line).expect(2, &["error[E_USAGE]: cargo xtask"]);
    }
}

#[test]
fn a_platform_that_cannot_be_built_here_is_refused_before_anything_starts() {
    if cfg!(not(target_arch = "x86_64"))
        || std::path::Path::new("/proc/sys/fs/binfmt_misc/qemu-aarch64").exists()
    {
        return;
    }
    let copy = Copy::new();
    let arm = ["--platform", "linux/arm64", "--variant", "runtime"];
    copy.xtask(&[&["build"][..], &arm].concat())
        .expect(2, &["error[E_PLATFORM]: --platform", "qemu-user-static"]);
    let old = [&["build"][..], &arm, &["--release", "2.9"]].concat();
    copy.xtask(&old)
        .expect(2, &["error[E_PLATFORM]: images/lock.json: release 2.9", "linux/arm64 is not locked"]);
}

/// `cargo xtask list | head -1` ends as any program would, and complains of nothing.
#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let mut list = Command::new(env!("CARGO_BIN_EXE_xtask"));
    list.arg("list").current_dir(project()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut list = list.spawn().unwrap();
    drop(list.stdout.take());
    let ended = list.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(141), ""));
}
