//! `run`: with a double of docker what it would start and what it refuses; for real a container that answers.

use crate::containers::{Container, Volume, docker, until};
use crate::order::Doubles;
use crate::support::{Outcome, golden, project, state, xtask_in};
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A project with a work folder, a key and a token that everybody can read.
fn doubles() -> Doubles {
    let doubles = Doubles::new();
    for (path, text) in [("key.pub", "ssh-ed25519 AAAA me\n"), ("token", "secret-word\n")] {
        std::fs::write(doubles.copy.path(path), text).unwrap();
    }
    for folder in ["", "my work"] {
        std::fs::create_dir_all(doubles.copy.path(folder)).unwrap();
        std::fs::set_permissions(doubles.copy.path(folder), PermissionsExt::from_mode(0o777)).unwrap();
    }
    doubles
}

/// As nobody in particular, and on a machine of any kind.
fn run(doubles: &Doubles, args: &[&str]) -> Outcome {
    let first: &[&str] = &["run", "--user", "1234:1234"];
    doubles.run(&[first, args].concat(), &[])
}

#[test]
fn the_command_can_be_pasted_and_is_as_it_was() {
    let doubles = doubles();
    let cases: [(&str, &[&str]); 5] = [
        ("devel", &["--variant", "devel"]),
        (
            "devel-ssh",
            &[
                "--variant=devel",
                "--detach",
                "--gpus=0,1",
                "--ssh-key=key.pub",
                "--token-file=token",
                "--work=my work",
            ],
        ),
        ("debug-open", &["--variant=debug", "--host", "--port=jupyter=9999", "--name=mine", "--shm-size=8g"]),
        ("mlflow-host", &["--variant=mlflow", "--network=host", "--registry=registry.example.org/team"]),
        (
            "runtime-command",
            &["--variant=runtime", "--cdi", "--datasets=my work", "--", "python", "-c", "print('$x')"],
        ),
    ];
    for (name, args) in cases {
        let outcome = run(&doubles, &[&["--dry-run"], args].concat());
        outcome.expect(0, &[]);
        assert!(!outcome.stdout.contains("secret-word"));
        let root = doubles.copy.dir.path().display().to_string();
        golden(&format!("run/{name}.sh"), &outcome.stdout.replace(&root, "/project"));
        // A shell reads the line as the words that would be started.
        let json = run(&doubles, &[&["--dry-run", "--json"], args].concat());
        let words: Vec<String> = serde_json::from_str(&json.expect(0, &[]).stdout).unwrap();
        let read =
            Command::new("sh").args(["-c", &format!("printf '%s\\n' {}", outcome.stdout)]).output().unwrap();
        assert_eq!(Outcome::of(read).stdout.lines().collect::<Vec<_>>(), words);
    }
    assert!(!doubles.all_calls().lines().any(|call| call.starts_with("run")), "{}", doubles.all_calls());
}

#[test]
fn what_would_fail_is_refused_before_anything_starts() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--port=jupyter={}", busy.local_addr().unwrap().port());
    let doubles = doubles();
    std::fs::create_dir(doubles.copy.path("closed")).unwrap();
    std::fs::set_permissions(doubles.copy.path("closed"), PermissionsExt::from_mode(0o755)).unwrap();
    let devel: &[&str] = &["--variant=devel", "--gpus=none"];
    let refused = |args: &[&str], code: i32, said: &[&str]| {
        let outcome = run(&doubles, &[devel, args].concat());
        outcome.expect(code, said);
        assert_eq!(outcome.stderr.matches("\n  help: ").count(), outcome.stderr.matches("error[").count());
    };
    refused(&[&port], 2, &["error[E_PORT_TAKEN]: jupyter: 127.0.0.1:", "--port jupyter="]);
    refused(&["--work=nowhere"], 2, &["error[E_PATH]: --work: ", "mkdir -p "]);
    refused(&["--work=token"], 2, &["error[E_PATH]: --work: ", "is not a folder"]);
    let closed = ["error[E_WORKDIR_NOT_WRITABLE]: --work: ", "runs as uid 1234, which cannot write there"];
    refused(&["--work=closed"], 2, &closed);
    refused(
        &["--datasets=nowhere", "--token-file=gone"],
        2,
        &["error[E_PATH]: --datasets", "error[E_PATH]: --token-file"],
    );
    let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
    std::fs::write(doubles.copy.path("key"), private).unwrap();
    refused(&["--ssh-key=key"], 2, &["error[E_PATH]: --ssh-key: ", "is a private key", "/key.pub"]);
    refused(&["--ssh-key=token"], 2, &["error[E_PATH]: --ssh-key: ", "holds no public key"]);
    refused(&["--service=jupiter"], 2, &["error[E_UNKNOWN_NAME]: --service", "did you mean `jupyter`"]);
    run(&doubles, &["--variant=devel", "--gpus=many"]).expect(2, &["`many` is no GPU"]);

    // It was free before, and is again.
    drop(busy);
    let taken = run(&doubles.say("container.rc", "0"), &[devel, &[&port]].concat());
    taken.expect(2, &["error[E_NAME_TAKEN]: pytorch-cuda-devel: ", "docker rm --force pytorch-cuda-devel"]);
}

