//! `compose`, `k8s`, `slurm`: the files as they are kept, held against the real tools, and one of them started.

use crate::containers::{docker, until};
use crate::debian::unpacked_from_trixie;
use crate::support::{Copy, Outcome, docker_environment, golden, pinned, project, xtask_in};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every kind of file: its name and what is asked for. Nothing of this machine is in it: who runs it is said.
const FILES: &[(&str, &[&str])] = &[
    ("compose/devel.yaml", &["compose", "--variant=devel", "--user=1000:1000"]),
    (
        "compose/devel-ssh.yaml",
        &[
            "compose",
            "--variant=devel",
            "--user=1000",
            "--gpus=0,1",
            "--ssh-key=/keys/$me.pub",
            "--port=jupyter=9999",
            "--host=::1",
        ],
    ),
    (
        "compose/runtime-command.yaml",
        &[
            "compose",
            "--variant=runtime",
            "--user=1000",
            "--gpus=count=2",
            "--registry=registry.example.org/team",
            "--",
            "python",
            "-c",
            "print(\"$x: 'y'\")",
        ],
    ),
    ("compose/mlflow-host.yaml", &["compose", "--variant=mlflow", "--user=1000", "--network=host"]),
    ("compose/debug.yaml", &["compose", "--variant=debug", "--user=1000", "--gpus=none"]),
    ("k8s/runtime.yaml", &["k8s", "--variant=runtime", "--registry=registry.example.org/team"]),
    (
        "k8s/devel-ssh.yaml",
        &[
            "k8s",
            "--variant=devel",
            "--gpus=count=2",
            "--ssh-key=/keys/me.pub",
            "--datasets=imagenet",
            "--namespace=lab",
            "--shm-size=512m",
        ],
    ),
    ("k8s/mlflow.yaml", &["k8s", "--variant=mlflow"]),
    ("k8s/job.yaml", &["k8s", "--variant=devel", "--", "python", "train.py", "--name", "a: \"b\""]),
    ("slurm/devel-pyxis.sh", &["slurm", "--variant=devel", "--registry=registry.example.org/team"]),
    (
        "slurm/runtime-apptainer.sh",
        &[
            "slurm",
            "--variant=runtime",
            "--runtime=apptainer",
            "--nodes=2",
            "--gpus=count=4",
            "--partition=gpu",
            "--",
            "torchrun",
            "it's $x.py",
        ],
    ),
    (
        "slurm/mlflow-secret.sh",
        &["slurm", "--variant=mlflow", "--service=jupyter", "--token-file=/keys/to ken"],
    ),
];

fn printed(args: &[&str]) -> String {
    xtask_in(&project(), args, &[]).expect(0, &[]).stdout.clone()
}

fn of_kind(kind: &str) -> impl Iterator<Item = (&'static str, String)> {
    FILES.iter().filter(move |(name, _)| name.starts_with(kind)).map(|(name, args)| (*name, printed(args)))
}

#[test]
fn every_file_is_as_it_was() {
    for (name, args) in FILES {
        golden(name, &printed(args));
    }
}

/// Nothing is asked of anything outside, and a second time gives the same.
#[test]
fn files_come_from_the_catalog_alone() {
    let copy = Copy::new();
    for (_, args) in FILES {
        assert_eq!(copy.xtask(args).expect(0, &[]).stdout, printed(args));
    }
    copy.xtask(&["compose", "--variant=runtime", "--ssh-key=x"]).expect(2, &["E_UNKNOWN_NAME", "--ssh-key"]);
    copy.edit("image: prom/prometheus:v3.5.0", "image: prom/prometheus:latest");
    copy.xtask(&["compose", "--variant=runtime"])
        .expect(2, &["E_BASE_UNPINNED", "companions.prometheus.image"]);
}

