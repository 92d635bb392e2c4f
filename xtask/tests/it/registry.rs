//! A real registry on loopback, and a root that is an image of it.

use crate::debian;
use crate::support::{Copy, docker, project, xtask_in};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Debian's docker-registry with a folder of its own; it ends with the value.
pub struct Registry {
    pub port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Registry {
    pub fn start() -> Registry {
        Registry::with("")
    }

    /// With more lines of configuration.
    pub fn with(more: &str) -> Registry {
        let program = debian::unpacked("docker-registry").join("usr/bin/docker-registry");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yml");
        // A port that is free may be somebody else's a moment later.
        for _ in 0..5 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let config = format!(
                "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n\
                 http: {{addr: \"127.0.0.1:{port}\"}}\n{more}",
                folder.path().join("data").display()
            );
            std::fs::write(&file, config).unwrap();
            let mut serve = Command::new(&program);
            serve.arg("serve").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = serve.spawn().unwrap();
            if answers(&mut process, port) {
                return Registry { port, process, _folder: folder };
            }
            process.kill().ok();
            process.wait().unwrap();
        }
        panic!("the registry does not answer");
    }

    pub fn name(&self, image: &str) -> String {
        format!("localhost:{}/{image}", self.port)
    }
}

/// Whether a server comes to listen on a port, and lives.
fn answers(process: &mut Child, port: u16) -> bool {
    for _ in 0..100 {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            // Whoever could not have the port has ended by now.
            std::thread::sleep(Duration::from_millis(100));
            return process.try_wait().unwrap().is_none();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The address of the bootstrapped root, as the program gives it to a build.
fn made_root() -> String {
    let commands =
        xtask_in(&project(), &["build", "--variant", "runtime", "--force", "--dry-run", "--json"], &[]);
    let commands: serde_json::Value = serde_json::from_str(&commands.expect(0, &[]).stdout).unwrap();
    let env = commands[0]["env"].as_array().unwrap();
    env.iter().find(|pair| pair[0] == "ROOT_DEBIAN").unwrap()[1].as_str().unwrap().to_owned()
}

/// The digest in what `imagetools inspect` prints.
fn digest(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("Digest:")).unwrap().trim()
}

#[test]
#[ignore = "builds a base on a root of a registry"]
fn a_root_of_a_registry_is_built_upon() {
    xtask_in(&project(), &["engine", "up"], &[]).expect(0, &[]);
    let registry = Registry::start();
    let image = registry.name("debian:trixie-slim");
    let folder = tempfile::tempdir().unwrap();
    // What a registry serves under that name: Debian without some of what our bases need, and with a user of its own.
    let dockerfile = "FROM made\nRUN dpkg --purge --force-depends tini openssl && rm -rf /workspace\n";
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    let fill = format!(
        "buildx build --provenance=false --network host --build-context made={} \
         --output type=image,name={image},push=true {}",
        made_root(),
        folder.path().display()
    );
    docker(&project(), &[], &project(), &fill).expect(0, &[]);
    let found = docker(&project(), &[], &project(), &format!("buildx imagetools inspect {image}"));
    let digest = digest(&found.expect(0, &[]).stdout).to_owned();

    let copy = Copy::new();
    only_runtime_on(&copy, &image, &digest);
    let state = project().join("target/xtask").display().to_string();
    let run = |args: &[&str]| xtask_in(copy.dir.path(), args, &[("XTASK_STATE", &state)]);
    run(&["lock", "--update"]).expect(0, &[]);
    run(&["render"]).expect(0, &[]);
    run(&["check"]).expect(0, &[]);
    run(&["build", "--variant", "runtime"]).expect(0, &["not-gpu-tested", "tagged on-registry:2.15-runtime"]);
    let inside = "run --rm --network none on-registry:2.15-runtime sh -c 'command -v tini && command -v openssl && id -un && ls -d /workspace'";
    let said = docker(&project(), &[], &project(), inside);
    assert_eq!(said.expect(0, &[]).stdout, "/usr/bin/tini\n/usr/bin/openssl\nuser\n/workspace\n");
    docker(&project(), &[], &project(), "image rm on-registry:2.15-runtime").expect(0, &[]);

    let at = ["plan", "--variant", "runtime", "--registry", &registry.name("")];
    run(&at).expect(0, &["build", "new"]);

    drop(registry);
    // It need not be waited for as long as a pipeline would.
    run(&["build", "--variant", "runtime", "--force", "--retry-budget", "1s"])
        .expect(3, &["error[E_NETWORK]", &image, "2.15 runtime"]);
}

/// One release, one variant, one root, in a repository of their own.
fn only_runtime_on(copy: &Copy, image: &str, digest: &str) {
    let text = std::fs::read_to_string(copy.path("variants.yaml")).unwrap();
    let section = |name: &str| {
        let start = text.find(&format!("\n{name}:\n")).unwrap() + 1;
        let rest = &text[start..];
        let end = rest[1..].find("\n\n").map_or(rest.len(), |end| end + 2);
        rest[..end].to_owned()
    };
    let release =
        "releases:\n  \"2.15\":\n    torch: \"2.15.0\"\n    torchvision: \"0.29.2\"\n    cuda: cu132\n";
    let root = format!(
        "roots:\n  debian:\n    image: {image}\n    digest: {digest}\n    suite: trixie\n    python: \"3.13\"\n"
    );
    let variant = "variants:\n  runtime:\n    about: x\n    from: base\n";
    let text = text
        .replace(&section("roots"), &root)
        .replace(&section("releases"), release)
        .replace(&section("variants"), variant)
        .replace("repository: pytorch-cuda", "repository: on-registry");
    std::fs::write(copy.path("variants.yaml"), text).unwrap();
}
