//! Another runtime image beside the project's own, built for real in its engine and on its base: what is killed there is
//! no double.

use crate::support::{Copy, Outcome, command_in, docker, project};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A copy of the project, and what comes of it in the engine: the images go with the value.
pub struct Another {
    copy: Copy,
}

/// What docker's client prints.
#[track_caller]
fn ask(args: &str) -> String {
    docker(&project(), &[], &project(), args).expect(0, &[]).stdout.clone()
}

/// Its repository.
const REPOSITORY: &str = "pytorch-cuda-another";

impl Another {
    /// The step that takes a moment, as the build tells that it runs.
    pub const STEP: &'static str = "RUN sleep 3";

    /// An image whose steps are few, and take a moment; its checks are those that take none.
    pub fn new() -> Another {
        let copy = Copy::new();
        copy.edit("repository: pytorch-cuda", &format!("repository: {REPOSITORY}"));
        copy.edit_file("templates/variant.Dockerfile.tera", "RUN find /files", "RUN sleep 3 && find /files");
        let slow = "        cpu.compile_cpu,\n        cpu.dataloader_workers,\n";
        copy.edit_file("templates/rootfs/opt/smoke/checks.py", slow, "");
        copy.xtask(&["render"]).expect(0, &[]);
        Another { copy }
    }

    /// Its folder; whatever one of its runs starts carries the name in a variable.
    pub fn folder(&self) -> &Path {
        self.copy.dir.path()
    }

    fn state() -> PathBuf {
        project().join("target/xtask")
    }

    /// A build of it, to be started.
    pub fn command(&self, more: &[&str]) -> Command {
        let state = Another::state();
        let args = [&["build", "--variant", "runtime", "--state", state.to_str().unwrap()], more].concat();
        command_in(self.folder(), &args, &[("ANOTHER", self.folder().to_str().unwrap())])
    }

    /// A build of it.
    pub fn build(&self, more: &[&str]) -> Outcome {
        Outcome::of(self.command(more).output().unwrap())
    }

    /// A build that is under way.
    pub fn start(&self, more: &[&str]) -> UnderWay {
        let said = self.copy.path("said");
        let file = std::fs::File::create(&said).unwrap();
        let process = self.command(more).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        UnderWay { process, said }
    }

    /// Takes its images away.
    pub fn forget(&self) {
        for name in self.images() {
            ask(&format!("image rm {name}"));
        }
    }

    /// The names of its images, those for a registry too.
    fn images(&self) -> Vec<String> {
        let names = docker(&project(), &[], &project(), "image ls --format {{.Repository}}:{{.Tag}}").stdout;
        let mut ours: Vec<String> =
            names.lines().filter(|name| name.contains(REPOSITORY)).map(str::to_owned).collect();
        ours.sort_unstable();
        ours
    }

    /// What the engine has of it: its images by their names, its containers, and images that lost their names.
    pub fn in_engine(&self) -> Vec<String> {
        let containers = ask("container ls --all --format {{.Image}}");
        let nameless =
            ask("image ls --quiet --filter dangling=true --filter label=pytorch-cuda-images.variant");
        let ours = containers.lines().filter(|image| image.contains(REPOSITORY));
        self.images().into_iter().chain(ours.chain(nameless.lines()).map(str::to_owned)).collect()
    }

    /// What the state folder holds beside the engine.
    pub fn kept(&self) -> Vec<String> {
        let mut find = Command::new("find");
        find.args([".", "-path", "./engine", "-prune", "-o", "-type", "f", "-print"]);
        let found = Outcome::of(find.current_dir(Another::state()).output().unwrap());
        let mut files: Vec<String> = found.expect(0, &[]).stdout.lines().map(str::to_owned).collect();
        files.sort_unstable();
        files
    }
}

impl Drop for Another {
    fn drop(&mut self) {
        for name in self.images() {
            docker(&project(), &[], &project(), &format!("image rm --force {name}"));
        }
    }
}

/// A build that is under way.
pub struct UnderWay {
    process: Child,
    said: PathBuf,
}

impl UnderWay {
    /// Waits until it has said something.
    #[track_caller]
    pub fn says(&mut self, text: &str) {
        crate::containers::until(text, 300, || {
            let said = std::fs::read_to_string(&self.said).unwrap();
            assert!(self.process.try_wait().unwrap().is_none(), "it ended before `{text}`: {said}");
            said.contains(text).then_some(())
        });
    }

    /// Waits for its end.
    pub fn ends(mut self) -> Outcome {
        let code = self.process.wait().unwrap().code();
        Outcome { code, stdout: String::new(), stderr: std::fs::read_to_string(&self.said).unwrap() }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
