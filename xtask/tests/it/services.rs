//! R13: what runs beside the command, and what becomes of it.

use crate::containers::{Container, docker, run, until};
use std::time::Duration;

/// A key that may log in to nothing; with it, ssh is asked for.
const KEY: &str =
    "SSH_PUBLIC_KEY=ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl test";

/// Waits in the container until sshd listens.
const LISTENING: &str = "until /opt/services/ssh --check 2>/dev/null; do sleep 0.1; done";

/// A service of a test, `/opt/services/fake`: the folder that holds it, and the option that mounts it. It answers while
/// there is no `/tmp/broken`.
fn fake() -> (tempfile::TempDir, String) {
    let script = "#!/bin/bash\ncase $1 in --available) exit 0 ;; --check) [[ ! -e /tmp/broken ]]; exit ;; esac\n\
                  echo it ignores $(grep SigIgn /proc/self/status)\nexec sleep 600\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fake");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mount = format!("--volume={}:/opt/services/fake:ro", file.display());
    (folder, mount)
}

/// What a container that has ended said, and how it ended.
fn ended(container: &Container) -> (String, String) {
    docker(&["wait", &container.id]).expect(0, &[]);
    (container.inspect("{{.State.ExitCode}}"), container.logs())
}

/// R13
#[test]
#[ignore = "needs the image"]
fn the_exit_code_is_the_commands_while_ssh_listens() {
    let outcome = run(&["--env", KEY], "devel", &["bash", "-c", &format!("{LISTENING}; exit 7")]);
    outcome.expect(7, &["ssh: Server listening on 0.0.0.0 port 2222."]);
    assert_eq!(outcome.stdout, "");
    let killed = run(&["--env", KEY], "devel", &["bash", "-c", &format!("{LISTENING}; kill -9 $$")]);
    killed.expect(137, &[]);
}

