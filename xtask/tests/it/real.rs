//! The real engine and the real image. `cargo xtask ci` builds the image, then runs these one after the other:
//! `cargo test -- --ignored --test-threads=1`.

use crate::support::{Copy, Outcome, project, xtask_in};
use std::time::{Duration, Instant};

/// What `cargo xtask ci` has built of the default release.
const VARIANTS: [&str; 4] = ["runtime", "devel", "debug", "mlflow"];

const IMAGE: &str = "pytorch-cuda:2.15-runtime";

/// The program in the project itself.
fn xtask(args: &[&str]) -> Outcome {
    xtask_in(&project(), args, &[])
}

/// Docker's client for the engine that the program uses.
fn docker(args: &str) -> Outcome {
    crate::support::docker(&project(), &[], &project(), args)
}

/// A command in a container that has no network.
fn inside(options: &str, command: &str) -> Outcome {
    docker(&format!("run --rm --network none {options} {IMAGE} {command}"))
}

#[test]
#[ignore = "needs the image"]
fn a_second_build_does_nothing_and_gives_the_same_digest() {
    let first = xtask(&["build", "--variant", "runtime"]).expect(0, &["nothing changed"]).stdout.clone();
    let start = Instant::now();
    let second = xtask(&["build", "--variant", "runtime"]);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(second.expect(0, &[]).stdout, first);
    assert!(first.starts_with("sha256:") && first.trim().len() == 71 && first.ends_with('\n'), "{first}");
}