#[test]
fn an_image_that_is_not_there_is_refused_unless_a_registry_has_it() {
    let doubles = doubles().say("image.rc", "1");
    let args = ["--variant=runtime", "--gpus=none", "--", "true"];
    run(&doubles, &args)
        .expect(2, &["error[E_NO_IMAGE]: pytorch-cuda:", "cargo xtask build --variant runtime"]);
    assert!(!doubles.all_calls().contains("run "), "{}", doubles.all_calls());
    run(&doubles, &[&["--registry=registry.example.org"], &args[..]].concat()).expect(0, &[]);
    assert!(doubles.all_calls().contains("registry.example.org/pytorch-cuda:"), "{}", doubles.all_calls());
}

/// The exit status is the command's: docker has taken the program's place.
#[test]
fn the_status_is_the_containers() {
    let doubles = doubles().say("smoke.rc", "7");
    run(&doubles, &["--variant=runtime", "--gpus=none", "--", "sh", "-c", "exit 7"]).expect(7, &[]);
}

#[test]
fn a_container_that_ends_is_told_with_its_log() {
    let doubles =
        doubles().say("exec.rc", "1").say("inspect", "false").say("logs", "entrypoint: error[E_STATE]: no");
    let args = ["--variant=devel", "--gpus=none", "--detach", "--port=jupyter=48889"];
    run(&doubles, &args).expect(1, &["error[E_CONTAINER]", "it ended", "entrypoint: error[E_STATE]"]);
}

#[test]
fn what_the_engine_cannot_start_is_told_and_taken_back() {
    let driver =
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].";
    let args = ["--variant=devel", "--gpus=none", "--detach", "--port=jupyter=48890"];
    for (said, code, id) in [(driver, 3, "E_GPU_NOT_ATTACHED"), ("docker: no space", 1, "E_CONTAINER")] {
        let doubles = doubles().say("smoke.rc", "125").say("smoke.err", said);
        run(&doubles, &args).expect(code, &[&format!("error[{id}]: pytorch-cuda-devel: {said}")]);
        assert!(doubles.all_calls().ends_with("rm pytorch-cuda-devel\n"), "{}", doubles.all_calls());
    }
}

#[test]
fn opening_it_to_others_is_warned_of() {
    let outcome = run(&doubles(), &["--variant=devel", "--host", "--dry-run"]);
    outcome.expect(0, &["warning: its services listen on 0.0.0.0", "--publish 0.0.0.0:8888:8888"]);
}

/// Only where there is no GPU can it be seen that none is there.
#[test]
fn without_a_gpu_one_has_to_say_so() {
    if Path::new("/dev/nvidiactl").exists() || Path::new("/dev/dxg").exists() {
        return;
    }
    let args = ["--variant=runtime", "--", "true"];
    run(&doubles(), &args).expect(3, &["error[E_GPU_NOT_ATTACHED]: --gpus: DRIVER_MISSING: ", "--gpus none"]);
}

