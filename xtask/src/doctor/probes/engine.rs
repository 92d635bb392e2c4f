//! Which engine really answers, whatever the name of its program.

use crate::doctor::facts::{Engine, Kind, State};
use crate::doctor::source::{Ran, Source};
use crate::runner::Step;
use serde_json::Value;

/// Docker's folder of specifications where it does not tell: the default of the CDI libraries.
const CDI_FOLDERS: &[&str] = &["/etc/cdi", "/var/run/cdi"];

pub fn probe(source: &Source) -> Engine {
    let version = source.docker("docker", "which engine has docker's name", ["--version"]);
    if version.is_none() && !source.is_dry() {
        return podman(source);
    }
    let version = version.unwrap_or_default().out;
    let info = source.docker("docker-info", "which engine answers", ["info", "--format", "{{json .}}"]);
    let info = info.unwrap_or_default();
    let engine = match version.starts_with("podman") {
        true => of_podman(&info, "docker"),
        false => of_docker(&info, source),
    };
    match engine.version.is_empty() {
        true => Engine { version: client(&version), ..engine },
        false => engine,
    }
}

/// Podman by its own name, where nothing has docker's.
fn podman(source: &Source) -> Engine {
    let step = Step::new("which engine answers", ["podman", "info", "--format", "json"]);
    match source.run("podman-info", step) {
        Some(ran) => of_podman(&ran, "podman"),
        None => Engine { program: "docker", ..Engine::default() },
    }
}

/// `28.2.2` of `Docker version 28.2.2, build e6534b4`; `4.9.4` of `podman version 4.9.4`.
fn client(text: &str) -> String {
    let version = text.split("version ").nth(1).and_then(|rest| rest.split([',', '\n', ' ']).next());
    version.unwrap_or_default().to_owned()
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(ran.out.trim()).unwrap_or_default()
}

/// The first line that is not a remark.
fn said(text: &str) -> String {
    let remark = |line: &&str| {
        line.is_empty() || line.starts_with("WARNING") || line.starts_with("Emulate Docker CLI using podman")
    };
    text.lines().map(str::trim).find(|line| !remark(line)).unwrap_or_default().to_owned()
}

fn of_podman(ran: &Ran, program: &'static str) -> Engine {
    let info = json(ran);
    let version = text(&info, "/version/Version");
    Engine {
        kind: Kind::Podman,
        state: if version.is_empty() { silence(&ran.err) } else { State::Answers },
        version,
        program,
        said: said(&ran.err),
        cgroup_driver: text(&info, "/host/cgroupManager"),
        cdi_folders: CDI_FOLDERS.iter().map(|&folder| folder.to_owned()).collect(),
        root: text(&info, "/store/graphRoot"),
        kernel: text(&info, "/host/kernel"),
        rootless: info.pointer("/host/security/rootless").and_then(Value::as_bool).unwrap_or(false),
        ..Engine::default()
    }
}

fn of_docker(ran: &Ran, source: &Source) -> Engine {
    let info = json(ran);
    let names = |value: Option<&Value>| match value {
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let version = text(&info, "/ServerVersion");
    let errors = names(info.get("ServerErrors")).join("; ");
    // In WSL a stand-in for the client says on standard output where the real one is.
    let spoken = if info.is_null() { format!("{}\n{}", ran.err, ran.out) } else { ran.err.clone() };
    let said = if errors.is_empty() { said(&spoken) } else { errors };
    let root = text(&info, "/DockerRootDir");
    let security = names(info.get("SecurityOptions"));
    let rootless = security.iter().any(|option| option == "name=rootless");
    let answers = !version.is_empty();
    Engine {
        kind: match () {
            () if source.is_private() => Kind::Private,
            () if !answers => silent_kind(&said, source),
            () if text(&info, "/OperatingSystem") == "Docker Desktop" => Kind::Desktop,
            () if root.starts_with("/var/snap/docker") => Kind::Snap,
            // Docker's client at podman's socket.
            () if root.ends_with("containers/storage") => Kind::Podman,
            () if rootless => Kind::Rootless,
            () => Kind::Engine,
        },
        state: if answers { State::Answers } else { silence(&said) },
        version,
        program: "docker",
        said,
        cgroup_driver: text(&info, "/CgroupDriver"),
        runtimes: names(info.get("Runtimes")),
        cdi_folders: names(info.get("CDISpecDirs")),
        cdi_devices: cdi_devices(&info),
        root,
        kernel: text(&info, "/KernelVersion"),
        rootless,
    }
}

/// What the daemon has found itself (Docker 28.3 and newer): `{"Source": "cdi", "ID": "nvidia.com/gpu=0"}`.
fn cdi_devices(info: &Value) -> Vec<String> {
    let list = info.get("DiscoveredDevices").and_then(Value::as_array);
    let ids = list.into_iter().flatten().map(|device| text(device, "/ID"));
    ids.filter(|id| id.starts_with("nvidia.com/")).collect()
}

fn silence(said: &str) -> State {
    match said.contains("permission denied") {
        true => State::Denied,
        false => State::Silent,
    }
}

/// Which engine it is that does not answer, by the address that was tried.
fn silent_kind(said: &str, source: &Source) -> Kind {
    if said.contains(".docker/desktop") || said.contains("WSL 2 distro") {
        return Kind::Desktop;
    }
    if said.contains("/run/user/") {
        return Kind::Rootless;
    }
    let is_only_from_snap = source.exists("/snap/bin/docker") && !source.exists("/usr/bin/docker");
    if is_only_from_snap { Kind::Snap } else { Kind::Engine }
}
