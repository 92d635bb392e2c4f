//! Starting and ending the private engine's daemon.

use super::private::Private;
use super::{bridge, traces};

use crate::apt::Bundle;
use crate::hold::Hold;
use crate::problem::{Id, refuse};
use crate::processes;
use crate::runner::{Step, tail};
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// How long the daemon may take to answer.
const START: Duration = Duration::from_secs(30);
/// How long it may take to end; it gives containers ten seconds.
const STOP: Duration = Duration::from_secs(20);

impl Private {
    /// Makes the engine answer: nothing to do if it does, otherwise fetched, cleared of leftovers, started.
    ///
    /// Errors: `E_ENGINE` with the end of the daemon's log; what fetching ran into.
    pub fn up(&self, say: &dyn Fn(&str)) -> Result<()> {
        let _hold = self.hold(say)?;
        if self.answers()
            && let Some(bundle) = self.bundle().filter(|_| self.log().exists())
        {
            // The user may have logged in to a registry since.
            return self.configure(&bundle);
        }
        self.check_place()?;
        self.finish_removing(say)?;
        let bundle = self.fetch(say)?;
        // It may hang, have died, or have lost its files to a `cargo clean`.
        self.halt(say)?;
        self.create_run()?;
        self.configure(&bundle)?;
        self.note_side_effects()?;
        bridge::create(&self.ip(say)?, &self.bridge())?;
        say("starting the private engine");
        let child = self.start(&bundle)?;
        self.wait(child, say)
    }

    fn hold(&self, say: &dyn Fn(&str)) -> Result<Hold> {
        Hold::wait(&self.state, "engine", say)
    }

    /// Whether the daemon answers on its socket.
    pub fn answers(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut socket = UnixStream::connect(self.socket())?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            socket.write_all(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.lines().next().is_some_and(|l| l.contains(" 200 ")))
    }

    /// The command that starts the daemon.
    fn command(&self, bundle: &Bundle) -> Step {
        let path = |p: PathBuf| p.display().to_string();
        Step::new("the private engine", ["dockerd"])
            .args(["--data-root".to_owned(), path(self.data_root())])
            .args(["--exec-root".to_owned(), path(self.exec_root())])
            .args(["--pidfile".to_owned(), path(self.pid_file())])
            .args(["--config-file".to_owned(), path(self.config())])
            .args(["--host".to_owned(), format!("unix://{}", self.socket().display())])
            .args(["--group", "root", "--bridge", &self.bridge()])
            .args(["--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"])
            // A control group of its own tells its containers from those of other engines.
            .args([
                "--exec-opt",
                "native.cgroupdriver=cgroupfs",
                "--cgroup-parent",
                &format!("/{}", self.name),
            ])
            .env("PATH", format!("{}:{}", self.programs().display(), bundle.path()))
            .env("LC_ALL", "C")
            // It is not the service that this program may be started as.
            .env("NOTIFY_SOCKET", "")
    }

    fn start(&self, bundle: &Bundle) -> Result<Child> {
        let log =
            std::fs::File::create(self.log()).with_context(|| format!("writing {}", self.log().display()))?;
        self.command(bundle).daemon(log)
    }

    fn wait(&self, mut child: Child, say: &dyn Fn(&str)) -> Result<()> {
        let mut looks = 0;
        let mut ended = None;
        processes::wait_until(START, || {
            looks += 1;
            if looks % 50 == 0 {
                say(&format!("waiting for the private engine: {} s", looks / 10));
            }
            ended = child.try_wait().ok().flatten();
            ended.is_some() || self.answers()
        });
        if self.answers() {
            return Ok(());
        }
        let how = match ended {
            Some(status) => format!("it ended with {status}"),
            None => format!("it does not answer after {} s", START.as_secs()),
        };
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        self.halt(say)?;
        child.wait().ok();
        let end = tail(log.trim_end(), 20).replace('\n', "\n    ");
        refuse(
            Id::Engine,
            "private engine",
            format!("{how}; {} ends with:\n    {end}", self.log().display()),
            "run this where root may mount file systems, make control groups and network bridges (a container needs \
             --privileged), or use your own docker",
        )
    }

