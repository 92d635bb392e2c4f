//! A recipe as the arguments of `docker run` and `podman run`.

use super::{Network, Recipe};
use std::net::IpAddr;

/// Whose options are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Docker's.
    Docker,
    /// Podman's.
    Podman,
}

/// How a container is run by a person, beside what it needs.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// It goes on in the background, and stays when it ends; otherwise it is removed then.
    pub detach: bool,
    /// A person types into it.
    pub terminal: bool,
    /// GPUs by their names of the Container Device Interface; with Podman they always are.
    pub cdi: bool,
    /// The folder of the host that is the work folder.
    pub work: Option<String>,
    /// The folder of the host whose data is read.
    pub datasets: Option<String>,
}

/// Everything after `docker`.
pub fn arguments(recipe: &Recipe, run: &Run, client: Client) -> Vec<String> {
    let mut words = Words(vec!["run".into()]);
    match run.detach {
        true => words.add(["--detach"]),
        false => words.add(["--rm"]),
    }
    if run.terminal {
        words.add(["--interactive", "--tty"]);
    }
    words.option("--name", &recipe.name);
    words.gpus(recipe, run, client);
    words.option("--shm-size", &recipe.shared_memory);
    words.rights(recipe, client);
    words.mounts(recipe, run);
    words.network(recipe);
    for (name, value) in &recipe.variables {
        words.option("--env", &format!("{name}={value}"));
    }
    words.0.push(recipe.image.clone());
    words.0.extend(recipe.command.iter().cloned());
    words.0
}

/// The volume that keeps the home: settings, caches and host keys, which are one user's alone.
pub fn home_volume(recipe: &Recipe) -> String {
    format!("{}-home-{}", recipe.name, recipe.user.uid)
}

struct Words(Vec<String>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(str::to_owned));
    }

    fn option(&mut self, name: &str, value: &str) {
        self.add([name, value]);
    }

    fn gpus(&mut self, recipe: &Recipe, run: &Run, client: Client) {
        match run.cdi || client == Client::Podman {
            true => recipe.gpus.cdi().iter().for_each(|name| self.option("--device", name)),
            false => self.0.extend(recipe.gpus.docker()),
        }
    }

    /// Nothing may be gained by anybody; the user is the caller, so that files of the work folder belong to them.
    fn rights(&mut self, recipe: &Recipe, client: Client) {
        let user = recipe.user;
        self.option("--user", &format!("{}:{}", user.uid, user.gid));
        if user.gid != 0 {
            self.add(["--group-add", "0"]);
        }
        self.add(["--cap-drop", "ALL"]);
        recipe.capabilities.iter().for_each(|capability| self.option("--cap-add", capability));
        self.add(["--security-opt", "no-new-privileges"]);
        if client == Client::Podman {
            // Otherwise the caller's own id is another one inside, and SELinux keeps devices and folders from it.
            self.add(["--userns", "keep-id", "--security-opt", "label=disable"]);
        }
    }

    fn mounts(&mut self, recipe: &Recipe, run: &Run) {
        self.mount("volume", &home_volume(recipe), &recipe.folders.home, false);
        if let Some(work) = &run.work {
            self.mount("bind", work, &recipe.folders.work, false);
        }
        if let Some(datasets) = &run.datasets {
            self.mount("bind", datasets, &recipe.folders.datasets, true);
        }
        for secret in &recipe.secrets {
            if let Some(file) = &secret.file {
                self.mount("bind", file, &secret.path, true);
                self.option("--env", &format!("{}={}", secret.variable, secret.path));
            }
        }
    }

    /// `--mount`, because `--volume` makes a folder that is not there. Its value is a line of comma-separated values.
    fn mount(&mut self, kind: &str, from: &str, to: &str, read_only: bool) {
        let field = |text: String| match text.contains([',', '"']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text,
        };
        let fields = [format!("type={kind}"), field(format!("source={from}")), field(format!("target={to}"))];
        let end = if read_only { ",readonly" } else { "" };
        self.option("--mount", &format!("{}{end}", fields.join(",")));
    }

    fn network(&mut self, recipe: &Recipe) {
        if recipe.network == Network::Host {
            return self.option("--network", "host");
        }
        for it in &recipe.listening {
            let address = bracketed(recipe.address);
            self.option("--publish", &format!("{address}:{}:{}", it.host_port, it.port));
        }
    }
}

/// An address as it stands before a port.
pub fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(it) => it.to_string(),
        IpAddr::V6(it) => format!("[{it}]"),
    }
}