#[test]
#[ignore = "needs the image"]
fn the_image_tells_what_it_is() {
    let json = docker(&format!("image inspect {IMAGE}"));
    let image: serde_json::Value = serde_json::from_str(&json.expect(0, &[]).stdout).unwrap();
    let config = &image[0]["Config"];
    let expected = [
        ("org.opencontainers.image.title", "PyTorch + CUDA 2.15 runtime"),
        ("pytorch-cuda-images.torch", "2.15.0"),
        ("pytorch-cuda-images.cuda-build", "cu132"),
        ("pytorch-cuda-images.cudnn", "9.26.0.51"),
        ("pytorch-cuda-images.python", "3.13"),
        ("pytorch-cuda-images.arch-list", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
        ("pytorch-cuda-images.driver-floor", "580.65.06"),
        ("pytorch-cuda-images.variant", "runtime"),
        ("pytorch-cuda-images.release", "2.15"),
    ];
    for (label, value) in expected {
        assert_eq!(config["Labels"][label], value, "{label}");
    }
    for label in
        ["org.opencontainers.image.revision", "org.opencontainers.image.created", "pytorch-cuda-images.input"]
    {
        assert!(!config["Labels"][label].as_str().unwrap_or_default().is_empty(), "{label}");
    }
    assert_eq!(config["User"], "1000:0");
    let layers = image[0]["RootFS"]["Layers"].as_array().unwrap().len();
    assert!((8..=20).contains(&layers), "{layers} layers");
}

#[test]
#[ignore = "needs the image"]
fn every_cuda_library_is_there_once() {
    for variant in VARIANTS {
        let find = r#"sh -c "find / -xdev -type f -name 'lib*.so*' -size +64k -exec sha256sum {} +" "#;
        let text = docker(&format!("run --rm --network none --user 0 pytorch-cuda:2.15-{variant} {find}"));
        let mut files: Vec<(&str, &str)> =
            text.expect(0, &[]).stdout.lines().filter_map(|line| line.split_once("  ")).collect();
        files.sort_unstable();
        assert!(files.iter().any(|(_, path)| path.contains("libcublas.so")), "{files:?}");
        files.retain(|(_, path)| is_cuda(path));
        let twice: Vec<_> = files.windows(2).filter(|pair| pair[0].0 == pair[1].0).collect();
        assert!(twice.is_empty(), "{variant}: {twice:#?}");
        // Triton's profiler brings CUPTI of two CUDA majors: other bytes, and only its own.
        files.retain(|(_, path)| !path.contains("/triton/backends/nvidia/lib/"));
        let mut names: Vec<&str> = files.iter().filter_map(|(_, path)| path.rsplit('/').next()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{variant}: {files:#?}");
    }
}

fn is_cuda(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["libcu", "libnv", "libnccl"].iter().any(|prefix| name.starts_with(prefix))
        && !name.starts_with("libcurl")
}

/// The digests of the layers of an image as tars, the lowest first.
fn layers(variant: &str) -> Vec<String> {
    let json = docker(&format!("image inspect pytorch-cuda:2.15-{variant}"));
    let image: serde_json::Value = serde_json::from_str(&json.expect(0, &[]).stdout).unwrap();
    serde_json::from_value(image[0]["RootFS"]["Layers"].clone()).unwrap()
}

#[test]
#[ignore = "needs the image"]
fn variants_share_the_layers_of_their_base_byte_for_byte() {
    let runtime = layers("runtime");
    let base = std::fs::read_to_string(project().join("images/2.15/base/Dockerfile")).unwrap();
    let last = base.rsplit("\nFROM root\n").next().unwrap();
    // The root, a layer for each group of wheels, and what the interpreter makes of them with the constraints.
    let count = 1 + last.lines().filter(|line| line.starts_with("COPY ")).count();
    assert!((8..=10).contains(&count), "{last}");
    for variant in VARIANTS {
        assert_eq!(layers(variant)[..count], runtime[..count], "{variant}");
        assert!((8..=20).contains(&layers(variant).len()), "{variant}");
    }
    let (devel, debug) = (layers("devel"), layers("debug"));
    assert_eq!(debug[..devel.len() - 1], devel[..devel.len() - 1]);
}

/// What is not there to be loaded is not there: runtime weighs what its root and its wheels do.
#[test]
#[ignore = "needs the image"]
fn runtime_weighs_little_more_than_its_root_and_its_wheels() {
    assert_eq!(inside("", "find /opt/venv -name *.a").expect(0, &[]).stdout, "");
    let count =
        "import importlib.metadata as m; print(sum(f.size or 0 for d in m.distributions() for f in d.files))";
    let wheels: u64 =
        inside("", &format!("python -c '{count}'")).expect(0, &[]).stdout.trim().parse().unwrap();
    let lock = std::fs::read_to_string(project().join("images/lock.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let root = lock["roots"]["debian"]["linux/amd64"]["bytes"].as_u64().unwrap();
    let history = docker(&format!("history --human=false --format {{{{.Size}}}} {IMAGE}"));
    let size: u64 = history.expect(0, &[]).stdout.lines().map(|line| line.parse::<u64>().unwrap()).sum();
    assert!(size * 100 <= (root + wheels) * 105, "{size} of {root} + {wheels}");
}

#[test]
#[ignore = "needs the image"]
fn runtime_holds_nothing_of_the_other_variants() {
    let outcome = inside("", "sh -c 'for p in nvcc jupyter sshd git mlflow; do command -v $p; done; true'");
    assert_eq!(outcome.expect(0, &[]).stdout, "");
}

#[test]
#[ignore = "needs the image"]
fn any_user_can_work_in_it() {
    let who = "python -c 'import getpass, os, torch; print(getpass.getuser(), os.access(os.environ[\"HOME\"], os.W_OK))'";
    assert_eq!(
        inside("--user 4242:4242 --read-only --tmpfs /tmp", who).expect(0, &[]).stdout,
        "uid-4242 True\n"
    );
    assert_eq!(inside("", who).expect(0, &[]).stdout, "user True\n");
    assert_eq!(
        inside("", "sh -c 'id -u; touch /workspace/x && pwd'").expect(0, &[]).stdout,
        "1000\n/workspace\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn the_exit_code_and_the_signals_are_the_commands() {
    inside("", "bash -c 'exit 7'").expect(7, &[]);
    let id = docker(&format!("run --detach --network none {IMAGE} sleep 600")).expect(0, &[]).stdout.clone();
    let start = Instant::now();
    docker(&format!("stop {}", id.trim())).expect(0, &[]);
    assert!(start.elapsed() < Duration::from_secs(5));
    docker(&format!("rm {}", id.trim())).expect(0, &[]);
}

/// R3: what is installed later cannot move the trio.
#[test]
#[ignore = "needs the image"]
fn a_package_that_wants_another_torch_is_a_readable_conflict() {
    let script = r#"
import zipfile, subprocess, sys
name = "/tmp/mover-1.0-py3-none-any.whl"
with zipfile.ZipFile(name, "w") as wheel:
    wheel.writestr("mover-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mover\nVersion: 1.0\nRequires-Dist: torch==2.9.1\n")
    wheel.writestr("mover-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("mover-1.0.dist-info/RECORD", "")
for tool in (["pip", "install", "--no-index", name], ["uv", "pip", "install", "--no-index", name]):
    done = subprocess.run(tool, capture_output=True, text=True)
    print(done.returncode, done.stdout, done.stderr)
"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.py"), script).unwrap();
    let mount = format!("-v {}:/t:ro", folder.path().display());
    let outcome = inside(&mount, "python /t/t.py");
    let said =
        ["Cannot install mover==1.0", "mover 1.0 depends on torch==2.9.1", "(constraint) torch==2.15.0"];
    outcome.expect(0, &said).expect(0, &["Because mover==1.0 depends on torch==2.9.1 and torch==2.15.0"]);
    assert_eq!(outcome.stdout.lines().filter(|line| line.starts_with("1 ")).count(), 2, "{outcome:#?}");
}

/// The layers of the wheels hold what `pip install` would have to be allowed to change: group 0 may.
#[test]
#[ignore = "needs the image"]
fn the_normal_user_can_install_and_remove_packages() {
    let command =
        "sh -c 'uv pip uninstall --quiet mpmath && ! python -c \"import mpmath\" 2>/dev/null && echo gone'";
    assert_eq!(inside("", command).expect(0, &[]).stdout, "gone\n");
    // Some packages bring files for folders that are not there yet.
    let command = "sh -c 'mkdir /opt/venv/etc /opt/venv/share/new && stat -c %a /opt/venv'";
    assert_eq!(inside("--user 4242:0", command).expect(0, &[]).stdout, "775\n");
}

/// A CA that build steps were given does not stay, nor do the addresses of indexes.
#[test]
#[ignore = "needs the image"]
fn nothing_of_the_host_stays_in_the_image() {
    let look = "sh -c 'test ! -e /etc/pip.conf && test ! -e /etc/uv && sha256sum < /etc/ssl/certs/ca-certificates.crt'";
    let image = inside("", look).expect(0, &[]).stdout.clone();
    let debian =
        "sh -c 'cd /usr/share/ca-certificates && find . -name \"*.crt\" | sort | xargs cat | sha256sum'";
    let own = inside("", debian).expect(0, &[]).stdout.clone();
    // Debian's bundle is the sum of its own certificates, in its own order: compare as sets of certificates.
    let count = |text: &str| inside("", text).expect(0, &[]).stdout.trim().parse::<usize>().unwrap();
    let bundle = count("grep -c BEGIN /etc/ssl/certs/ca-certificates.crt");
    let certificates = count("sh -c 'find /usr/share/ca-certificates -name \"*.crt\" | wc -l'");
    assert_eq!(bundle, certificates, "{image} {own}");
}

#[test]
#[ignore = "needs the image"]
fn an_image_without_a_library_fails_its_smoke_test() {
    let folder = tempfile::tempdir().unwrap();
    let dockerfile =
        format!("FROM {IMAGE}\nUSER 0\nRUN find /opt/venv -name 'libnccl.so*' -delete\nUSER 1000\n");
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    let build = format!(
        "buildx build --quiet --network host --provenance=false --tag broken:1 {}",
        folder.path().display()
    );
    docker(&build).expect(0, &[]);
    xtask(&["smoke", "--image", "broken:1"]).expect(1, &["error[E_SMOKE]: broken:1", "libnccl.so.2"]);
    docker("image rm broken:1").expect(0, &[]);
}

/// A copy of the project in which devel installs its wheels again, with the state of the project itself.
fn copy_that_installs_again(mark: &str) -> (Copy, String) {
    let copy = Copy::new();
    copy.edit("repository: pytorch-cuda", "repository: pytorch-cuda-copy").edit_file(
        "templates/variant.Dockerfile.tera",
        "umask 002 \\\n",
        &format!("umask 002 && : {mark} \\\n"),
    );
    copy.xtask(&["render"]).expect(0, &[]);
    (copy, project().join("target/xtask").display().to_string())
}

#[test]
#[ignore = "needs the image"]
fn an_index_that_is_down_is_named_and_the_next_run_goes_on() {
    let (copy, state) = copy_that_installs_again("down");
    let build = ["build", "--variant", "devel", "--state", &state];
    let down = [("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")];
    copy.xtask_with(&build, &down).expect(3, &["error[E_NETWORK]: build", "help: "]);
    let outcome = copy.xtask_with(&build, &[]);
    assert!(outcome.expect(0, &["tagged pytorch-cuda-copy:2.15-devel"]).stdout.starts_with("sha256:"));
    let names = "pytorch-cuda-copy:2.15-devel pytorch-cuda-copy:2.15.0-devel";
    docker(&format!("image rm {names} pytorch-cuda-copy:2.15.0-cuda13.2-cudnn9-devel")).expect(0, &[]);
}

#[test]
#[ignore = "needs the image"]
fn an_index_with_an_unknown_certificate_is_named() {
    let key =
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/k -out /tmp/c -days 1 -subj /CN=localhost";
    let serve = format!(
        "sh -c '{key} 2>/dev/null && exec openssl s_server -quiet -www -accept 127.0.0.1:18443 -cert /tmp/c -key /tmp/k'"
    );
    docker(&format!("run --detach --name tls --network host {IMAGE} {serve}")).expect(0, &[]);
    let (copy, state) = copy_that_installs_again("tls");
    let index = [("UV_DEFAULT_INDEX", "https://localhost:18443/simple"), ("NO_PROXY", "localhost")];
    let outcome = copy.xtask_with(&["build", "--variant", "devel", "--state", &state], &index);
    docker("rm --force tls").expect(0, &[]);
    outcome.expect(3, &["error[E_TLS]: build", "--ca-cert"]);
}

#[test]
#[ignore = "needs the image"]
fn a_wheel_with_another_hash_is_refused() {
    let copy = Copy::new();
    let lock = std::fs::read_to_string(copy.path("images/lock.json")).unwrap();
    let filelock = lock.split("\"name\": \"filelock\"").nth(1).unwrap();
    let hash = filelock.split("\"sha256\": \"").nth(1).unwrap().split('"').next().unwrap();
    // The same file serves every platform and release.
    std::fs::write(copy.path("images/lock.json"), lock.replace(hash, &"0".repeat(64))).unwrap();
    copy.xtask(&["render"]).expect(0, &[]);
    let state = project().join("target/xtask").display().to_string();
    let outcome = copy.xtask_with(&["build", "--variant", "runtime", "--state", &state], &[]);
    outcome.expect(3, &["error[E_WHEEL_HASH]: ", "filelock"]);
    assert_eq!(outcome.stdout, "");
}
