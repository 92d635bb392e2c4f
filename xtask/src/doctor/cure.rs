//! What to do about a verdict: sentences with commands, by engine and system.

use super::facts::{Driver, Engine, Kind, Smi, System};

/// What an engine is called.
pub fn name(engine: &Engine) -> String {
    let kind = match engine.kind {
        Kind::Engine => "Docker Engine",
        Kind::Desktop => "Docker Desktop",
        Kind::Snap => "docker from snap",
        Kind::Rootless => "rootless Docker Engine",
        Kind::Podman if engine.program == "docker" => "podman under the name docker",
        Kind::Podman => "podman",
        Kind::Private => "the private engine",
    };
    format!("{kind} {}", engine.version).trim_end().to_owned()
}

/// How a GPU is attached.
pub fn attach(engine: &Engine) -> &'static str {
    match engine.uses_cdi() {
        true => "`--device nvidia.com/gpu=all`",
        false => "`--gpus all`",
    }
}

/// How the daemon is restarted; podman has none.
fn restart(engine: &Engine) -> Option<&'static str> {
    match engine.kind {
        Kind::Engine => Some("sudo systemctl restart docker"),
        Kind::Rootless => Some("systemctl --user restart docker"),
        Kind::Snap => Some("sudo snap restart docker"),
        Kind::Desktop | Kind::Podman | Kind::Private => None,
    }
}

/// How an engine is brought to answer.
pub fn start(engine: &Engine, system: &System) -> Vec<String> {
    let line = match (engine.kind, system.wsl) {
        (Kind::Desktop, true) => {
            "start Docker Desktop in Windows, and turn this distribution on in Settings → Resources → WSL integration"
        }
        (Kind::Desktop, false) => "`systemctl --user start docker-desktop`",
        (Kind::Rootless, _) => "`systemctl --user start docker`",
        (Kind::Snap, _) => "`sudo snap start docker`",
        (Kind::Podman, _) => "`podman info` tells what is wrong with its settings",
        (_, true) => "`sudo service docker start`",
        (_, false) => "`sudo systemctl start docker`; `journalctl -u docker` tells why it does not",
    };
    std::iter::once(line.to_owned()).chain(private(system)).collect()
}

/// What there is beside an engine of the user's.
fn private(system: &System) -> Option<String> {
    let possible = ["debian", "ubuntu"].contains(&system.os.id.as_str()) && !system.wsl;
    possible.then(|| "without a GPU: `cargo xtask engine up`, as root, brings a private engine".to_owned())
}

/// How an engine is installed.
pub fn install_engine(system: &System) -> Vec<String> {
    let line = match (system.wsl, system.os.id.as_str()) {
        (true, _) => {
            "install Docker Desktop in Windows and turn this distribution on in Settings → Resources → \
                      WSL integration"
                .to_owned()
        }
        (false, "debian") => "`sudo apt-get install docker.io docker-cli docker-buildx`".to_owned(),
        (false, "ubuntu") => "`sudo apt-get install docker.io docker-buildx`".to_owned(),
        (false, "fedora" | "rhel" | "centos" | "rocky" | "almalinux") => {
            "`sudo dnf install podman`".to_owned()
        }
        (false, "arch") => "`sudo pacman -S docker docker-buildx`".to_owned(),
        _ => "install Docker Engine or podman".to_owned(),
    };
    std::iter::once(line).chain(private(system)).collect()
}

/// How this user gets to an engine that runs.
pub fn permission(engine: &Engine) -> Vec<String> {
    match engine.kind {
        Kind::Snap => vec![
            "`sudo addgroup --system docker && sudo adduser $USER docker`, then log in again".to_owned(),
            "`sudo snap disable docker && sudo snap enable docker`".to_owned(),
        ],
        Kind::Podman => vec!["run it as yourself, without `sudo` and without DOCKER_HOST".to_owned()],
        _ => vec![
            "`sudo usermod -aG docker $USER`, then log in again (members of the group can become root)"
                .to_owned(),
        ],
    }
}

/// How the driver is installed where there is none.
pub fn install_driver(system: &System) -> Vec<String> {
    let line = match system.os.id.as_str() {
        "ubuntu" => "`sudo ubuntu-drivers install`, then reboot",
        "debian" => {
            "with the components contrib, non-free and non-free-firmware: `sudo apt-get install nvidia-driver`, then reboot"
        }
        "fedora" => "from RPM Fusion: `sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda`, then reboot",
        "arch" => "`sudo pacman -S nvidia-open nvidia-utils`, then reboot",
        _ => "install NVIDIA's driver for Linux, then reboot",
    };
    vec![line.to_owned()]
}