/// The program itself, in the engine of the images.
fn real(args: &[&str]) -> Outcome {
    let state = state();
    let state: Vec<&str> = state.iter().map(String::as_str).collect();
    xtask_in(&project(), &[&state[..], &["run"], args].concat(), &[])
}

/// R12, R13, R14: a container in the background answers at the address that is printed, lets the key in, writes to the
/// caller's folder as the caller, and keeps its token and host keys over a restart.
#[test]
#[ignore = "needs the image"]
fn a_container_in_the_background_is_as_promised() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(path("work")).unwrap();
    let own = Command::new("chown").args(["4321:4321", &path("work")]).status().unwrap();
    assert!(own.success());
    let home = Volume("xtask-test-run-home-4321".into());
    // A client that makes its own key; it is in the host's network too.
    let client = Container::start(&["--network", "host"], "devel", &["sleep", "600"]);
    client.output(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/tmp/key"]);
    std::fs::write(path("key.pub"), client.output(&["cat", "/tmp/key.pub"])).unwrap();
    let args = [
        "--variant=devel",
        "--detach",
        "--gpus=none",
        "--name=xtask-test-run",
        "--user=4321:4321",
        "--port=jupyter=28888",
        "--port=ssh=22222",
        "--ssh-config",
        &format!("--ssh-key={}", path("key.pub")),
        &format!("--work={}", path("work")),
    ];
    let json = real(&[&args[..], &["--json"]].concat());
    let container = Container { id: "xtask-test-run".into() };
    let started: Value = serde_json::from_str(&json.expect(0, &[]).stdout).unwrap();
    let page = started["pages"][0][1].as_str().unwrap().to_owned();
    assert!(page.starts_with("http://127.0.0.1:28888/lab?token="), "{page}");
    let answers = |page: &str| {
        let status = [
            "curl",
            "--silent",
            "--location",
            "--cookie",
            "",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            page,
        ];
        client.exec(&status).stdout
    };
    assert_eq!(answers(&page), "200");
    assert_ne!(answers(&format!("{}x", page.replace("/lab", "/api/status"))), "200");

    assert_eq!(started["ssh"], "ssh -p 22222 user@127.0.0.1");
    let ssh = |command: &str| {
        let line = started["ssh"].as_str().unwrap();
        let quiet =
            "-i /tmp/key -oBatchMode=yes -oStrictHostKeyChecking=accept-new -oUserKnownHostsFile=/tmp/known";
        client.output(&[
            "bash",
            "-c",
            &format!("{} {quiet} '{command}'", line.replacen("ssh ", "ssh -oLogLevel=ERROR ", 1)),
        ])
    };
    assert_eq!(ssh("id -u; touch /workspace/made; pwd"), "4321\n/home/user\n");
    let made = Command::new("stat").args(["--format=%u:%g", &path("work/made")]).output().unwrap();
    assert_eq!(Outcome::of(made).stdout, "4321:4321\n");
    let entry = started["ssh_config"].as_str().unwrap();
    client.output(&[
        "bash",
        "-c",
        &format!("echo '{entry}' > /tmp/config; ssh -F /tmp/config -G xtask-test-run | grep -x 'port 22222'"),
    ]);

    real(&args).expect(2, &["error[E_PORT_TAKEN]: jupyter", "error[E_PORT_TAKEN]: ssh"]);
    docker(&["restart", &container.id]).expect(0, &[]);
    until("the service after a restart", 90, || (answers(&page) == "200").then_some(()));
    // Strict: the host keys are those of before.
    until("ssh after a restart", 30, || {
        let words = "ssh -p22222 -i/tmp/key -oBatchMode=yes -oStrictHostKeyChecking=yes -oUserKnownHostsFile=/tmp/known user@127.0.0.1 true";
        (client.exec(&["bash", "-c", words]).code == Some(0)).then_some(())
    });
    drop(container);
    // A new one from the same folder and volume still has them.
    let again = real(&args).expect(0, &[]).stdout.clone();
    let container = Container { id: "xtask-test-run".into() };
    assert!(again.contains(page.split("token=").nth(1).unwrap()), "{again}");
    client.output(&["bash", "-c", "ssh -p22222 -i/tmp/key -oBatchMode=yes -oStrictHostKeyChecking=yes -oUserKnownHostsFile=/tmp/known user@127.0.0.1 true"]);
    drop((container, home));
}

