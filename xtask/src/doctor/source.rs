//! Where probes look: on this host, in a folder of fixtures, or nowhere, when only their commands are wanted.

use crate::runner::Step;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// What probes look at.
pub struct Source {
    place: Place,
    /// Variables by which docker's client reaches the engine that is meant.
    docker_env: Vec<(String, String)>,
}

enum Place {
    Host,
    /// `DIR/<probe>.{out,err,rc}` for programs, `DIR/<path>` for files, `DIR/<path>.err` for why one cannot be read.
    /// `DIR/like` names a second folder beside it for what the first lacks; `<path>.none` takes away what that has.
    Fixtures(Vec<PathBuf>),
    /// Nothing is looked at; the commands are written down.
    Nowhere(RefCell<Vec<Step>>),
}

/// How a program ended.
#[derive(Debug, Default)]
pub struct Ran {
    /// Its exit status.
    pub code: i32,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Source {
    /// This host; `docker_env` is set for docker's client.
    pub fn host(docker_env: Vec<(String, String)>) -> Source {
        Source { place: Place::Host, docker_env }
    }

    /// A folder of fixtures.
    pub fn fixtures(folder: &Path) -> Source {
        let like = std::fs::read_to_string(folder.join("like")).ok();
        let like = like.map(|name| folder.join("..").join(name.trim()));
        let folders = std::iter::once(folder.to_owned()).chain(like).collect();
        Source { place: Place::Fixtures(folders), docker_env: Vec::new() }
    }

    /// Nothing.
    pub fn nowhere(docker_env: Vec<(String, String)>) -> Source {
        Source { place: Place::Nowhere(RefCell::default()), docker_env }
    }

    /// The commands that would have been run.
    pub fn steps(self) -> Vec<Step> {
        match self.place {
            Place::Nowhere(steps) => steps.into_inner(),
            _ => Vec::new(),
        }
    }

    /// Whether nothing is looked at.
    pub fn is_dry(&self) -> bool {
        matches!(self.place, Place::Nowhere(_))
    }

    /// Whether docker's client speaks to the private engine.
    pub fn is_private(&self) -> bool {
        !self.docker_env.is_empty()
    }

    /// Runs the program of a probe; `None` where there is no such program.
    pub fn run(&self, probe: &str, step: Step) -> Option<Ran> {
        match &self.place {
            Place::Host => {
                let out = step.env("LC_ALL", "C").output().ok()?;
                Some(Ran { code: out.status.code().unwrap_or(-1), out: out.stdout, err: out.stderr })
            }
            Place::Fixtures(folders) => recorded(folders, probe),
            Place::Nowhere(steps) => {
                steps.borrow_mut().push(step);
                None
            }
        }
    }

    /// The same with docker's client.
    pub fn docker<'a>(
        &self,
        probe: &str,
        reason: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Option<Ran> {
        let step = Step::new(reason, ["docker"]).args(args);
        self.run(probe, self.docker_env.iter().fold(step, |step, (key, value)| step.env(key, value)))
    }

    /// The text of a file: `None` where there is none, an error in words where it cannot be read.
    pub fn read(&self, path: &str) -> Option<Result<String, String>> {
        let recorded = matches!(self.place, Place::Fixtures(_));
        if let Some(why) = self.find(&format!("{path}.err")).filter(|_| recorded) {
            return std::fs::read_to_string(why).ok().map(|why| Err(why.trim().to_owned()));
        }
        Some(std::fs::read_to_string(self.find(path)?).map_err(|error| error.to_string()))
    }

    /// The text of a file that may be missing or not readable.
    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path)?.ok()
    }

    /// Whether a file is there.
    pub fn exists(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Names in a folder, in order; `None` where there is no such folder.
    pub fn list(&self, folder: &str) -> Option<Vec<String>> {
        let folders: Vec<PathBuf> = self.paths(folder).collect();
        let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
        let names = entries.flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| self.exists(&format!("{folder}/{name}"))).collect();
        names.sort_unstable();
        names.dedup();
        self.exists(folder).then_some(names)
    }

    /// The first place of a path where it is.
    fn find(&self, path: &str) -> Option<PathBuf> {
        self.paths(path).find(|path| path.exists())
    }

    /// Where a path may be: nowhere where it, or a folder above it, was taken away.
    fn paths(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let relative = Path::new(path.trim_start_matches('/'));
        let folders = match &self.place {
            Place::Host => vec![PathBuf::from("/")],
            Place::Fixtures(folders) => folders.clone(),
            Place::Nowhere(_) => Vec::new(),
        };
        let is_gone = |folder: &Path| {
            let mut above = relative.ancestors().filter(|it| *it != Path::new(""));
            above.any(|it| folder.join(format!("{}.none", it.display())).exists())
        };
        let is_gone =
            matches!(self.place, Place::Fixtures(_)) && folders.first().is_some_and(|it| is_gone(it));
        let paths: Vec<PathBuf> = match is_gone {
            true => Vec::new(),
            false => folders.iter().map(|folder| folder.join(relative)).collect(),
        };
        paths.into_iter()
    }
}

/// A recorded program, from the first folder that has anything of it.
fn recorded(folders: &[PathBuf], probe: &str) -> Option<Ran> {
    let read =
        |folder: &PathBuf, kind: &str| std::fs::read_to_string(folder.join(format!("{probe}.{kind}"))).ok();
    if read(folders.first()?, "none").is_some() {
        return None;
    }
    folders.iter().find_map(|folder| {
        let (out, err, rc) = (read(folder, "out"), read(folder, "err"), read(folder, "rc"));
        let is_there = out.is_some() || err.is_some() || rc.is_some();
        let code = rc.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        is_there.then(|| Ran { code, out: out.unwrap_or_default(), err: err.unwrap_or_default() })
    })
}
