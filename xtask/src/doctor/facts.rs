//! What the probes found out, as plain values.

use crate::apt::OsRelease;
use crate::catalog::Platform;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that is judged.
#[derive(Debug)]
pub struct Facts {
    /// The system.
    pub system: System,
    /// The driver and its GPUs.
    pub driver: Driver,
    /// Whatever answers to docker's name, or podman.
    pub engine: Engine,
    /// The NVIDIA Container Toolkit.
    pub toolkit: Toolkit,
    /// CDI specifications of NVIDIA GPUs, and those that cannot be read.
    pub cdi: Vec<Spec>,
    /// The image in question.
    pub image: Option<Image>,
    /// The container in question.
    pub container: Option<Container>,
    /// Bytes that the host's `/dev/shm` holds.
    pub shm: Option<u64>,
    /// Bytes that are free where the engine keeps its data; none where that is not on this machine.
    pub free: Option<u64>,
}

/// The system.
#[derive(Debug)]
pub struct System {
    /// Which.
    pub os: OsRelease,
    /// Whether it is Linux inside of Windows.
    pub wsl: bool,
    /// None where no images are made for such a machine.
    pub platform: Option<Platform>,
}

/// The driver, seen from several sides.
#[derive(Debug)]
pub struct Driver {
    /// NVIDIA's display and 3D controllers on the PCI bus; none where the bus cannot be read.
    pub cards: Option<usize>,
    /// Version of the kernel module that is loaded.
    pub module: Option<String>,
    /// Version of the libraries on disk.
    pub libraries: Option<String>,
    /// What `nvidia-smi` says.
    pub smi: Smi,
    /// The newest CUDA that the driver runs by itself: `12.4`.
    pub cuda: Option<String>,
    /// Whether `/dev/nvidiactl` is there.
    pub control: bool,
    /// Whether `/dev/nvidia-uvm` is there.
    pub uvm: bool,
    /// Whether `/dev/dxg`, WSL's way to the GPU, is there.
    pub dxg: bool,
}

/// What `nvidia-smi` says.
#[derive(Debug, PartialEq)]
pub enum Smi {
    /// It is not installed.
    Missing,
    /// The GPUs.
    Gpus(Vec<Gpu>),
    /// Its libraries do not fit the kernel module; their version, where it tells.
    Mismatch(Option<String>),
    /// It works and there is no device.
    NoDevices,
    /// It cannot speak to the driver, in its own words.
    Failed(String),
}

/// One GPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gpu {
    /// As `--gpus device=` takes it.
    pub index: String,
    /// As the driver names it.
    pub name: String,
    /// The driver's version.
    pub driver: String,
    /// Its compute capability, where the driver tells: `8.6`.
    pub capability: Option<String>,
    /// Whether it is split into slices.
    pub mig: bool,
    /// The slices: `1g.10gb MIG-…`.
    pub slices: Vec<String>,
}

/// Whatever runs containers here.
#[derive(Debug, Default, Serialize)]
pub struct Engine {
    /// Which one.
    pub kind: Kind,
    /// Whether it answers.
    pub state: State,
    /// Version of the server, or of the client that got no answer; empty where there is none.
    pub version: String,
    /// The program that starts containers: `docker` or `podman`.
    pub program: &'static str,
    /// Why it does not answer, in its own words.
    pub said: String,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// Names of its runtimes.
    pub runtimes: Vec<String>,
    /// Where it looks for CDI specifications; empty where it does not.
    pub cdi_folders: Vec<String>,
    /// CDI devices of NVIDIA that it found.
    pub cdi_devices: Vec<String>,
    /// Where it keeps images.
    pub root: String,
    /// The kernel that it runs on, which is another one in a virtual machine.
    pub kernel: String,
    /// Whether it runs without root's rights.
    pub rootless: bool,
}

/// Which engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Kind {
    #[default]
    Engine,
    Desktop,
    Snap,
    Rootless,
    Podman,
    /// The one that this program fetches and starts.
    Private,
}

/// Whether an engine can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// There is none.
    #[default]
    Missing,
    /// There is a client and nobody answers it.
    Silent,
    /// This user may not speak to it.
    Denied,
    /// It answers.
    Answers,
}

/// The NVIDIA Container Toolkit.
#[derive(Debug, Default)]
pub struct Toolkit {
    /// Its version; none where it is not installed.
    pub version: Option<String>,
    /// What its configuration says of `no-cgroups`.
    pub no_cgroups: bool,
}

/// One CDI specification.
#[derive(Debug)]
pub struct Spec {
    /// Where it is.
    pub path: String,
    /// Its devices, or why it cannot be read.
    pub content: Result<SpecContent, String>,
}

/// What is of use in a specification.
#[derive(Debug, PartialEq)]
pub struct SpecContent {
    /// `nvidia.com/gpu=0`
    pub devices: Vec<String>,
    /// The driver whose libraries it mounts.
    pub driver: Option<String>,
}

/// An image, or the plan of one.
#[derive(Debug, Default)]
pub struct Image {
    /// What it is called.
    pub name: String,
    /// Whether the engine has it already.
    pub here: bool,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// The lowest driver, by our label.
    pub driver_floor: Option<String>,
    /// GPU architectures, by our label.
    pub arch_list: Vec<String>,
    /// Its CUDA: `13.2`.
    pub cuda: Option<String>,
    /// Bytes that it takes while it is fetched, packed and unpacked, where they are known.
    pub bytes: Option<u64>,
}

/// A container that runs.
#[derive(Debug, Default)]
pub struct Container {
    /// What it is called.
    pub name: String,
    /// Bytes of its `/dev/shm`; none where it uses the host's.
    pub shm: Option<u64>,
    /// The driver capabilities that were asked for with its GPUs.
    pub capabilities: Vec<String>,
    /// What `nvidia-smi` says inside; none where it is not there.
    pub smi: Option<Smi>,
}

impl Driver {
    /// The GPUs.
    pub fn gpus(&self) -> &[Gpu] {
        match &self.smi {
            Smi::Gpus(gpus) => gpus,
            _ => &[],
        }
    }

    /// The version of the driver that runs.
    pub fn version(&self) -> Option<&str> {
        self.gpus().first().map(|gpu| gpu.driver.as_str()).or(self.module.as_deref())
    }
}

impl Engine {
    /// Whether it has its GPUs from CDI specifications.
    pub fn uses_cdi(&self) -> bool {
        let has_runtime = self.runtimes.iter().any(|name| name == "nvidia");
        self.kind == Kind::Podman || !self.cdi_devices.is_empty() && !has_runtime
    }
}
