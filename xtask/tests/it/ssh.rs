//! R10 and R11 with a real client: it has the network of the server, and keys that it makes itself.

use crate::containers::{Container, Volume, docker, run, until};
use crate::support::{Outcome, pinned};
use std::process::Command;
use std::time::Duration;

/// A machine with an SSH client, the key `/tmp/good` and the key `/tmp/other`.
struct Client {
    machine: Container,
}

/// How the client is started: it knows no server and asks nobody.
const SSH: [&str; 9] = [
    "ssh",
    "-F/dev/null",
    "-oBatchMode=yes",
    "-oStrictHostKeyChecking=no",
    "-oUserKnownHostsFile=/dev/null",
    "-oLogLevel=ERROR",
    "-oIdentitiesOnly=yes",
    "-p2222",
    "-oConnectTimeout=10",
];

impl Client {
    fn new() -> Client {
        let machine = Container::start(&[], "devel", &["sleep", "600"]);
        let keys =
            "ssh-keygen -q -t ed25519 -N '' -f /tmp/good && ssh-keygen -q -t rsa -b 2048 -N '' -f /tmp/other";
        machine.output(&["bash", "-c", keys]);
        Client { machine }
    }

    fn key(&self, name: &str) -> String {
        self.machine.output(&["cat", &format!("/tmp/{name}.pub")])
    }

    /// A server that the good key may log in to, and that is ready.
    fn server(&self, options: &[&str]) -> Container {
        let key = format!("SSH_PUBLIC_KEY={}", self.key("good"));
        self.server_with(&[&["--env", &key], options].concat())
    }

    fn server_with(&self, options: &[&str]) -> Container {
        let network = format!("container:{}", self.machine.id);
        let server =
            Container::start(&[&["--network", &network][..], options].concat(), "devel", &["sleep", "600"]);
        let logs = server.says("Server listening");
        assert!(logs.contains("Server listening"), "{logs}");
        server
    }

    /// A session with a key.
    fn ssh(&self, key: &str, words: &[&str]) -> Outcome {
        let identity = format!("-i/tmp/{key}");
        self.machine.exec(&[&SSH[..], &[&identity], words].concat())
    }

    /// What a command prints in a session of the good key.
    #[track_caller]
    fn output(&self, command: &str) -> String {
        self.ssh("good", &["user@127.0.0.1", command]).expect(0, &[]).stdout.clone()
    }
}

/// The lines on which a server shows its keys.
fn fingerprints(logs: &str) -> Vec<String> {
    logs.lines().filter(|line| line.starts_with("ssh: host key of type")).map(str::to_owned).collect()
}

/// R11
#[test]
#[ignore = "needs the image"]
fn the_good_key_logs_in_and_nothing_else_does() {
    let client = Client::new();
    let server = client.server(&[]);
    assert_eq!(client.output("id -u"), "1000\n");
    client.ssh("other", &["user@127.0.0.1", "true"]).expect(255, &["Permission denied (publickey)"]);
    client.ssh("good", &["root@127.0.0.1", "true"]).expect(255, &["Permission denied (publickey)"]);
    let password = ["-oPubkeyAuthentication=no", "-oPreferredAuthentications=password,keyboard-interactive"];
    client
        .ssh("good", &[&password[..], &["user@127.0.0.1", "true"]].concat())
        .expect(255, &["Permission denied (publickey)"]);
    let logs = server.logs();
    assert_eq!(fingerprints(&logs).len(), 2, "{logs}");
}

/// R11: off unless a key is given.
#[test]
#[ignore = "needs the image"]
fn without_a_key_nothing_listens() {
    let listening =
        run(&[], "devel", &["bash", "-c", "sleep 2; cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A '"]);
    assert_eq!(listening.expect(1, &[]).stdout, "0\n");
}

