//! The private engine: where its things are, and what it is made of.

use super::bridge;
use crate::apt::{Bundle, Family, Fetcher, Wanted};
use crate::digest;
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::{Context, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Folders that containerd and dockerd create wherever they run. They go again with the engine if they came with it.
const SIDE_EFFECTS: &[&str] = &["/opt/containerd", "/run/containerd", "/run/docker", "/run/runc"];

/// Calls igzip with its own library.
const INFLATER: &str =
    "#!/bin/sh\nhere=${0%/bin/*}\nLD_LIBRARY_PATH=\"$here/lib\" exec \"$here/bin/igzip\" \"$@\"\n";

/// An engine of this checkout alone.
pub struct Private {
    /// The folder for everything private: fetched packages, apt's state.
    pub state: PathBuf,
    /// Debian's name of the stable suite, which its packages come from.
    suite: String,
    /// `xtask-<8 hex>`, from the state folder's path: its run folder and control group, and without the dash its bridge.
    pub name: String,
    /// The run folder, short because a socket's path may have no more than 108 bytes.
    pub run: PathBuf,
}

impl Private {
    /// The engine of a state folder. Nothing is fetched or started.
    pub fn new(state: &Path, suite: &str) -> Result<Private> {
        std::fs::create_dir_all(state).with_context(|| format!("creating {}", state.display()))?;
        let state = state.canonicalize()?;
        let hash = digest::of_bytes(state.as_os_str().as_encoded_bytes());
        let hex = hash.trim_start_matches("sha256:");
        let name = format!("xtask-{}", &hex[..8]);
        // A file without a name tells whether the folder can be written, and leaves no trace.
        let base = match tempfile::tempfile_in("/run") {
            Ok(_) => "/run",
            Err(_) => "/tmp",
        };
        Ok(Private { run: Path::new(base).join(&name), suite: suite.to_owned(), state, name })
    }

    /// All it keeps on disk, beside fetched packages.
    pub fn home(&self) -> PathBuf {
        self.state.join("engine")
    }

    /// Images, containers, build cache.
    pub fn data_root(&self) -> PathBuf {
        self.home().join("data")
    }

    /// What the daemon says.
    pub fn log(&self) -> PathBuf {
        self.home().join("dockerd.log")
    }

    /// The client's configuration.
    fn client(&self) -> PathBuf {
        self.home().join("client")
    }

    /// The daemon's configuration.
    pub fn config(&self) -> PathBuf {
        self.home().join("daemon.json")
    }

    /// Where the docker API is.
    pub fn socket(&self) -> PathBuf {
        self.run.join("docker.sock")
    }

    /// What its processes run from.
    pub fn exec_root(&self) -> PathBuf {
        self.run.join("exec")
    }

    /// The daemon's process id.
    pub fn pid_file(&self) -> PathBuf {
        self.run.join("docker.pid")
    }

    /// Its network bridge; the kernel allows 15 letters.
    pub fn bridge(&self) -> String {
        self.name.replace('-', "")
    }

    /// Side effects that are to be undone.
    pub fn came_with_it(&self) -> PathBuf {
        self.home().join("came-with-it.json")
    }

    /// The fetched packages, if they are there.
    pub fn bundle(&self) -> Option<Bundle> {
        Bundle::read(&self.state.join("tools/engine"))
    }

    /// Fetches the packages unless they are there.
    pub fn fetch(&self, say: &dyn Fn(&str)) -> Result<Bundle> {
        let fetcher = Fetcher::open(&self.state, &self.suite)?;
        let bundle = fetcher.bundle("engine", &wanted(&fetcher), say)?;
        match plugin(&bundle) {
            Some(_) => Ok(bundle),
            None => refuse(
                Id::Engine,
                "package docker-buildx",
                "it holds no docker-buildx plugin",
                "install Docker Engine with buildx, and use it with --engine docker",
            ),
        }
    }

    /// Refuses a place on which layers cannot be stacked: the root of a container usually is one.
    pub fn check_place(&self) -> Result<()> {
        let path = self.state.display().to_string();
        let step = Step::new("its file system", ["stat", "--file-system", "--format=%T", &path]);
        if step.env("LC_ALL", "C").read()? != "overlayfs" {
            return Ok(());
        }
        refuse(
            Id::Engine,
            path,
            "it is on an overlay file system, and an engine cannot stack its layers on another's",
            "mount a volume there, or name a folder on a disk with --state FOLDER",
        )
    }

    /// What `ip` is: the host's, or busybox with everything in it.
    pub fn ip(&self, say: &dyn Fn(&str)) -> Result<bridge::Ip> {
        if which::which("ip").is_ok() {
            return Ok(bridge::Ip::of_host());
        }
        let fetcher = Fetcher::open(&self.state, &self.suite)?;
        let busybox = Wanted::new("busybox-static", &[&fetcher.stable, &fetcher.own]);
        Ok(bridge::Ip::of_busybox(&fetcher.bundle("busybox", &[busybox], say)?))
    }

    /// Variables that make a docker client speak to this engine, whatever the user has set for their own.
    pub fn environment(&self) -> Vec<(String, String)> {
        let bundle = self.state.join("tools/engine");
        let client = self.client();
        let set = |key: &str, value: String| (key.to_owned(), value);
        vec![
            set("PATH", crate::apt::path_with(&bundle)),
            set("DOCKER_HOST", format!("unix://{}", self.socket().display())),
            set("DOCKER_CONFIG", client.display().to_string()),
            set("DOCKER_TLS_VERIFY", String::new()),
            set("BUILDX_CONFIG", client.join("buildx").display().to_string()),
            set("BUILDX_BUILDER", "default".to_owned()),
        ]
    }

    /// Creates the run folder for root alone, also below a folder that anybody can write.
    pub fn create_run(&self) -> Result<()> {
        let made = std::fs::DirBuilder::new().mode(0o700).create(&self.run);
        let is_ours = |m: std::fs::Metadata| m.is_dir() && m.uid() == 0 && m.mode() & 0o022 == 0;
        match made {
            Ok(()) => Ok(()),
            Err(_) if std::fs::symlink_metadata(&self.run).is_ok_and(is_ours) => Ok(()),
            Err(error) => refuse(
                Id::Engine,
                self.run.display().to_string(),
                format!("the engine's run folder cannot be made: {error}"),
                "remove what is there, then run the same command again",
            ),
        }
    }

    /// Writes the configurations of daemon and client. Logins and proxies of the user stay reachable.
    pub fn configure(&self, bundle: &Bundle) -> Result<()> {
        std::fs::create_dir_all(self.data_root())?;
        std::fs::create_dir_all(self.client().join("cli-plugins"))?;
        // The containerd store keeps indexes and takes layers in any compression.
        crate::files::write(&self.config(), br#"{"features":{"containerd-snapshotter":true}}"#)?;
        if let Some(plugin) = plugin(bundle) {
            link(&plugin, &self.client().join("cli-plugins/docker-buildx"))?;
        }
        if let Some(logins) = users_config().filter(|path| path.is_file()) {
            link(&logins, &self.client().join("config.json"))?;
        }
        self.lead_content()?;
        self.provide_inflater(bundle)
    }

    /// Programs of the daemon's own, before those of its packages.
    pub fn programs(&self) -> PathBuf {
        self.home().join("bin")
    }

    /// containerd hands gzip to a program `unpigz`, if there is one. ISA-L's igzip takes a third of the real one's time: 6 GB
    /// were unpacked in 39 to 44 s with it, in 53 s by Go's own inflate. It is found beside its library by its own path.
    fn provide_inflater(&self, bundle: &Bundle) -> Result<()> {
        let library = library_in(&bundle.dir.join("usr/lib"), "libisal.so.2");
        let (program, Some(library)) = (bundle.dir.join("usr/bin/igzip"), library) else {
            return Ok(());
        };
        if !program.is_file() {
            return Ok(());
        }
        [self.programs(), self.home().join("lib")].into_iter().try_for_each(std::fs::create_dir_all)?;
        link(&program, &self.programs().join("igzip"))?;
        link(&library, &self.home().join("lib/libisal.so.2"))?;
        // It can be in use: there is no moment in which it cannot be run.
        let (unpigz, new) = (self.programs().join("unpigz"), self.programs().join("unpigz.new"));
        crate::files::write(&new, INFLATER.as_bytes())?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
        Ok(std::fs::rename(new, unpigz)?)
    }

    /// Notes which folders of the system are not there yet, so that they can go with the engine.
    pub fn note_side_effects(&self) -> Result<()> {
        if self.came_with_it().exists() {
            return Ok(());
        }
        let absent: Vec<_> = SIDE_EFFECTS.iter().filter(|path| !Path::new(path).exists()).collect();
        crate::files::write(&self.came_with_it(), &serde_json::to_vec(&absent)?)
    }
}

/// What the engine consists of. Newer buildx keeps `network` of a bake target, so testing's comes first; runc may need
/// a newer C library than the host has, so the host's own comes last.
fn wanted(fetcher: &Fetcher) -> Vec<Wanted> {
    let (stable, testing, own) = (&fetcher.stable[..], &fetcher.testing[..], &fetcher.own[..]);
    let client = Wanted::new("docker-cli", &[stable]);
    vec![
        Wanted::new("docker.io", &[stable]),
        Wanted::new("containerd", &[stable]),
        match fetcher.family {
            Family::Debian => client,
            // Ubuntu's docker.io has the client inside.
            Family::Ubuntu => client.optional(),
        },
        Wanted::new("docker-buildx", &[testing, stable]),
        Wanted::new("runc", &[stable, own]),
        // To inflate layers.
        Wanted::new("isal", &[own, stable]).optional(),
        Wanted::new("libisal2", &[own, stable]).optional(),
        // docker-init, for `docker run --init`.
        Wanted::new("tini", &[stable, own]).optional(),
    ]
}

/// A library in the folders of architectures.
fn library_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders.map(|it| it.path().join(name)).find(|path| path.exists())
}

/// The buildx plugin of a bundle.
fn plugin(bundle: &Bundle) -> Option<PathBuf> {
    let places = ["usr/libexec/docker/cli-plugins", "usr/lib/docker/cli-plugins"];
    let files = places.map(|place| bundle.dir.join(place).join("docker-buildx"));
    files.into_iter().find(|file| file.is_file())
}

/// The user's own client configuration, with logins, credential helpers and proxies.
fn users_config() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker"));
    Some(folder.or_else(home)?.join("config.json"))
}