    fn pids(&self, is: &dyn Fn(&str) -> bool) -> Vec<u32> {
        let all = traces::of_engine(&self.run, &self.name);
        all.iter().filter(|p| is(&p.program)).map(|p| p.pid).collect()
    }

    fn is_alive(&self) -> bool {
        !self.pids(&|program| program == "dockerd").is_empty()
    }

    /// Whether anything of a started engine is left on this machine.
    pub fn left_something(&self) -> bool {
        self.run.exists() || bridge::exists(&self.bridge()) || !self.pids(&|_| true).is_empty()
    }

    /// Ends the engine, also one that was killed and left things behind: processes, mounts, run folder.
    fn halt(&self, say: &dyn Fn(&str)) -> Result<()> {
        if self.is_alive() {
            say("stopping the private engine");
        }
        // The daemon ends its containers and then containerd; the rest is for a daemon that could not.
        processes::end(&|| self.pids(&|program| program == "dockerd"), STOP)?;
        processes::end(&|| self.pids(&|program| program == "containerd"), STOP / 4)?;
        // What is inside containers first: the end of its shim would hand it to init.
        let is_shim = |program: &str| program.starts_with("containerd-shim");
        processes::send("KILL", &self.pids(&|program| !is_shim(program)))?;
        processes::end(&|| self.pids(&|_| true), STOP / 10)?;
        traces::unmount_below(&[self.data_root(), self.run.clone()])?;
        traces::remove_groups(&self.name);
        match self.run.exists() {
            true => remove(&self.run),
            false => Ok(()),
        }
    }

    /// Ends the engine and takes back what it changed on this machine outside its folders.
    pub fn down(&self, say: &dyn Fn(&str)) -> Result<()> {
        let _hold = self.hold(say)?;
        self.take_down(say)
    }

    fn take_down(&self, say: &dyn Fn(&str)) -> Result<()> {
        self.halt(say)?;
        if bridge::exists(&self.bridge()) {
            bridge::remove(&self.ip(say)?, &self.bridge())?;
        }
        let noted = std::fs::read(self.came_with_it()).unwrap_or_default();
        let folders: Vec<PathBuf> = serde_json::from_slice(&noted).unwrap_or_default();
        folders.iter().for_each(|folder| traces::remove_empty(folder));
        std::fs::remove_file(self.came_with_it()).ok();
        Ok(())
    }

    /// Ends the engine and removes all it put on disk, fetched packages included.
    pub fn prune(&self, say: &dyn Fn(&str)) -> Result<()> {
        let _hold = self.hold(say)?;
        self.take_down(say)?;
        self.finish_removing(say)?;
        for folder in self.folders().iter().filter(|folder| folder.exists()) {
            say(&format!("removing {}", folder.display()));
            check_unmounted(folder)?;
            let doomed = doomed(folder);
            std::fs::rename(folder, &doomed).with_context(|| format!("removing {}", folder.display()))?;
            remove(&doomed)?;
        }
        Ok(())
    }

    /// Removes what a killed [`Private::prune`] has left.
    fn finish_removing(&self, say: &dyn Fn(&str)) -> Result<()> {
        for folder in self.folders().iter().map(|it| doomed(it)).filter(|folder| folder.exists()) {
            say(&format!("removing {}, which a killed run left", folder.display()));
            remove(&folder)?;
        }
        Ok(())
    }

    /// All it puts on disk, fetched packages included.
    fn folders(&self) -> [PathBuf; 4] {
        let beside = ["tools/engine", "tools/busybox", "apt"].map(|name| self.state.join(name));
        let [engine, busybox, apt] = beside;
        [self.home(), engine, busybox, apt]
    }
}

/// The name under which a folder is removed: an engine that finds half of its data would start and fail later.
fn doomed(folder: &Path) -> PathBuf {
    folder.with_extension("removing")
}

/// Removes a folder, but never through a mount.
fn remove(folder: &Path) -> Result<()> {
    check_unmounted(folder)?;
    std::fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}

/// What is mounted below a folder belongs to somebody else.
fn check_unmounted(folder: &Path) -> Result<()> {
    if let Some(mount) = traces::mounts_below(&[folder.to_owned()]).first() {
        return refuse(
            Id::Engine,
            mount.display().to_string(),
            "it is still mounted",
            "stop what uses it and run `cargo xtask engine down` again",
        );
    }
    Ok(())
}
