//! The order and the failure of everything outside, with doubles of docker and mmdebstrap on PATH.

use crate::support::{Copy, Outcome, command_in, project};
use std::process::Command;

pub const PASSED: &str = r#"{"schema":1,
    "found":{"python":"3.13.5","torch":"2.15.0+cu132","torchvision":"0.29.2+cu132","torchaudio":null,
             "cuda":"13.2","cudnn":"9.26.0","arch_list":["sm_90"]},
    "checks":[{"name":"matmul","status":"passed"},{"name":"gpu-matmul","status":"skipped","reason":"no GPU"}],
    "counts":{"passed":1,"failed":0,"skipped":1},"state":"not-gpu-tested","summary":"not tested on a GPU"}"#;

pub struct Doubles {
    pub copy: Copy,
}

impl Doubles {
    /// An engine that builds, and an image that passes.
    pub fn new() -> Doubles {
        let doubles = Doubles { copy: Copy::new() };
        std::fs::create_dir(doubles.copy.path("double")).unwrap();
        doubles.say("smoke", PASSED)
    }

    /// What the double of docker says or how it ends at one of its calls.
    pub fn say(self, file: &str, text: &str) -> Doubles {
        self.tell(file, text);
        self
    }

    /// The same, from now on.
    pub fn tell(&self, file: &str, text: &str) {
        std::fs::write(self.copy.path("double").join(file), text).unwrap();
    }

    pub fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Outcome {
        Outcome::of(self.command(args, env).output().unwrap())
    }

    /// The same, to be started.
    pub fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let doubles = project().join("xtask/tests/it/doubles");
        let path = format!("{}:{}", doubles.display(), std::env::var("PATH").unwrap());
        let double = self.copy.path("double").display().to_string();
        let cache = self.copy.path("cache").display().to_string();
        let mut all = vec![("PATH", path.as_str()), ("DOUBLE", &double), ("XTASK_ENGINE", "docker")];
        // No double makes a wheel: what is told here of a bake is told of the Dockerfiles' own.
        all.extend([("XTASK_BASE_BUILDER", "dockerfile"), ("XTASK_CACHE", cache.as_str())]);
        all.extend(env);
        command_in(self.copy.dir.path(), args, &all)
    }

    pub fn build(&self) -> Outcome {
        self.run(&["build", "--variant", "runtime"], &[])
    }

    /// Every call of docker, a line each.
    pub fn all_calls(&self) -> String {
        std::fs::read_to_string(self.copy.path("double/calls")).unwrap_or_default()
    }

    /// The calls that change something, each by its first words.
    pub fn calls(&self) -> Vec<String> {
        let text = self.all_calls();
        let telling = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["buildx", "bake", "--help" | "--print", ..] => None,
                ["buildx", "bake", ..] => Some("bake".to_owned()),
                ["run", .., "-I", "-c", _] => None,
                ["run", ..] => Some("smoke".to_owned()),
                ["image", "push", .., to] => Some(format!("push {to}")),
                ["image", "tag", _, to] => Some(format!("tag {to}")),
                ["image", "rm", what] => Some(format!("untag {what}")),
                _ => None,
            }
        };
        text.lines().filter_map(telling).collect()
    }
}

const UNTAG: &str = "untag pytorch-cuda:candidate-2.15-runtime";

#[test]
fn names_come_after_the_smoke_test_and_the_digest_stands_alone() {
    let doubles = Doubles::new();
    let outcome = doubles.build();
    outcome.expect(0, &["not-gpu-tested: 1 passed, 0 failed, 1 skipped"]);
    assert_eq!(outcome.stdout, "sha256:1\n");
    let tags = ["2.15.0-cuda13.2-cudnn9-runtime", "2.15.0-runtime", "2.15-runtime"];
    let mut expected = vec!["bake".to_owned(), "smoke".to_owned()];
    expected.extend(tags.map(|tag| format!("tag pytorch-cuda:{tag}")));
    expected.push(UNTAG.to_owned());
    assert_eq!(doubles.calls(), expected);
}