/// The real Compose.
fn compose(folder: &Path, args: &[&str]) -> Outcome {
    let program =
        unpacked_from_trixie("docker-compose").join("usr/libexec/docker/cli-plugins/docker-compose");
    let environment = docker_environment(&project(), &[]);
    let line = format!("{environment} exec {} \"$@\"", program.display());
    let mut command = Command::new("sh");
    command.args(["-c", &line, "compose"]).args(args).current_dir(folder);
    Outcome::of(command.output().unwrap())
}

/// A compose file as Compose understands it, every profile included.
fn understood(folder: &Path, text: &str) -> Value {
    std::fs::write(folder.join("compose.yaml"), text).unwrap();
    let config = compose(folder, &["--profile", "*", "config", "--format", "json"]);
    assert_eq!(config.expect(0, &[]).stderr, "");
    serde_json::from_str(&config.stdout).unwrap()
}

#[test]
#[ignore = "fetches Compose and promtool"]
fn compose_and_promtool_understand_every_compose_file() {
    let folder = tempfile::tempdir().unwrap();
    let bad = printed(FILES[0].1).replace("shm_size:", "shmsize:");
    std::fs::write(folder.path().join("compose.yaml"), bad).unwrap();
    assert!(compose(folder.path(), &["config"]).expect(15, &["shmsize"]).stdout.is_empty());
    for (name, text) in of_kind("compose/") {
        let it = understood(folder.path(), &text);
        let services = it["services"].as_object().unwrap();
        for (service, its) in services {
            let image = its["image"].as_str().unwrap();
            assert!(
                image.contains("pytorch-cuda:2.15") || image.contains("@sha256:"),
                "{name}: {service}: {image}"
            );
            for port in its["ports"].as_array().into_iter().flatten() {
                assert!(
                    ["127.0.0.1", "::1"].contains(&port["host_ip"].as_str().unwrap()),
                    "{name}: {service}: {port}"
                );
            }
        }
        monitoring(folder.path(), &it);
    }
    // What a shell or Compose could read as a variable arrives as it was.
    let it = understood(folder.path(), &printed(FILES[2].1));
    assert_eq!(it["services"]["runtime"]["command"][2], "print(\"$$x: 'y'\")");
    let devices = &it["services"]["runtime"]["deploy"]["resources"]["reservations"]["devices"][0];
    assert_eq!((&devices["count"], &devices["driver"]), (&2.into(), &"nvidia".into()));
    let it = understood(folder.path(), &printed(FILES[1].1));
    assert_eq!(it["secrets"]["authorized-keys"]["file"], "/keys/$$me.pub");
    let devices = &it["services"]["devel"]["deploy"]["resources"]["reservations"]["devices"][0];
    assert_eq!(devices["device_ids"], serde_json::json!(["0", "1"]));
}

/// Prometheus takes its configuration, and Grafana's dashboard asks for what it scrapes.
fn monitoring(folder: &Path, compose: &Value) {
    let content = |name: &str| compose["configs"][name]["content"].as_str().unwrap().replace("$$", "$");
    let file = folder.join("prometheus.yml");
    std::fs::write(&file, content("prometheus")).unwrap();
    let promtool = unpacked_from_trixie("promtool").join("usr/bin/promtool");
    let check = |file: &Path| {
        Outcome::of(Command::new(&promtool).args(["check", "config"]).arg(file).output().unwrap())
    };
    check(&file).expect(0, &["SUCCESS"]);
    let bad = folder.join("bad.yml");
    std::fs::write(&bad, content("prometheus").replace("scrape_interval", "interval")).unwrap();
    check(&bad).expect(1, &["FAILED"]);

    let dashboard: Value = serde_json::from_str(&content("grafana-gpus")).unwrap();
    let metrics: Vec<&str> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["targets"][0]["expr"].as_str().unwrap())
        .collect();
    let wanted = ["GPU_UTIL", "FB_USED", "GPU_TEMP", "POWER_USAGE"].map(|it| format!("DCGM_FI_DEV_{it}"));
    assert_eq!(metrics, wanted);
    for metric in metrics {
        // A query is a rule's expression too, and this reader of them is the real one.
        let rules = format!("groups: [{{name: a, rules: [{{record: a:b, expr: '{metric}'}}]}}]");
        std::fs::write(folder.join("rules.yml"), rules).unwrap();
        let read = Command::new(&promtool).args(["check", "rules"]).arg(folder.join("rules.yml")).output();
        Outcome::of(read.unwrap()).expect(0, &["1 rules found"]);
    }
    let source: &str = &content("grafana-datasource");
    let uid = dashboard["panels"][0]["datasource"]["uid"].as_str().unwrap();
    assert!(source.contains(&format!("uid: {uid},")), "{source}");
}