/// R10
#[test]
#[ignore = "needs the image"]
fn every_kind_of_session_has_the_environment_of_docker_exec() {
    let client = Client::new();
    let values =
        ["A=x \"y\" $z 'w' \\n\\", "LINES_OF_IT=one\ntwo\n\nfour", "my.setting=1", "EMPTY=", "UMLAUT=ü €"];
    let options: Vec<&str> = values.iter().flat_map(|value| ["--env", value]).collect();
    let server = client.server(&options);
    // Byte for byte, with what only a session has and what shells add left out.
    let script = r#"
import os, shutil
own = {"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_PUBLIC_KEY", "TERM", "USER", "LOGNAME", "SHELL", "SHLVL", "PWD", "_", "OLDPWD", "LS_COLORS"}
print(sorted((k, v) for k, v in os.environb.items() if k.decode() not in own), shutil.which("python"))
"#;
    server.output(&["bash", "-c", "cat > /tmp/environment.py <<< \"$0\"", script]);
    let command = "python /tmp/environment.py";
    let expected = server.output(&["python", "/tmp/environment.py"]);
    for value in
        ["x \"y\" $z", "one\\ntwo\\n\\nfour", "my.setting", "EMPTY", "/opt/venv/bin/python", "CUDA_HOME"]
    {
        assert!(expected.contains(value), "{value}: {expected}");
    }
    assert_eq!(client.output(command), expected);
    // A login shell, as tmux and a terminal of Jupyter start it, and one that SSH starts.
    assert_eq!(server.output(&["bash", "-lc", command]), expected);
    let terminal = client.ssh("good", &["-tt", "user@127.0.0.1", "bash -lc 'python /tmp/environment.py'"]);
    assert_eq!(terminal.expect(0, &[]).stdout.replace("\r\n", "\n"), expected);
    let script = format!("echo '{command}; exit' | {} -i/tmp/good -luser -tt 127.0.0.1", SSH.join(" "));
    let login = client.machine.exec(&["bash", "-c", &script]);
    assert!(login.expect(0, &[]).stdout.replace("\r\n", "\n").contains(&expected), "{login:#?} {expected}");
}

/// R10: what is for the services alone stays out of sessions, and nothing of the environment is in a file.
#[test]
#[ignore = "needs the image"]
fn secrets_are_copied_nowhere() {
    let client = Client::new();
    let server =
        client.server(&["--env", "JUPYTER_TOKEN=canary-1", "--env", "AWS_SECRET_ACCESS_KEY=canary-2"]);
    let environment = client.output("env");
    assert!(!environment.contains("canary-1") && !environment.contains("SSH_PUBLIC_KEY"), "{environment}");
    assert!(environment.contains("canary-2"), "{environment}");
    let find = "grep -rlsE 'canary-[12]' /dev/shm /etc /home /run /tmp /var /workspace; ps axww | grep -c 'canary-[12]'";
    assert_eq!(server.exec(&["bash", "-c", find]).expect(1, &[]).stdout, "0\n");
}

/// R11: what remote editors need.
#[test]
#[ignore = "needs the image"]
fn sftp_and_local_forwarding_work_and_others_do_not() {
    let client = Client::new();
    let server = client.server(&[]);
    let sftp = SSH.join(" ").replacen("ssh", "sftp", 1).replace("-p2222", "-P2222 -i/tmp/good");
    let copy = format!(
        "echo -e 'put /etc/debian_version /workspace/v\nget /workspace/v /tmp/v' | {sftp} user@127.0.0.1 && cmp /tmp/v /etc/debian_version"
    );
    client.machine.exec(&["bash", "-c", &copy]).expect(0, &[]);
    server.output(&["test", "-s", "/workspace/v"]);

    // A server on the other side, reached through the forwarded port alone.
    let serve = "cd /workspace && exec python -m http.server --bind 127.0.0.1 8000";
    docker(&["exec", "--detach", &server.id, "bash", "-c", serve]).expect(0, &[]);
    let ssh = SSH.join(" ");
    let forward = format!(
        "{ssh} -i/tmp/good -luser -N -oExitOnForwardFailure=yes -L 127.0.0.1:9000:127.0.0.1:8000 127.0.0.1 & \
         for i in $(seq 50); do python -c 'import urllib.request; print(urllib.request.urlopen(\"http://127.0.0.1:9000/v\").status)' 2>/dev/null && break; sleep 0.2; done; kill %1"
    );
    assert_eq!(client.machine.output(&["bash", "-c", &forward]), "200\n");
    // Nothing is opened on the server's side, and no agent is handed on.
    let remote = client
        .ssh("good", &["-oExitOnForwardFailure=yes", "-R", "9001:127.0.0.1:8000", "user@127.0.0.1", "true"]);
    remote.expect(255, &["remote port forwarding failed"]);
    let agent = format!(
        "eval $(ssh-agent) >/dev/null; {ssh} -i/tmp/good -luser -A 127.0.0.1 'echo [$SSH_AUTH_SOCK]'; ssh-agent -k >/dev/null"
    );
    assert_eq!(client.machine.output(&["bash", "-c", &agent]), "[]\n");
}