/// Makes a link point at a target, whatever it pointed at before.
fn link(target: &Path, at: &Path) -> Result<()> {
    if std::fs::read_link(at).is_ok_and(|now| now == target) {
        return Ok(());
    }
    if std::fs::symlink_metadata(at).is_ok() {
        std::fs::remove_file(at)?;
    }
    symlink(target, at).with_context(|| format!("linking {}", at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checkout_has_its_own_names_and_they_are_short() {
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().join("a".repeat(120));
        let [one, two] =
            [Private::new(dir.path(), "trixie").unwrap(), Private::new(&long, "trixie").unwrap()];
        assert_ne!(one.name, two.name);
        for engine in [one, two] {
            assert!(engine.bridge().len() <= 15, "{}", engine.bridge());
            let deepest = engine.exec_root().join("containerd/containerd-debug.sock");
            assert!(deepest.as_os_str().len() < 100, "{}", deepest.display());
        }
    }

    #[test]
    fn the_client_is_kept_away_from_the_users_engine() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Private::new(dir.path(), "trixie").unwrap();
        let env = engine.environment();
        let get = |key: &str| env.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()).unwrap();
        assert_eq!(get("DOCKER_HOST"), format!("unix://{}", engine.socket().display()));
        assert_eq!((get("DOCKER_TLS_VERIFY"), get("BUILDX_BUILDER")), ("", "default"));
        assert!(get("DOCKER_CONFIG").ends_with("engine/client"));
        assert!(get("PATH").contains("tools/engine/usr/bin:"));
    }

    #[test]
    fn a_link_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("l");
        link(Path::new("/a"), &at).unwrap();
        link(Path::new("/b"), &at).unwrap();
        assert_eq!(std::fs::read_link(at).unwrap(), Path::new("/b"));
    }
}
