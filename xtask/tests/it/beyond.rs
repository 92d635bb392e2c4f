//! More than one machine: what one engine pushed, a second and clean one builds upon, pulls and runs.

use crate::proxy::Proxy;
use crate::registry::Registry;
use crate::support::{Copy, Outcome, command_in, project, xtask_in};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Another machine: an engine with nothing in it, which is reached as a context of docker's. It goes with the value.
struct Machine {
    state: PathBuf,
    folder: tempfile::TempDir,
    path: String,
}

impl Machine {
    /// The name of the context.
    const NAME: &'static str = "beyond";

    fn start() -> Machine {
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engine-beyond");
        let tools = state.join("tools/engine/usr/bin").display().to_string();
        let path = format!("{tools}:{}", std::env::var("PATH").unwrap());
        let machine = Machine { state, folder: tempfile::tempdir().unwrap(), path };
        machine.engine("prune");
        machine.engine("up");
        let status: Value = serde_json::from_str(&machine.engine("status").stdout).unwrap();
        let plugins = machine.folder.path().join("cli-plugins");
        std::fs::create_dir(&plugins).unwrap();
        let buildx = machine.state.join("engine/client/cli-plugins/docker-buildx");
        std::os::unix::fs::symlink(buildx, plugins.join("docker-buildx")).unwrap();
        let to = format!("host=unix://{}", status["socket"].as_str().unwrap());
        machine.docker(&["--context", "default", "context", "create", Machine::NAME, "--docker", &to]);
        machine
    }

    fn engine(&self, action: &str) -> Outcome {
        let state = self.state.to_str().unwrap();
        let args = ["engine", action, "--engine", "private", "--state", state, "--json"];
        let outcome = xtask_in(&project(), &args, &[]);
        outcome.expect(0, &[]);
        outcome
    }

    /// Where it keeps wheels and layers.
    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn environment(&self, command: &mut Command) {
        let own = self.folder.path();
        command.env("PATH", &self.path).env("DOCKER_CONTEXT", Machine::NAME).env("DOCKER_CONFIG", own);
        command.env("XTASK_ENGINE", "docker").env("XTASK_STATE", own.join("state"));
        command.env("XTASK_CACHE", self.cache());
        for name in ["DOCKER_HOST", "BUILDX_BUILDER"] {
            command.env_remove(name);
        }
    }

    fn docker(&self, args: &[&str]) -> String {
        let mut command = Command::new("docker");
        self.environment(command.args(args));
        Outcome::of(command.output().unwrap()).expect(0, &[]).stdout.clone()
    }

    /// The program in a checkout there.
    fn xtask(&self, folder: &Path, args: &[&str]) -> Outcome {
        let mut command = command_in(folder, args, &[]);
        self.environment(&mut command);
        Outcome::of(command.output().unwrap())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.engine("prune");
        std::fs::remove_dir_all(&self.state).ok();
    }
}

/// Bytes of layers that were sent.
fn sent(proxy: &Proxy) -> u64 {
    ["PATCH", "PUT"].iter().flat_map(|of| proxy.seen(of, "blobs/uploads/")).map(|it| it.bytes).sum()
}

fn fetched(proxy: &Proxy, layers: &[String]) -> usize {
    layers.iter().filter(|layer| !proxy.seen("GET", layer).is_empty()).count()
}

/// A base is made and sent once: a machine that has nothing finds it by its digest, and adds its own.
#[test]
#[ignore = "needs the image, and starts an engine"]
fn a_second_machine_builds_upon_what_the_first_one_pushed() {
    let registry = Registry::start();
    let proxy = Proxy::start(registry.port);
    let at = format!("127.0.0.1:{}", proxy.port);
    let of_runtime = ["--registry", &at, "--variant", "runtime"];
    let push = [&["build", "--push", "--allow-dirty"][..], &of_runtime].concat();
    let mut start = Instant::now();
    let mut told = |what: &str| {
        println!("{what}: {} bytes sent, {:.0} s", sent(&proxy), start.elapsed().as_secs_f64());
        start = Instant::now();
    };
    xtask_in(&project(), &push, &[]).expect(0, &["nothing changed", "shared 127.0.0.1:"]);
    let first = sent(&proxy);
    assert!(first > 2_800_000_000, "{first}");
    told("the first machine");

    let second = Machine::start();
    told("a second engine");
    proxy.reset();
    // Roots are the same wherever they are made of the same packages; a mirror may have moved meanwhile.
    let roots = second.folder.path().join("state/roots");
    std::fs::create_dir_all(&roots).unwrap();
    let copied = Command::new("cp").arg("-rT").arg(project().join("target/xtask/roots")).arg(roots).status();
    assert!(copied.unwrap().success());
    let checkout = Copy::new();
    checkout.edit_file("templates/rootfs/usr/local/bin/entrypoint", "\n", "\n# of the second machine\n");
    let cache = format!("{at}/pytorch-cuda");
    let outcome = second.xtask(checkout.dir.path(), &[&push[..], &["--cache-to", &cache]].concat());
    outcome.expect(0, &["base of 2.15: 127.0.0.1:", "not-gpu-tested", "pushing "]);
    let base = outcome.stderr.split("base of 2.15: ").nth(1).unwrap().lines().next().unwrap();
    let layers = layers(&second, base);
    assert!((8..=12).contains(&layers.len()), "{layers:?}");
    told("the second machine");
    assert!(sent(&proxy) < 5_000_000, "{} bytes were sent", sent(&proxy));
    let again: Vec<_> = layers.iter().filter(|layer| !proxy.seen("PUT", layer).is_empty()).collect();
    assert_eq!(again, Vec::<&String>::new());
    // The root's layer was there beside the root.
    assert_eq!(fetched(&proxy, &layers), layers.len() - 1);
    assert_eq!(proxy.seen("PUT", "manifests/cache-runtime-2-15").len(), 1);
    let made = std::fs::read_dir(second.cache()).unwrap().count();
    assert_eq!(made, 0, "the second machine made layers of its own");

    // What the first pushed is tested and used there, and brings only what is new.
    proxy.reset();
    second
        .xtask(&project(), &[&["smoke", "--attach"][..], &of_runtime].concat())
        .expect(0, &["attached the report"]);
    xtask_in(&project(), &[&["publish", "--allow-dirty"][..], &of_runtime].concat(), &[])
        .expect(0, &["moved"]);
    let image = format!("{at}/pytorch-cuda:2.15-runtime");
    second.docker(&["image", "pull", "--quiet", &image]);
    assert_eq!(fetched(&proxy, &layers), 0);
    let run = [
        "run",
        "--rm",
        "--network",
        "none",
        &image,
        "python",
        "-c",
        "import torch; print(torch.__version__)",
    ];
    assert!(second.docker(&run).starts_with("2.15.0"));
    told("tested, published and run on the second machine");
}

/// The digests of the layers of an image of the registry.
fn layers(machine: &Machine, image: &str) -> Vec<String> {
    let manifest = machine.docker(&["buildx", "imagetools", "inspect", "--raw", image]);
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let digest = |layer: &Value| layer["digest"].as_str().unwrap().to_owned();
    manifest["layers"].as_array().unwrap().iter().map(digest).collect()
}