/// What to do about a driver that is installed and does not work.
pub fn load_driver(driver: &Driver) -> Vec<String> {
    let log = "`sudo dmesg | grep -i nvrm` has the driver's own words".to_owned();
    match (&driver.module, &driver.smi) {
        (None, _) => vec![
            "`sudo modprobe nvidia` tells why the module does not load".to_owned(),
            "after an update of the kernel: `dkms status` tells whether the module was built for it".to_owned(),
            "`mokutil --sb-state`: with Secure Boot, the module's key must be enrolled".to_owned(),
        ],
        (Some(_), Smi::Missing) => vec![
            "install the driver's programs in the version of the module: the package nvidia-smi, nvidia-utils-… \
             or nvidia-driver-cuda"
                .to_owned(),
        ],
        (Some(_), _) => vec![
            log,
            "a card that this driver does not serve needs another one: an older branch, or the open kernel module"
                .to_owned(),
        ],
    }
}

/// How a driver becomes newer.
pub fn upgrade_driver(system: &System, floor: &str) -> String {
    match system.wsl {
        true => {
            format!("or upgrade NVIDIA's driver in Windows to {floor} or newer; install none inside of WSL")
        }
        false => format!("or upgrade the host's driver to {floor} or newer"),
    }
}

/// How the toolkit is installed, and made known to the engine.
pub fn install_toolkit(system: &System, engine: &Engine) -> Vec<String> {
    let package = "nvidia-container-toolkit";
    let line = match system.os.id.as_str() {
        "debian" | "ubuntu" => format!("`sudo apt-get install {package}`"),
        "fedora" | "rhel" | "centos" | "rocky" | "almalinux" => format!("`sudo dnf install {package}`"),
        "arch" => format!("`sudo pacman -S {package}`"),
        "opensuse-leap" | "opensuse-tumbleweed" | "sles" => format!("`sudo zypper install {package}`"),
        _ => format!("install {package}"),
    };
    let line =
        format!("{line}; where no such package is found, NVIDIA's installation guide tells its source");
    let next = match engine.kind {
        Kind::Podman => vec![generate()],
        _ => configure(engine),
    };
    [vec![line], next].concat()
}

/// How the engine learns of an installed toolkit.
pub fn configure(engine: &Engine) -> Vec<String> {
    match engine.kind {
        Kind::Rootless => vec![
            "`nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json`"
                .to_owned(),
            "`sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place`".to_owned(),
            "`systemctl --user restart docker`".to_owned(),
        ],
        _ => vec![
            "`sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker`"
                .to_owned(),
        ],
    }
}

/// How specifications are made.
pub fn generate() -> String {
    "`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`".to_owned()
}

/// The same over a file that is there, which an engine with a daemon may have read already.
pub fn regenerate(engine: &Engine, path: &str) -> Vec<String> {
    let format = if path.ends_with(".json") { " --format=json" } else { "" };
    let line = format!(
        "`sudo nvidia-ctk cdi generate{format} --output={path}`, again after each upgrade of the driver"
    );
    let restart = restart(engine).map(|command| format!("`{command}`"));
    std::iter::once(line).chain(restart).collect()
}

/// How docker from snap is brought to a GPU.
pub fn snap() -> Vec<String> {
    vec![
        "`sudo snap refresh docker`, then `sudo snap logs docker.nvidia-container-toolkit` tells whether it saw the driver"
            .to_owned(),
        "or take Docker Engine instead: `sudo snap remove docker`, then install it from the distribution's packages; \
         the toolkit's configuration in /etc/docker is not read by the snap"
            .to_owned(),
    ]
}

/// How another engine than Docker Desktop's virtual machine is taken.
pub fn desktop() -> Vec<String> {
    vec![
        "`docker context use default` for the host's own Docker Engine; install it where there is none"
            .to_owned(),
        "on Windows, Docker Desktop passes a GPU through with its WSL 2 backend".to_owned(),
    ]
}

/// How a container that lost its GPU gets it back, now and for good.
pub fn lost(engine: &Engine, container: &str) -> Vec<String> {
    let mut lines = vec![format!("now: `{} restart {container}`", engine.program)];
    lines.extend(match engine.kind {
        Kind::Podman => Some("for good: attach it with `--device nvidia.com/gpu=all`, by CDI".to_owned()),
        _ if engine.cgroup_driver == "systemd" => Some(format!(
            "for good: attach it by CDI (`--device nvidia.com/gpu=all`), or write `\"exec-opts\": \
             [\"native.cgroupdriver=cgroupfs\"]` into daemon.json and `{}`",
            restart(engine).unwrap_or("restart the engine")
        )),
        _ => Some(
            "for good: `sudo nvidia-ctk system create-dev-char-symlinks --create-all` at each boot"
                .to_owned(),
        ),
    });
    lines
}

/// How the device for unified memory is made.
pub fn uvm() -> Vec<String> {
    vec![
        "now: `sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c 0`".to_owned(),
        "for good: `echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf`".to_owned(),
    ]
}
