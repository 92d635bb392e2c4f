//! Real containers of the images, in the engine that the program uses.

use crate::support::{Outcome, docker_environment, project};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::{OnceLock, RwLock};
use std::time::{Duration, Instant};

/// What `cargo xtask ci` has built of the default release; `XTASK_TEST_REPOSITORY` names another place of such images.
pub fn image(variant: &str) -> String {
    let repository = std::env::var("XTASK_TEST_REPOSITORY").unwrap_or_else(|_| "pytorch-cuda".to_owned());
    format!("{repository}:2.15-{variant}")
}

/// What is timed has the engine for itself: nobody asks it for anything else meanwhile.
static TIMED: RwLock<()> = RwLock::new(());

/// Docker's client; every word arrives as it is.
pub fn docker(words: &[&str]) -> Outcome {
    let _shared = TIMED.read();
    Outcome::of(client(words).output().unwrap())
}

/// The same, for whoever wants to speak with it.
pub fn client(words: &[&str]) -> Command {
    static ENVIRONMENT: OnceLock<String> = OnceLock::new();
    let environment = ENVIRONMENT.get_or_init(|| docker_environment(&project(), &[]));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{environment} exec docker \"$@\""), "docker"]).args(words);
    command
}

/// Reads images as one archive, in which a layer that they share is once.
pub fn saved(images: &[String], read: impl FnOnce(ChildStdout)) {
    let words: Vec<&str> = ["save"].into_iter().chain(images.iter().map(String::as_str)).collect();
    let mut save = client(&words).stdout(Stdio::piped()).spawn().unwrap();
    read(save.stdout.take().unwrap());
    assert!(save.wait().unwrap().success());
}

/// Asks until the answer is there.
#[track_caller]
pub fn until<T>(what: &str, seconds: u64, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The options, and what a test does not want to hear about, without a network unless one is named.
fn with_defaults<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["--pull", "never", "--shm-size", "1g"];
    if !options.contains(&"--network") {
        words.extend(["--network", "none"]);
    }
    words.extend(options);
    words
}

/// A container that ends with its command.
pub fn run(options: &[&str], variant: &str, command: &[&str]) -> Outcome {
    let image = image(variant);
    docker(&[&["run", "--rm"], &with_defaults(options)[..], &[&image], command].concat())
}

/// A container that runs in the background until it is dropped.
pub struct Container {
    pub id: String,
}

impl Container {
    pub fn start(options: &[&str], variant: &str, command: &[&str]) -> Container {
        let image = image(variant);
        let started =
            docker(&[&["run", "--detach"], &with_defaults(options)[..], &[&image], command].concat());
        Container { id: started.expect(0, &[]).stdout.trim().to_owned() }
    }

    /// A command inside, as `docker exec` starts it.
    pub fn exec(&self, command: &[&str]) -> Outcome {
        docker(&[&["exec", &self.id], command].concat())
    }

    /// What a command inside that ends well prints.
    #[track_caller]
    pub fn output(&self, command: &[&str]) -> String {
        self.exec(command).expect(0, &[]).stdout.clone()
    }

    /// Everything it has said so far.
    pub fn logs(&self) -> String {
        let logs = docker(&["logs", &self.id]);
        format!("{}{}", logs.stdout, logs.stderr)
    }

    /// What it has said once that holds a text, or once it has ended.
    #[track_caller]
    pub fn says(&self, text: &str) -> String {
        until(&format!("`{text}`"), 30, || {
            let ended = self.inspect("{{.State.Running}}") == "false";
            Some(self.logs()).filter(|logs| ended || logs.contains(text))
        })
    }

    /// The container, once the service in it answers.
    #[track_caller]
    pub fn serving(self, service: &str) -> Container {
        let check = format!("/opt/services/{service}");
        until(service, 300, || {
            assert_ne!(self.inspect("{{.State.Running}}"), "false", "{}", self.logs());
            (self.exec(&[&check, "--check"]).code == Some(0)).then_some(())
        });
        self
    }

    pub fn inspect(&self, format: &str) -> String {
        docker(&["inspect", "--format", format, &self.id]).expect(0, &[]).stdout.trim().to_owned()
    }

    /// How long `docker stop` takes.
    pub fn stop(&self) -> Duration {
        let _alone = TIMED.write();
        let start = Instant::now();
        Outcome::of(client(&["stop", &self.id]).output().unwrap()).expect(0, &[]);
        start.elapsed()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        docker(&["rm", "--force", "--volumes", &self.id]);
    }
}

/// A volume that is there until it is dropped.
pub struct Volume(pub String);

impl Volume {
    pub fn new() -> Volume {
        Volume(docker(&["volume", "create"]).expect(0, &[]).stdout.trim().to_owned())
    }

    /// The option that puts it somewhere.
    pub fn at(&self, path: &str) -> String {
        format!("--volume={}:{path}", self.0)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        docker(&["volume", "rm", "--force", &self.0]);
    }
}