#[test]
fn a_plan_can_be_made_against_a_registry() {
    let doubles = Doubles::new();
    doubles.build().expect(0, &[]);
    let labels = std::fs::read_to_string(doubles.copy.path("double/labels")).unwrap();
    let doubles = doubles.say("imagetools.out", &format!(r#"{{"config":{{"Labels":{{{labels}}}}}}}"#));
    let args = ["plan", "--variant", "runtime", "--registry", "registry.example.org"];
    doubles.run(&args, &[]).expect(0, &["skip", "unchanged"]);
    assert!(doubles.all_calls().contains("inspect registry.example.org/pytorch-cuda:2.15-runtime --format"));
    let doubles = doubles.say("imagetools", "not found").say("imagetools.rc", "1");
    doubles.run(&args, &[]).expect(0, &["build", "new"]);
    doubles.say("imagetools", "401 Unauthorized").run(&args, &[]).expect(3, &["error[E_REGISTRY_AUTH]"]);
}

/// A night has the patience that was given, in each of its steps, and what stands in its way is no failure of an image.
#[test]
fn a_night_without_a_registry_is_a_night_that_cannot_be() {
    let doubles = Doubles::new().say("imagetools", "connection refused").say("imagetools.rc", "1");
    let night = ["nightly", "--variant", "runtime", "--registry", "registry.example.org"];
    let outcome = doubles.run(&[&night[..], &["--retry-budget", "0s"]].concat(), &[]);
    outcome.expect(
        3,
        &["error[E_NETWORK]", "once more in 0 s", "--retry-budget 0s", "error[E_HOST]: what changed: "],
    );
    assert_eq!((outcome.stderr.matches("error[E_NETWORK]").count(), doubles.calls()), (3, vec![]));
    let planned = doubles.run(&[&night[..], &["--dry-run", "--verbose", "--cache-dir", "c"]].concat(), &[]);
    let lines: Vec<&str> =
        planned.expect(0, &[]).stdout.lines().filter(|line| !line.starts_with('#')).collect();
    let cache = format!("--cache-dir {} ", doubles.copy.path("c").display());
    let all = lines.iter().all(|line| line.contains(&cache) && line.ends_with("--retry-budget 3m --verbose"));
    assert!(all && lines.len() == 6, "{lines:#?}");
}

#[test]
fn nothing_changed_means_nothing_is_done() {
    let doubles = Doubles::new();
    doubles.build().expect(0, &[]);
    let before = doubles.calls();
    let again = doubles.build();
    again.expect(0, &["nothing changed"]);
    assert_eq!((again.stdout.as_str(), doubles.calls()), ("sha256:1\n", before));
    doubles.run(&["plan", "--variant", "runtime"], &[]).expect(0, &["skip", "unchanged"]);
    doubles.copy.edit_file("templates/rootfs/usr/local/bin/entrypoint", "exec", "# changed\nexec");
    doubles.run(&["plan", "--variant", "runtime"], &[]).expect(0, &["build", "template-changed"]);
}

#[test]
fn a_failed_build_is_never_tested() {
    let words = [
        ("#9 ERROR: process \"uv\" did not complete", 1, "E_BUILD"),
        ("error: Failed to fetch\n  Caused by: failed to lookup address information", 3, "E_NETWORK"),
        ("invalid peer certificate: UnknownIssuer", 3, "E_TLS"),
        ("Hash mismatch for `torch==2.15.0`", 3, "E_WHEEL_HASH"),
        ("write /layer: no space left on device", 3, "E_DISK"),
    ];
    for (said, code, id) in words {
        let doubles = Doubles::new().say("bake", said).say("bake.rc", "1");
        let outcome = doubles.build();
        outcome
            .expect(code, &[&format!("error[{id}]: build (log: "), said.lines().last().unwrap(), "help: "]);
        assert_eq!((outcome.stdout.as_str(), doubles.calls()), ("", vec!["bake".to_owned()]));
    }
}

#[test]
fn the_next_run_after_a_failure_goes_on() {
    let doubles = Doubles::new().say("bake", "connection refused").say("bake.rc", "1");
    doubles.build().expect(3, &["E_NETWORK", "finished steps are kept"]);
    let doubles = doubles.say("bake", "").say("bake.rc", "0");
    assert_eq!(doubles.build().expect(0, &[]).stdout, "sha256:1\n");
}

#[test]
fn what_fails_the_smoke_test_keeps_no_name() {
    let cases = [
        ("", "0", "no record"),
        ("all is well", "0", "no record"),
        (PASSED, "1", "exit status 1"),
        (PASSED, "139", "exit status 139"),
    ];
    for (smoke, rc, said) in cases {
        let doubles = Doubles::new().say("smoke", smoke).say("smoke.rc", rc);
        let outcome = doubles.build();
        outcome.expect(1, &["error[E_SMOKE]", said]);
        assert_eq!(outcome.stdout, "");
        assert_eq!(doubles.calls(), ["bake", "smoke", UNTAG]);
    }
}

#[test]
fn an_image_that_is_not_what_was_planned_keeps_no_name() {
    let cases = [
        ("\"torch\":\"2.15.0+cu132\"", "\"torch\":\"2.15.0+cpu\"", "CUDA build of torch is cpu"),
        ("\"torch\":\"2.15.0+cu132\"", "\"torch\":\"2.14.0+cu132\"", "torch is 2.14.0"),
        ("\"cuda\":\"13.2\"", "\"cuda\":null", "CUDA is none in the image, 13.2 was planned"),
        ("\"cudnn\":\"9.26.0\"", "\"cudnn\":\"9.1.0\"", "cuDNN is 9.1.0 in the image, 9.26.0 was planned"),
        ("\"python\":\"3.13.5\"", "\"python\":\"3.12.1\"", "python is 3.12"),
    ];
    for (from, to, said) in cases {
        assert!(PASSED.contains(from));
        let doubles = Doubles::new().say("smoke", &PASSED.replace(from, to));
        doubles.build().expect(1, &["error[E_IMAGE_DIFFERS]", said, "no tag was given"]);
        assert_eq!(doubles.calls(), ["bake", "smoke", UNTAG]);
    }
}

#[test]
fn a_gpu_that_is_required_must_take_part() {
    let doubles = Doubles::new();
    let args = ["build", "--variant", "runtime", "--require-gpu"];
    doubles.run(&args, &[]).expect(1, &["error[E_NOT_GPU_TESTED]", "--gpus all"]);
    assert_eq!(doubles.calls(), ["bake", "smoke", UNTAG]);
    let refused =
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].";
    let doubles = Doubles::new().say("smoke", "").say("smoke.err", refused).say("smoke.rc", "125");
    let args = ["build", "--variant", "runtime", "--gpus", "all"];
    doubles.run(&args, &[]).expect(3, &["error[E_GPU_NOT_ATTACHED]", "NVIDIA Container Toolkit"]);
}

#[test]
fn smoke_alone_judges_the_same_way() {
    let doubles = Doubles::new();
    let args = ["smoke", "--variant", "runtime"];
    assert_eq!(
        doubles.run(&args, &[]).expect(0, &[]).stdout,
        "not-gpu-tested: 1 passed, 0 failed, 1 skipped\n"
    );
    let doubles = doubles.say("smoke", "");
    doubles.run(&args, &[]).expect(1, &["error[E_SMOKE]"]);
    doubles.run(&["smoke", "--image", "x:y"], &[]).expect(1, &["error[E_SMOKE]: x:y"]);
}

#[test]
fn too_little_room_is_refused_before_anything_is_fetched() {
    // Nothing is ever free there.
    let doubles = Doubles::new().say("info", r#"{"ServerVersion":"28.0.0","DockerRootDir":"/proc"}"#);
    doubles.build().expect(3, &["error[E_DISK]: /proc", "needs about", "0.0 GB are free"]);
    assert_eq!(doubles.calls(), Vec::<String>::new());
}

#[test]
fn a_root_that_moved_is_told_and_with_locked_refused() {
    let doubles = Doubles::new();
    doubles.build().expect(0, &["moved since it was locked", "base-files", "→ 0-double"]);
    let args = ["build", "--variant", "runtime", "--locked"];
    doubles.run(&args, &[]).expect(1, &["error[E_ROOT_MOVED]: images/lock.json: root debian", "base-files"]);
}

#[test]
fn an_engine_that_cannot_be_used_is_one_error() {
    let doubles = Doubles::new().say("buildx.rc", "1");
    let outcome = doubles.build();
    outcome.expect(3, &["error[E_ENGINE]", "has no buildx", "install buildx"]);
    assert_eq!(outcome.stderr.matches("error[").count(), 1);
    let doubles = Doubles::new().say("version", r#"{"Client":{"Version":"28.0.0"},"Server":null}"#);
    doubles.build().expect(3, &["error[E_ENGINE]", "no daemon answers"]);
}

/// Whatever it was asked for when it went, and whatever its client said of that.
#[test]
fn a_docker_that_ends_under_a_build_is_the_one_that_is_named() {
    let moments = [
        ("image ls", "the build"),
        ("buildx bake --file", "the build"),
        ("run --rm", "the smoke test"),
        ("history", "the build"),
        ("image tag", "the build"),
    ];
    for (moment, doing) in moments {
        let doubles = Doubles::new().say("dies", moment);
        let outcome = doubles.build();
        let what = format!("error[E_ENGINE]: engine: docker's daemon ended under {doing}\n  help: start it ");
        outcome.expect(3, &[&what]);
        assert_eq!((outcome.stderr.matches("error[").count(), outcome.stdout.as_str()), (1, ""), "{moment}");
    }
    let doubles = Doubles::new().say("dies", "run --rm");
    let outcome = doubles.run(&["smoke", "--variant", "runtime"], &[]);
    outcome.expect(3, &["error[E_ENGINE]: engine: docker's daemon ended under the smoke test"]);
}

#[test]
fn a_dry_run_prints_the_very_commands_and_runs_none() {
    let doubles = Doubles::new();
    doubles.build().expect(0, &[]);
    let before = doubles.calls();
    let outcome = doubles.run(&["build", "--variant", "runtime", "--force", "--dry-run"], &[]);
    outcome.expect(0, &[]);
    assert_eq!(doubles.calls(), before);
    let lines: Vec<&str> = outcome.stdout.lines().filter(|line| !line.starts_with('#')).collect();
    let printed = lines[0].split_once("docker buildx bake ").unwrap().1.replace('\'', "");
    let calls = std::fs::read_to_string(doubles.copy.path("double/calls")).unwrap();
    assert!(calls.contains(&format!("buildx bake {printed}")), "{printed}\n{calls}");
    assert!(lines[1].contains(" run --rm --network none --read-only "));
    assert!(lines[2].ends_with("candidate-2.15-runtime pytorch-cuda:2.15.0-cuda13.2-cudnn9-runtime"));
}

#[test]
fn a_dry_run_on_a_bare_machine_makes_no_root() {
    let doubles = Doubles::new();
    let outcome = doubles.run(&["build", "--variant", "runtime", "--dry-run"], &[]);
    outcome.expect(0, &["docker buildx bake", "oci-layout://"]);
    assert!(!doubles.copy.path("target/xtask/roots").exists());
    assert_eq!(doubles.calls(), Vec::<String>::new());
}

#[test]
fn a_password_of_an_index_is_in_no_argument_and_no_word() {
    let words = "Looking in indexes: https://user:canary@index.example/simple";
    let doubles = Doubles::new().say("bake", words).say("bake.rc", "1");
    let index = [("UV_DEFAULT_INDEX", "https://user:canary@index.example/simple")];
    let outcome = doubles.run(&["build", "--variant", "runtime", "--verbose"], &index);
    outcome.expect(1, &["E_BUILD"]);
    let calls = std::fs::read_to_string(doubles.copy.path("double/calls")).unwrap();
    assert!(calls.contains("base-2-15.secrets=id=uv,src="), "{calls}");
    let log = std::fs::read_to_string(doubles.copy.path("target/xtask/logs/build.log")).unwrap();
    assert!(log.contains("https://index.example/simple") && !log.contains("canary"), "{log}");
    assert!(
        !calls.contains("canary") && !outcome.stderr.contains("canary") && !outcome.stdout.contains("canary")
    );
}

#[test]
fn json_is_the_whole_of_standard_output() {
    let outcome = Doubles::new().run(&["build", "--variant", "runtime", "--json"], &[]);
    let images: serde_json::Value = serde_json::from_str(&outcome.expect(0, &[]).stdout).unwrap();
    assert_eq!(images[0]["digest"], "sha256:1");
    assert_eq!(images[0]["references"][2], "pytorch-cuda:2.15-runtime");
}

/// What an image of release 2.9 tells.
fn passed_2_9() -> String {
    let pairs = [
        ("2.15.0+cu132", "2.9.1+cu128"),
        ("0.29.2+cu132", "0.24.1+cu128"),
        ("\"torchaudio\":null", "\"torchaudio\":\"2.9.1+cu128\""),
        ("13.2", "12.8"),
        ("9.26.0", "9.10.2"),
    ];
    pairs.iter().fold(PASSED.to_owned(), |text, (from, to)| text.replace(from, to))
}

const TOOLKIT: &str = "nvidia/cuda:12.8.1-devel-ubuntu24.04@sha256:";

#[test]
fn what_a_registry_does_not_give_is_refused_before_anything_is_built() {
    let answers = [
        ("ERROR: unexpected status: manifest unknown", "E_BASE_GONE"),
        ("429 Too Many Requests", "E_RATE_LIMIT"),
        ("pull access denied, authorization failed: 401 Unauthorized", "E_REGISTRY_AUTH"),
        ("dial tcp: lookup registry.example.org: no such host", "E_NETWORK"),
    ];
    for (answer, id) in answers {
        let doubles = Doubles::new().say("imagetools", answer).say("imagetools.rc", "1");
        let args = ["build", "--variant", "devel", "--variant", "runtime", "--release", "2.9"];
        doubles
            .run(&[&args[..], &["--retry-budget", "0s"]].concat(), &[])
            .expect(3, &[&format!("error[{id}]: {TOOLKIT}"), "2.9 devel cannot be built here"]);
        assert_eq!(doubles.calls(), Vec::<String>::new());
    }
    let doubles = Doubles::new().say("smoke", &passed_2_9());
    let mirror = [("XTASK_MIRROR", "mirror.example.org/hub/")];
    doubles.run(&["build", "--variant", "devel", "--release", "2.9"], &mirror).expect(0, &["2.9-devel"]);
    let calls = doubles.all_calls();
    assert!(
        calls.contains(&format!("buildx imagetools inspect mirror.example.org/hub/{TOOLKIT}")),
        "{calls}"
    );
    let env = std::fs::read_to_string(doubles.copy.path("double/bake.env")).unwrap();
    assert!(env.contains("MIRROR=mirror.example.org/hub/\n"), "{env}");
}

/// Counted: what a build and a plan ask of a registry is asked again while that is busy. A build does not wait for a name that
/// nobody knows.
#[test]
fn a_registry_that_is_busy_for_a_moment_is_asked_again() {
    let busy = |times| {
        let doubles = Doubles::new().say("smoke", &passed_2_9()).say("imagetools.fails", times);
        doubles.say("imagetools.err", "unexpected status: 503 Service Unavailable")
    };
    let asked = |doubles: &Doubles| doubles.all_calls().matches("imagetools inspect").count();
    let build = ["build", "--variant", "devel", "--release", "2.9"];
    let doubles = busy("2");
    doubles.run(&build, &[]).expect(0, &["a look at nvidia/cuda", "503", "once more in", "2.9-devel"]);
    assert_eq!(asked(&doubles), 3);
    let doubles = busy("1").say("imagetools", "not found").say("imagetools.rc", "1");
    let plan = ["plan", "--variant", "runtime", "--registry", "registry.example.org"];
    doubles.run(&plan, &[]).expect(0, &["once more in", "build", "new"]);
    let doubles = busy("9").say("imagetools.err", "dial tcp: lookup registry.example.org: no such host");
    doubles.run(&build, &[]).expect(3, &["error[E_NETWORK]", "2.9 devel cannot be built here"]);
    assert_eq!(asked(&doubles), 1);
}

#[test]
fn all_builds_what_can_be_built_and_tells_the_rest() {
    let doubles = Doubles::new().say("imagetools", "no such host").say("imagetools.rc", "1");
    let doubles = doubles.say("smoke", &passed_2_9());
    let outcome = doubles.run(&["build", "--all", "--release", "2.9"], &[]);
    outcome.expect(
        3,
        &["error[E_NETWORK]", "2.9 devel, 2.9 debug cannot be built here", "not buildable here  E_NETWORK"],
    );
    outcome.expect(3, &["mlflow   built", "runtime  built"]);
    assert_eq!(outcome.stdout, "sha256:1\nsha256:1\n");
    let calls = doubles.all_calls();
    let bake = calls.lines().find(|line| line.starts_with("buildx bake --file")).unwrap();
    assert!(bake.ends_with(" runtime-2-9 mlflow-2-9"), "{bake}");
    // Asked once, although two images need it.
    assert_eq!(calls.matches("imagetools inspect").count(), 1, "{calls}");
}

#[test]
fn one_failure_does_not_stop_the_others_where_they_are_to_go_on() {
    let args = ["build", "--all", "--release", "2.15"];
    let doubles = Doubles::new().say("bake.fails", "debug-2-15");
    doubles.run(&args, &[]).expect(1, &["error[E_BUILD]"]);
    assert_eq!(doubles.calls(), ["bake"]);
    let doubles = Doubles::new().say("bake.fails", "debug-2-15");
    let outcome = doubles.run(&[&args[..], &["--keep-going"]].concat(), &[]);
    outcome.expect(1, &["error[E_BUILD]", "debug    failed  E_BUILD", "devel    built", "runtime  built"]);
    assert_eq!(outcome.stdout, "sha256:1\n".repeat(3));
    let count = |what: &str| doubles.calls().iter().filter(|call| call.starts_with(what)).count();
    assert_eq!(
        (count("bake"), count("smoke"), count("tag "), count("untag")),
        (5, 3, 9, 3),
        "{:?}",
        doubles.calls()
    );
}

#[test]
fn an_image_that_fails_leaves_no_candidate_of_the_others_behind() {
    let doubles = Doubles::new().say("smoke", "");
    doubles.run(&["build", "--all", "--release", "2.15"], &[]).expect(1, &["error[E_SMOKE]"]);
    let untagged = doubles.calls().iter().filter(|call| call.starts_with("untag")).count();
    assert_eq!((untagged, doubles.calls().iter().filter(|call| *call == "smoke").count()), (4, 1));
}

#[test]
fn what_is_too_heavy_gets_no_name() {
    let layers = "{\"Size\":\"9000000000\",\"CreatedBy\":\"COPY big /\"}\n{\"Size\":\"1\",\"CreatedBy\":\"COPY small /\"}\n";
    let heavy = PASSED.replace("\"arch_list\"", "\"heaviest\":[[\"torch\",1200000000]],\"arch_list\"");
    let doubles = Doubles::new().say("history", layers).say("smoke", &heavy);
    let said = [
        "error[E_SIZE_BUDGET]: 2.15 runtime: 9000 MB of",
        "allowed unpacked",
        "9000 MB  files",
        "1200 MB  torch",
    ];
    doubles.build().expect(1, &said);
    assert_eq!(doubles.calls(), ["bake", "smoke", UNTAG]);
}

#[test]
fn a_plan_as_json_holds_the_commands_and_what_is_needed() {
    let doubles = Doubles::new();
    let outcome = doubles.run(&["plan", "--all", "--json"], &[]);
    let plan: serde_json::Value = serde_json::from_str(&outcome.expect(0, &[]).stdout).unwrap();
    let images = plan["images"].as_array().unwrap();
    assert_eq!(images.len(), 16);
    let of = |release: &str, variant: &str| {
        images.iter().find(|it| it["release"] == release && it["variant"] == variant).unwrap()
    };
    assert!(of("2.9", "devel")["needs"][0].as_str().unwrap().starts_with(TOOLKIT));
    assert_eq!(of("2.15", "devel")["needs"], serde_json::json!([]));
    assert!(of("2.15", "runtime")["base_bytes"].as_u64().unwrap() > 2_000_000_000);
    assert!(of("2.15", "devel")["own_bytes"].as_u64() > of("2.15", "runtime")["own_bytes"].as_u64());
    assert_eq!(of("2.15", "debug")["packages"], serde_json::json!(["debug", "devel"]));
    assert_eq!(plan["commands"][0]["argv"][1], "buildx");
    assert_eq!(doubles.calls(), Vec::<String>::new());
    let arm = doubles.run(&["plan", "--variant", "runtime", "--platform", "linux/arm64"], &[]);
    arm.expect(0, &["linux/arm64", "qemu-user-static"]);
}

/// The bake of a build with some options.
fn bake(doubles: &Doubles, options: &[&str]) -> String {
    doubles.run(&[&["build", "--variant", "runtime"], options].concat(), &[]).expect(0, &[]);
    let calls = doubles.all_calls();
    calls.lines().find(|line| line.starts_with("buildx bake --file")).unwrap().to_owned()
}

#[test]
fn a_builder_elsewhere_gives_its_images_to_the_engine_that_tests_them() {
    let driver = |name: &str| Doubles::new().say("builder", &format!("Name:   far\nDriver: {name}\n"));
    let far = bake(&driver("kubernetes"), &["--builder", "far"]);
    assert!(
        far.contains(" --builder far ") && far.contains(".output=type=docker,oci-mediatypes=true,"),
        "{far}"
    );
    let here = bake(&driver("docker"), &["--builder", "here"]);
    assert!(here.contains(" --builder here ") && here.contains(".output=type=image,"), "{here}");
    let other = driver("docker");
    let refused = other.run(&["build", "--variant", "runtime", "--builder", "far"], &[]);
    refused.expect(3, &["error[E_ENGINE]: --builder far", "DOCKER_CONTEXT=far"]);
    let none = Doubles::new().say("builder.rc", "1");
    let refused = none.run(&["build", "--variant", "runtime", "--builder", "far"], &[]);
    refused.expect(3, &["error[E_ENGINE]: --builder far", "docker buildx create"]);
    assert_eq!((other.calls(), none.calls()), (vec![], vec![]));
}

#[test]
fn steps_are_kept_for_others_where_the_engine_can() {
    let options = ["--cache-from", "r.example.org/cache", "--cache-to", "r.example.org/cache"];
    let kept = bake(&Doubles::new(), &options);
    let at = "type=registry,ref=r.example.org/cache:cache-runtime-2-15";
    assert!(kept.contains(&format!("runtime-2-15.cache-from={at} ")), "{kept}");
    assert!(kept.contains(&format!("runtime-2-15.cache-to={at},mode=max,")), "{kept}");
    let classic = r#"{"ServerVersion":"28.0.0","DriverStatus":[["Backing Filesystem","extfs"]]}"#;
    let doubles = Doubles::new().say("info", classic);
    let read = bake(&doubles, &options);
    assert!(read.contains(".cache-from=") && !read.contains(".cache-to="), "{read}");
    let build = |more: &[&str]| {
        doubles.run(&[&["build", "--variant", "runtime", "--force"], &options[..], more].concat(), &[])
    };
    build(&[]).expect(0, &["warning: --cache-to is left out"]);
    // Each image is tried alone where one fails.
    doubles.tell("bake.fails", "devel-2-15");
    let said = build(&["--variant", "devel", "--keep-going"]);
    said.expect(1, &["devel    failed  E_BUILD", "runtime  built"]);
    assert_eq!(said.stderr.matches("warning: --cache-to is left out").count(), 1, "{said:#?}");
}
