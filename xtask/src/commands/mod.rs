//! One file a command: each reads what it needs, calls the modules, and says what came of it.

mod bake;
mod base_only;
mod bases;
mod bench;
mod build;
mod cache;
mod check;
mod ci;
mod completions;
mod contents;
mod deploy;
mod doctor;
mod engine;
mod explain;
mod freshness;
mod list;
mod lock;
mod matrix;
mod nightly;
mod order;
mod plan;
mod prune;
mod publish;
mod push;
mod render;
mod run;
mod site;
mod smoke;

use crate::cli::{Cli, Command, EngineChoice, Global};
use crate::engine::{Choice, Engine};
use crate::files;
use crate::hold::Hold;
use crate::http::{Client, Policy, RealClock, Retry};
use crate::out::Out;
use crate::processes;
use crate::project::Project;
use crate::registry::Registry;
use crate::runner::name_run;
use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use std::path::{Path, PathBuf};

/// What every command is given.
pub struct App {
    /// Where words go.
    pub out: Out,
    /// Print commands instead of running them.
    pub dry_run: bool,
    file: PathBuf,
    allow_unverified: bool,
    engine: EngineChoice,
    state: PathBuf,
    retry: Policy,
    cache: PathBuf,
}

impl App {
    /// Everything happens in the catalog's folder, so that the paths in the bake file mean the same for everyone.
    fn new(global: &Global) -> Result<App> {
        let file = &global.file;
        let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let state = std::path::absolute(match &global.state {
            Some(state) => state.clone(),
            None => folder.join("target/xtask"),
        })?;
        Ok(App {
            out: Out { json: global.json, verbose: global.verbose, quiet: global.quiet },
            dry_run: global.dry_run,
            file: file.clone(),
            allow_unverified: global.allow_unverified,
            engine: global.engine,
            state,
            retry: Policy::within(*global.retry_budget),
            cache: std::path::absolute(global.cache_dir.clone().unwrap_or_else(files::user_cache))?,
        })
    }

    /// The catalog, resolved.
    pub fn project(&self) -> Result<Project> {
        Project::read(&self.file, self.allow_unverified)
    }

    /// The options by which this program, started again, means the same project, engine, folders and patience.
    pub fn options(&self) -> Vec<String> {
        let engine = self.engine.to_possible_value().map(|value| value.get_name().to_owned());
        let budget = humantime::format_duration(self.retry.budget).to_string();
        let of = |flag: &str, value: String| [flag.to_owned(), value];
        let mut options = [
            of("--file", self.file.display().to_string()),
            of("--state", self.state.display().to_string()),
            of("--cache-dir", self.cache.display().to_string()),
            of("--engine", engine.unwrap_or_default()),
            of("--retry-budget", budget),
        ]
        .concat();
        let switches = [(self.allow_unverified, "--allow-unverified"), (self.out.verbose, "--verbose")];
        options.extend(switches.iter().filter(|(on, _)| *on).map(|(_, flag)| (*flag).to_owned()));
        options
    }

    /// The folder for caches, logs and the private engine.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The patience that was given; `say` is told of every pause.
    pub fn retry<'a>(&self, say: &'a dyn Fn(&str)) -> Retry<'a> {
        Retry { policy: self.retry, clock: &RealClock, say }
    }

    /// Registries, asked with that patience.
    pub fn registry<'a>(&self, say: &'a dyn Fn(&str)) -> Result<Registry<'a>> {
        Registry::new(Client::new()?, self.retry(say))
    }

    /// The folder for wheels and finished layers.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Which engine was asked for.
    pub fn choice(&self) -> Choice {
        match self.engine {
            EngineChoice::Auto => Choice::Auto,
            EngineChoice::Docker => Choice::Docker,
            EngineChoice::Private => Choice::Private,
        }
    }

    /// The engine, chosen and not started.
    pub fn find_engine(&self, project: &Project) -> Result<Engine> {
        Engine::find(self.choice(), &self.state, project.suite())
    }

    /// An engine that answers, started if it is the private one; a dry run starts none.
    pub fn engine(&self, project: &Project) -> Result<Engine> {
        let engine = self.find_engine(project)?;
        self.start(&engine)?;
        Ok(engine)
    }

    /// Starts an engine, or says that it would be started.
    pub fn start(&self, engine: &Engine) -> Result<()> {
        if !self.dry_run {
            return engine.up(&|line| self.out.say(line));
        }
        if !engine.answers() {
            self.out.say("the private engine would be started first");
        }
        Ok(())
    }

    /// Keeps other runs out of the state folder for as long as the result lives. Of a run that was killed there, what it
    /// left running is ended first.
    ///
    /// Errors: `E_LOCKED` with the process and the command of the run that is there.
    pub fn alone(&self) -> Result<Hold> {
        let hold = Hold::take(&self.state, "run")?;
        name_run(&hold.holder.run);
        if let Some(died) = &hold.died {
            self.out.say(&format!("a run was killed here (process {}: {})", died.pid, died.command));
            processes::end_of_run(died)?;
        }
        Ok(hold)
    }

    /// Makes the cache folder: one that cannot be made is told before anything is started that will want it.
    pub fn open_cache(&self) -> Result<()> {
        std::fs::create_dir_all(&self.cache).with_context(|| format!("creating {}", self.cache.display()))
    }

    /// A log file below the state folder, made anew.
    pub fn log(&self, name: &str) -> Result<(PathBuf, std::fs::File)> {
        let folder = self.state.join("logs");
        std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let path = folder.join(name);
        let file = std::fs::File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok((path, file))
    }
}

/// Runs a command.
pub fn run(cli: Cli) -> Result<()> {
    let app = App::new(&cli.global)?;
    match cli.command {
        Command::Check => check::run(&app),
        Command::List(args) => list::run(&app, &args),
        Command::Explain(args) => explain::run(&app, args),
        Command::Plan(args) => plan::run(&app, args),
        Command::Matrix(args) => matrix::run(&app, args),
        Command::Nightly(args) => nightly::run(&app, &args),
        Command::Lock(args) => lock::run(&app, &args),
        Command::Render(args) => render::run(&app, &args),
        Command::Build(args) => build::run(&app, &args),
        Command::Smoke(args) => smoke::run(&app, &args),
        Command::Site(args) => site::run(&app, &args),
        Command::Run(args) => run::run(&app, &args),
        Command::Compose(args) => deploy::compose(&app, &args),
        Command::K8s(args) => deploy::k8s(&app, &args),
        Command::Slurm(args) => deploy::slurm(&app, &args),
        Command::Cache(action) => cache::run(&app, action),
        Command::Engine(action) => engine::run(&app, action),
        Command::Ci(args) => ci::run(&app, &args),
        Command::Doctor(args) => doctor::run(&app, args),
        Command::Publish(args) => publish::run(&app, &args),
        Command::Freshness(args) => freshness::run(&app, &args),
        Command::Prune(args) => prune::run(&app, &args),
        Command::Diff(args) => contents::diff(&app, &args),
        Command::Size(args) => contents::size(&app, &args),
        Command::Bench(args) => bench::run(&app, &args),
        Command::Completions(args) => completions::run(&app, &args),
    }
}