/// R11: keys as people give them; what is no key is told by the number of its line.
#[test]
#[ignore = "needs the image"]
fn several_keys_with_comments_and_windows_line_ends_are_taken() {
    let client = Client::new();
    let (good, other) = (client.key("good"), client.key("other"));
    let good = good.rsplit_once(' ').unwrap().0; // without its comment
    let text = format!("# mine\r\n\r\n{}\r\nssh-ed25519 AAAAbroken me\r\n  {}", good.trim(), other.trim());
    let keys = format!("SSH_PUBLIC_KEY={text}");
    let server = client.server_with(&["--env", &keys]);
    assert!(
        server.logs().contains("ssh: warning: line 4 of SSH_PUBLIC_KEY is no public key and is left out")
    );
    client.ssh("good", &["user@127.0.0.1", "true"]).expect(0, &[]);
    client.ssh("other", &["user@127.0.0.1", "true"]).expect(0, &[]);
}

/// R11: a file that is named, and files that are mounted at the place for them.
#[test]
#[ignore = "needs the image"]
fn keys_come_from_files_too() {
    let client = Client::new();
    let folder = tempfile::tempdir().unwrap();
    for (name, folder_name) in [("good", "named"), ("other", "mounted")] {
        std::fs::create_dir(folder.path().join(folder_name)).unwrap();
        std::fs::write(folder.path().join(folder_name).join("key"), client.key(name)).unwrap();
    }
    let open = Command::new("chmod").args(["-R", "a+rX"]).arg(folder.path()).status().unwrap();
    assert!(open.success());
    let named = format!("--volume={}:/keys:ro", folder.path().join("named").display());
    let mounted =
        format!("--volume={}:/etc/ssh/authorized_keys.d:ro", folder.path().join("mounted").display());
    let server = client.server_with(&[&named, "--env", "SSH_PUBLIC_KEY_FILE=/keys/key"]);
    client.ssh("good", &["user@127.0.0.1", "true"]).expect(0, &[]);
    client.ssh("other", &["user@127.0.0.1", "true"]).expect(255, &[]);
    drop(server);
    let _server = client.server_with(&[&mounted]);
    client.ssh("other", &["user@127.0.0.1", "true"]).expect(0, &[]);
    client.ssh("good", &["user@127.0.0.1", "true"]).expect(255, &[]);
}

/// R11
#[test]
#[ignore = "needs the image"]
fn what_cannot_be_meant_is_refused_with_one_way_out() {
    let ssh = |options: &[&str], said: &str| {
        let refused = run(options, "devel", &["/opt/services/ssh"]);
        refused.expect(2, &[said]);
        assert!(!refused.stderr.contains("listening"), "{refused:#?}");
    };
    ssh(&[], "ssh: error[E_SSH_KEY]: there is no public key");
    ssh(&["--env", "SSH_PUBLIC_KEY=AAAA"], "ssh: error[E_SSH_KEY]: there is no public key");
    ssh(
        &["--env", "SSH_PUBLIC_KEY_FILE=/nothing"],
        "ssh: error[E_SSH_KEY]: /nothing is no file that uid 1000 can read",
    );
    ssh(&["--env", "SSH_PORT=0"], "ssh: error[E_PORT]: SSH_PORT=0");
    ssh(&["--env", "SSH_LISTEN_ADDRESS=x y"], "ssh: error[E_SSH_ADDRESS]: SSH_LISTEN_ADDRESS=x y");
    ssh(&["--user", "0"], "ssh: error[E_SSH_ROOT]");
    run(&[], "runtime", &["/opt/services/ssh"])
        .expect(2, &["ssh: error[E_NOT_INSTALLED]: this image has no ssh"]);
    let weak = "ssh-keygen -q -t rsa -b 1024 -N '' -f /tmp/weak; SSH_PUBLIC_KEY=$(cat /tmp/weak.pub) /opt/services/ssh";
    run(&[], "devel", &["bash", "-c", weak])
        .expect(2, &["line 1 of SSH_PUBLIC_KEY is an RSA key of less than 2048 bits"]);
}

/// R11: a container has its own identity; a volume keeps it.
#[test]
#[ignore = "needs the image"]
fn host_keys_are_made_at_the_first_start_and_kept_in_a_volume() {
    let client = Client::new();
    let shown = |options: &[&str]| {
        let found = fingerprints(&client.server(options).logs());
        assert_eq!(found.len(), 2, "{found:?}");
        found
    };
    let (first, second) = (shown(&[]), shown(&[]));
    assert!(first.iter().all(|line| !second.contains(line)), "{first:?} {second:?}");
    for place in ["/workspace", "/home/user"] {
        let volume = Volume::new();
        let mount = volume.at(place);
        assert_eq!(shown(&[&mount]), shown(&[&mount]), "{place}");
    }
    // In a folder that is named, whoever the container runs as.
    let volume = Volume::new();
    let options = [&volume.at("/keys"), "--env", "SSH_HOST_KEY_DIR=/keys"];
    docker(&[
        "run",
        "--rm",
        "--user",
        "0",
        "--network",
        "none",
        &volume.at("/keys"),
        &crate::containers::image("devel"),
        "chmod",
        "1777",
        "/keys",
    ])
    .expect(0, &[]);
    assert_eq!(shown(&options), shown(&options));
    let server = client.server(&options);
    assert_eq!(
        server.output(&["bash", "-c", "stat -c %a /keys/ssh_host_*_key; cat /keys/.gitignore; ls -A /keys"]),
        "600\n600\n*\n.gitignore\nssh_host_ed25519_key\nssh_host_rsa_key\n"
    );
}