#[test]
#[ignore = "fetches the schemas of Kubernetes"]
fn every_manifest_fits_the_schemas_of_kubernetes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.yaml");
    let validate = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let program = pinned("kubernetes-validate.txt").join("bin/kubernetes-validate");
        Outcome::of(Command::new(program).arg("--strict").arg(&file).output().unwrap())
    };
    validate(&printed(FILES[6].1).replace("emptyDir: {}", "emptydir: {}")).expect(1, &["emptydir"]);
    for (name, text) in of_kind("k8s/") {
        let outcome = validate(&text);
        outcome.expect(0, &["passed for resource namespace/"]);
        let passed = outcome.stderr.matches("passed for resource").count()
            + outcome.stdout.matches("passed for").count();
        assert_eq!(passed, text.matches("\nkind: ").count(), "{name}");
        // What Kubernetes' level `restricted` wants of a pod.
        for part in [
            "runAsNonRoot: true",
            "seccompProfile: {type: RuntimeDefault}",
            "allowPrivilegeEscalation: false",
            "capabilities: {drop: [ALL]}",
            "readOnlyRootFilesystem: true",
        ] {
            assert_eq!(text.matches(part).count(), 1, "{name}: {part}");
        }
    }
}

#[test]
#[ignore = "fetches shellcheck"]
fn every_batch_script_is_good_bash() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in of_kind("slurm/") {
        let file: PathBuf = folder.path().join(Path::new(name).file_name().unwrap());
        std::fs::write(&file, &text).unwrap();
        let bash = Command::new("bash").arg("-n").arg(&file).output().unwrap();
        Outcome::of(bash).expect(0, &[]);
        // A dollar sign of somebody's own word is meant as it stands.
        let shellcheck = pinned("shellcheck.txt").join("bin/shellcheck");
        let found =
            Outcome::of(Command::new(shellcheck).arg("--exclude=SC2016").arg(&file).output().unwrap());
        assert_eq!(found.expect(0, &[]).stdout, "");
    }
}