/// R12: a token that was given in a file opens the page, and nobody can read it from the outside.
#[test]
#[ignore = "needs the image"]
fn a_token_from_a_file_is_in_no_list_of_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "token-of-the-test\n").unwrap();
    Command::new("chown").args(["--recursive", "4321"]).arg(folder.path()).status().unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    let work = format!("--work={}", folder.path().display());
    let file = format!("--token-file={}", token.display());
    let args = [
        "--variant=devel",
        "--detach",
        "--gpus=none",
        "--name=xtask-test-token",
        "--user=4321",
        "--port=jupyter=28889",
    ];
    let outcome = real(&[&args[..], &[&work, &file]].concat());
    let container = Container { id: "xtask-test-token".into() };
    outcome.expect(0, &["http://127.0.0.1:28889/lab"]);
    let status = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:28889/api/status?token=token-of-the-test').status)";
    assert_eq!(container.output(&["python", "-c", status]), "200\n");
    let everything =
        format!("{}{}{}", docker(&["inspect", &container.id]).stdout, container.logs(), outcome.stdout);
    assert!(everything.contains("/run/secrets/jupyter-token") && !everything.contains("token-of-the-test"));
    let lines = container.output(&["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]);
    assert!(!lines.contains("token-of-the-test"), "{lines}");
    drop(container);
    Volume("xtask-test-token-home-4321".into());
}

/// R13: in the foreground the status is the command's, and /dev/shm is as big as it should be.
#[test]
#[ignore = "needs the image"]
fn a_command_in_the_foreground_has_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let work = format!("--work={}", folder.path().display());
    let data = format!("--datasets={}", folder.path().display());
    let script = "df --block-size=1G --output=size /dev/shm | tail -1; touch /datasets/x; grep -h ^CapBnd /proc/self/status; exit 7";
    let args = [
        "--variant=runtime",
        "--gpus=none",
        "--name=xtask-test-command",
        &work,
        &data,
        "--",
        "bash",
        "-c",
        script,
    ];
    let outcome = real(&args);
    outcome.expect(7, &["Read-only file system"]);
    let said: Vec<&str> = outcome.stdout.split_whitespace().collect();
    assert_eq!(said, ["2", "CapBnd:", "0000000000000000"], "{outcome:#?}");
    assert_eq!(docker(&["container", "inspect", "xtask-test-command"]).code, Some(1));
    docker(&["volume", "rm", "xtask-test-command-home-1000"]).expect(0, &[]);
}

/// R13: with the capability that debug alone keeps, somebody who may do so looks into a process that is not their own.
#[test]
#[ignore = "needs the image"]
fn a_process_of_debug_can_be_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let work = format!("--work={}", folder.path().display());
    let sleep = ["--", "python", "-c", "import time\ndef waits(): time.sleep(600)\nwaits()"];
    let args =
        ["--variant=debug", "--gpus=none", "--name=xtask-test-debug", "--user=4321", "--detach", &work];
    let outcome = real(&[&args[..], &sleep].concat());
    let container = Container { id: "xtask-test-debug".into() };
    outcome.expect(0, &["xtask-test-debug runs"]);
    let pid = until("the command", 30, || {
        Some(container.exec(&["pgrep", "--full", "^python -c"]).stdout.trim().to_owned())
            .filter(|it| !it.is_empty())
    });
    let look = |user: &str| docker(&["exec", "--user", user, &container.id, "py-spy", "dump", "--pid", &pid]);
    until("the function", 30, || look("0").stdout.contains("waits").then_some(()));
    assert_ne!(look("1000").code, Some(0));
    drop(container);
    docker(&["volume", "rm", "xtask-test-debug-home-4321"]).expect(0, &[]);
}