/// R11, R14: any uid, nothing writable but the folders for what does not last, no capability.
#[test]
#[ignore = "needs the image"]
fn ssh_starts_for_any_user_in_a_container_that_may_do_nothing() {
    let client = Client::new();
    let hard = [
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/run",
    ];
    for (options, uid) in [
        (&["--user", "4242:4242"][..], "4242"),
        (&["--user", "4242:0"], "4242"),
        (&[&["--user", "4242:4242"], &hard[..]].concat(), "4242"),
        (&hard[..], "1000"),
        (&["--tmpfs", "/run"], "1000"),
        (&["--env", "HOME=/workspace/a b"], "1000"),
    ] {
        let server = client.server(options);
        let who =
            "id -u; test -w \"$HOME\" && test -w . && python -c 'import getpass; print(getpass.getuser())'";
        assert_eq!(client.output(who), format!("{uid}\nuser\n"), "{options:?}");
        let terminal = client.ssh("good", &["-tt", "user@127.0.0.1", "tty; env"]);
        assert!(
            terminal.expect(0, &["/dev/pts/"]).stdout.matches("NSS_WRAPPER").count() == 0,
            "{terminal:#?}"
        );
        server.exec(&["healthcheck"]).expect(0, &[]);
    }
}

/// R10: nothing is ignored that is not everywhere, such as the SIGINT of Ctrl-C or the SIGPIPE that ends a pipeline.
#[test]
#[ignore = "needs the image"]
fn sessions_have_the_usual_signals() {
    let client = Client::new();
    let server = client.server(&[]);
    let ignored = server.output(&["grep", "SigIgn", "/proc/self/status"]);
    assert_eq!(client.output("grep SigIgn /proc/self/status"), ignored);
}

/// R13: whoever looks whether the port is open does not keep the owner out.
#[test]
#[ignore = "needs the image"]
fn probes_are_not_taken_for_attacks() {
    let client = Client::new();
    let server = client.server(&[]);
    let probe = "for i in $(seq 60); do exec 3<>/dev/tcp/127.0.0.1/2222; exec 3>&-; done";
    client.machine.output(&["bash", "-c", probe]);
    server.output(&["bash", "-c", "for i in $(seq 20); do healthcheck || exit; done"]);
    client.ssh("good", &["user@127.0.0.1", "true"]).expect(0, &[]);
    // The health check itself does not connect.
    let count = |server: &Container| server.logs().matches("Connection").count();
    // A busy server drops some of so many at once, and tells it in other words.
    let before = until("a log that has settled", 60, || {
        let before = count(&server);
        std::thread::sleep(Duration::from_secs(2));
        (before > 0 && count(&server) == before).then_some(before)
    });
    server.output(&["healthcheck"]);
    assert_eq!(count(&server), before);
}

/// R11: the hardened policy for this very OpenSSH.
#[test]
#[ignore = "needs the image, fetches ssh-audit"]
fn ssh_audit_finds_nothing() {
    let client = Client::new();
    // It is Python alone, so that of the image can run it.
    let library = pinned("ssh-audit.txt").join("lib").read_dir().unwrap().next().unwrap().unwrap().path();
    let server = client.server(&[&format!("--volume={}/site-packages:/audit:ro", library.display())]);
    let version = server.exec(&["/usr/sbin/sshd", "-V"]).stderr;
    let version = version.trim().strip_prefix("OpenSSH_").unwrap().split('p').next().unwrap();
    let policy = format!("Hardened OpenSSH Server v{version} (version 1)");
    let main =
        "import sys; sys.path.insert(0, '/audit'); from ssh_audit.ssh_audit import main; sys.exit(main())";
    let audit = server.exec(&["python", "-c", main, "-P", &policy, "-p", "2222", "127.0.0.1"]);
    audit.expect(0, &[&policy, "Passed"]);
}