/// What Slurm's own programs would be given, told by doubles of them.
#[test]
fn a_batch_script_starts_what_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for (name, said) in [
        ("scontrol", "printf 'n1\\nn2\\n'"),
        ("srun", "printf '[%s]' \"$@\"; echo \" $PET_RDZV_ENDPOINT $PET_NNODES\""),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{said}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let run = |name: &str| {
        let (_, args) = FILES.iter().find(|(it, _)| *it == name).unwrap();
        std::fs::write(folder.path().join("job"), printed(args)).unwrap();
        let mut bash = Command::new("bash");
        bash.arg("job").current_dir(folder.path()).env("PATH", &path).env("DATASETS", "/data");
        for (name, value) in [
            ("SLURM_JOB_NODELIST", "n[1-2]"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_NNODES", "2"),
            ("SLURMD_NODENAME", "n1"),
        ] {
            bash.env(name, value);
        }
        Outcome::of(bash.output().unwrap()).expect(0, &[]).stdout.clone()
    };
    let at = folder.path().canonicalize().unwrap().display().to_string();
    let said = run("slurm/runtime-apptainer.sh").replace(&at, "/here");
    let words = "[apptainer][exec][--nv][--bind][/here:/workspace,/data:/datasets:ro][--pwd][/workspace]";
    assert!(said.starts_with(words), "{said}");
    assert!(said.ends_with("[/usr/local/bin/entrypoint][torchrun][it's $x.py] n1:20007 2\n"), "{said}");
    let said = run("slurm/devel-pyxis.sh").replace(&at, "/here");
    assert!(said.contains("[--container-image=registry.example.org#team/pytorch-cuda:2.15"), "{said}");
    assert!(said.contains("[--container-mounts=/here:/workspace,/data:/datasets:ro]"), "{said}");
    assert!(said.contains("ssh -J LOGIN-NODE -L 8888:127.0.0.1:8888 n1"), "{said}");
    let said = run("slurm/mlflow-secret.sh");
    assert!(said.contains(",/keys/to ken:/run/secrets/jupyter-token:ro]"), "{said}");
}

/// The file of a CPU run, started with the real Compose in the engine of the images: it answers, its folders are where they
/// should be, it belongs to the caller, and nothing is left of it.
#[test]
#[ignore = "needs the image; fetches Compose"]
fn a_compose_file_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["notebooks", "models", "secrets"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::write(path("secrets/jupyter-token"), "token-of-the-test\n").unwrap();
    std::fs::set_permissions(
        path("secrets/jupyter-token"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let options = [
        "--variant=devel",
        "--user=4321:4321",
        "--gpus=none",
        "--name=xtask-test-compose",
        "--port=jupyter=28890",
    ];
    // The private engine's containers have no network but the host's; any other engine would do with it too.
    let text = printed(&[&["compose", "--network=host"], &options[..]].concat());
    std::fs::write(path("compose.yaml"), text).unwrap();
    Command::new("chown").args(["--recursive", "4321:4321"]).arg(folder.path()).status().unwrap();
    let up = |args: &[&str]| {
        compose(folder.path(), &[&["--progress=plain", "up", "--detach", "--wait"], args].concat())
    };
    struct Down<'a>(&'a Path);
    impl Drop for Down<'_> {
        fn drop(&mut self) {
            compose(self.0, &["--profile", "*", "down", "--volumes", "--timeout=5"]);
        }
    }
    let down = Down(folder.path());
    // A folder that is not there is not made by root behind one's back.
    up(&[]).expect(1, &["datasets"]);
    assert!(!path("datasets").exists());
    std::fs::create_dir(path("datasets")).unwrap();
    up(&[]).expect(0, &[]);

    let container = "xtask-test-compose-devel-1";
    let exec = |words: &[&str]| docker(&[&["exec", container], words].concat());
    let write = "import json, urllib.request as r
head = {'Authorization': 'token token-of-the-test'}
body = json.dumps({'type': 'notebook', 'content': {'cells': [], 'metadata': {}, 'nbformat': 4, 'nbformat_minor': 5}})
print(r.urlopen(r.Request('http://127.0.0.1:28890/api/contents/a.ipynb', body.encode(), head, method='PUT')).status)";
    assert_eq!(exec(&["python", "-c", write]).expect(0, &[]).stdout, "201\n");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(path("notebooks/a.ipynb")).unwrap().uid(), 4321);
    exec(&["touch", "/datasets/x"]).expect(1, &["Read-only file system"]);
    exec(&[
        "sh",
        "-c",
        "touch /workspace/models/x /workspace/y ~/z && test $(df --output=size -BG /dev/shm | tail -1) = 2G",
    ])
    .expect(0, &[]);
    let form = "{{.HostConfig.RestartPolicy.Name}} {{.State.Health.Status}} {{.HostConfig.CapDrop}} {{.Config.User}}";
    let state = docker(&["inspect", "--format", form, container]);
    assert_eq!(state.stdout, "unless-stopped healthy [ALL] 4321:4321\n");
    let everything = docker(&["inspect", container]).stdout + &compose(folder.path(), &["logs"]).stdout;
    assert!(!everything.contains("token-of-the-test"));
    drop(down);
    until("an end", 10, || (docker(&["inspect", container]).code == Some(1)).then_some(()));
    let volumes = docker(&["volume", "ls", "--quiet", "--filter", "name=xtask-test-compose"]);
    assert_eq!(volumes.expect(0, &[]).stdout, "");
}