/// R13
#[test]
#[ignore = "needs the image"]
fn stopping_takes_less_than_five_seconds_and_is_no_kill() {
    // A command that wants a moment to save its work: it gets it, and so do the services.
    let saving =
        format!("trap 'sleep 1; echo saved; exit 3' TERM; {LISTENING}; echo ready; sleep 600 & wait");
    let container = Container::start(&["--env", KEY], "devel", &["bash", "-c", &saving]);
    container.says("ready");
    let took = container.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let (code, logs) = ended(&container);
    assert_eq!(code, "3");
    assert!(logs.contains("saved") && logs.contains("ssh: Received signal 15; terminating."), "{logs}");
    assert!(!logs.contains("unhealthy"), "{logs}");

    let container = Container::start(&["--env", KEY], "devel", &["/opt/services/ssh"]);
    container.says("Server listening");
    let took = container.stop();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// R13
#[test]
#[ignore = "needs the image"]
fn a_thousand_children_leave_no_zombie() {
    // Each is left behind by its parent, which is gone before it ends; and the command collects nobody else's.
    let script = format!(
        "import subprocess, time; subprocess.run(['bash', '-c', '{LISTENING}; for i in $(seq 1000); do (sleep 0.01 &); done']); \
         time.sleep(1); print(subprocess.run('ps axo stat= | grep -c ^Z', shell=True, capture_output=True).stdout)"
    );
    let outcome = run(&["--env", KEY], "devel", &["python", "-c", &script]);
    assert_eq!(outcome.expect(0, &[]).stdout, "b'0\\n'\n");
}

/// R13: a command that waits for whatever it has started waits for that alone.
#[test]
#[ignore = "needs the image"]
fn the_command_has_no_children_that_it_has_not_started() {
    let wait = "import os, time; time.sleep(1); os.waitpid(-1, 0)";
    let outcome = run(&["--env", KEY], "devel", &["python", "-c", wait]);
    outcome.expect(1, &["ChildProcessError"]);
}

/// R13: what a service starts can be interrupted, as a kernel of Jupyter must be; and its lines bear its name.
#[test]
#[ignore = "needs the image"]
fn services_ignore_no_signal_and_are_told_apart_in_the_log() {
    let (_folder, mount) = fake();
    let command = "grep SigIgn /proc/self/status; sleep 1";
    let outcome = run(&[&mount, "--env", "SERVICES=fake"], "runtime", &["bash", "-c", command]);
    let ignored = outcome.expect(0, &[]).stdout.trim().replace('\t', " ");
    assert_eq!(outcome.stderr, format!("fake: it ignores {ignored}\n"));
}

/// R13: Ctrl-C in the terminal of the command is for the command.
#[test]
#[ignore = "needs the image"]
fn services_have_a_session_of_their_own() {
    let sessions = format!("{LISTENING}; ps -o sid= -p $$; ps -o sid= -C sshd");
    let outcome = run(&["--env", KEY], "devel", &["bash", "-c", &sessions]);
    let sessions: Vec<&str> = outcome.expect(0, &[]).stdout.lines().map(str::trim).collect();
    assert_eq!(sessions.len(), 2);
    assert_ne!(sessions[0], sessions[1]);
}

/// R13
#[test]
#[ignore = "needs the image"]
fn a_service_that_is_not_there_is_refused_before_anything_starts() {
    let outcome = run(&["--env", "SERVICES=ssh nothing", "--env", KEY], "devel", &["echo", "started"]);
    outcome.expect(64, &["entrypoint: error[E_SERVICE]: SERVICES names nothing: this image has "]);
    assert!(outcome.stderr.trim().ends_with("ssh"), "{outcome:#?}");
    assert_eq!(outcome.stdout, "");
    let outcome = run(&["--env", "SERVICES=ssh"], "runtime", &["echo", "started"]);
    outcome.expect(64, &["entrypoint: error[E_SERVICE]: SERVICES names ssh: this image has none"]);
    assert_eq!(outcome.stdout, "");
    // Machines that are rented put the owner's key into every container.
    let outcome = run(&["--env", KEY], "runtime", &["echo", "started"]);
    outcome.expect(0, &["entrypoint: warning: a public key is given, and this image has no ssh"]);
    assert_eq!(outcome.stdout, "started\n");
    let closed = ["--read-only", "--env", KEY];
    run(&closed, "devel", &["echo", "started"]).expect(64, &["entrypoint: error[E_STATE]", "tmpfs on /tmp"]);
}

/// R13: names with commas, spaces and line ends between them; one that is asked for twice starts once.
#[test]
#[ignore = "needs the image"]
fn services_are_named_as_people_write_lists() {
    for services in ["SERVICES=ssh", "SERVICES= ssh,ssh ", "SERVICES=\nssh,\n"] {
        let command = format!("{LISTENING}; ps -C sshd -o pid= | wc -l");
        let outcome = run(&["--env", services, "--env", KEY], "devel", &["bash", "-c", &command]);
        assert_eq!(outcome.expect(0, &[]).stdout, "1\n", "{services}");
        assert!(!outcome.stderr.contains("the service ssh ended"), "{outcome:#?}");
    }
}

/// How the engine judges the container.
fn health(container: &Container) -> String {
    container.inspect("{{.State.Health.Status}}")
}

/// Health checks that follow each other quickly.
const QUICK: [&str; 3] = ["--health-interval=1s", "--health-start-period=1s", "--health-retries=2"];

/// R13
#[test]
#[ignore = "needs the image"]
fn a_container_is_healthy_until_a_service_that_was_asked_for_ends() {
    let container =
        Container::start(&[&QUICK[..], &["--env", KEY]].concat(), "devel", &["bash", "-c", "sleep 600"]);
    until("healthy", 20, || (health(&container) == "healthy").then_some(()));
    container.output(&["pkill", "sshd"]);
    until("unhealthy", 20, || (health(&container) == "unhealthy").then_some(()));
    let logs = container.logs();
    assert_eq!(logs.matches("entrypoint: warning: the service ssh ended with status 0").count(), 1, "{logs}");
    assert_eq!(container.inspect("{{.State.Running}}"), "true");
    let why = container.inspect("{{json .State.Health.Log}}");
    assert!(why.contains("ssh: nothing listens on port 2222"), "{why}");
}

/// R13: a service that cannot start is told, and the command goes on.
#[test]
#[ignore = "needs the image"]
fn a_container_whose_service_refuses_is_unhealthy() {
    let container =
        Container::start(&[&QUICK[..], &["--env", "SERVICES=ssh"]].concat(), "devel", &["sleep", "600"]);
    container.says("the service ssh ended with status 2");
    assert!(container.logs().contains("ssh: error[E_SSH_KEY]"));
    until("unhealthy", 20, || (health(&container) == "unhealthy").then_some(()));
}

/// R13: every variant has the check, and nothing to check is nothing wrong.
#[test]
#[ignore = "needs the image"]
fn a_container_without_services_is_healthy() {
    for variant in ["runtime", "devel"] {
        let container = Container::start(&[], variant, &["sleep", "600"]);
        until("healthy", 20, || (health(&container) == "healthy").then_some(()));
    }
}

/// R13: a service is a command too, and counts as one that was asked for.
#[test]
#[ignore = "needs the image"]
fn a_service_in_the_foreground_is_checked_and_starts_once() {
    let (_folder, mount) = fake();
    let container = Container::start(&[&mount, "--env", "SERVICES=fake"], "runtime", &["/opt/services/fake"]);
    container.says("it ignores");
    container.output(&["healthcheck"]);
    assert_eq!(container.output(&["bash", "-c", "sleep 1; cat /proc/[0-9]*/comm | grep -c sleep"]), "1\n");
    container.output(&["touch", "/tmp/broken"]);
    container.exec(&["healthcheck"]).expect(1, &["fake: does not answer"]);
    drop(container);
    // Without a word in SERVICES too.
    let container = Container::start(&[&mount], "runtime", &["/opt/services/fake"]);
    container.says("it ignores");
    container.output(&["touch", "/tmp/broken"]);
    container.exec(&["healthcheck"]).expect(1, &["fake: does not answer"]);
}

/// R13: whatever a former start has left does not matter.
#[test]
#[ignore = "needs the image"]
fn a_container_starts_again() {
    let container = Container::start(&[&QUICK[..], &["--env", KEY]].concat(), "devel", &["sleep", "600"]);
    for _ in 0..2 {
        until("healthy", 20, || (health(&container) == "healthy").then_some(()));
        docker(&["kill", &container.id]).expect(0, &[]);
        docker(&["start", &container.id]).expect(0, &[]);
    }
    let logs = container.says("listening");
    let keys: Vec<&str> = logs.lines().filter(|line| line.contains("key of type ed25519")).collect();
    assert!(keys.len() > 1 && keys.iter().all(|line| line == &keys[0]), "{logs}");
}

/// R13: a folder for what does not last that containers share.
#[test]
#[ignore = "needs the image"]
fn containers_that_share_their_tmp_keep_apart() {
    let volume = crate::containers::Volume::new();
    let shared = volume.at("/tmp");
    let open = ["--user", "0", &shared];
    run(&open, "devel", &["chmod", "1777", "/tmp"]).expect(0, &[]);
    let with = Container::start(&[&shared, "--env", KEY], "devel", &["sleep", "600"]);
    with.says("Server listening");
    let without = Container::start(&[&shared], "devel", &["sleep", "600"]);
    without.output(&["healthcheck"]);
    with.output(&["healthcheck"]);
    with.output(&["pkill", "sshd"]);
    with.exec(&["healthcheck"]).expect(1, &["ssh: nothing listens on port 2222"]);
    without.output(&["healthcheck"]);
}
