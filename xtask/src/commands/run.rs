//! `run`: a container of a variant for a person, with everything it needs and nothing open.

use super::{App, doctor};
use crate::cli::{Container as Options, Network as Asked, Run as Args};
use crate::launch::{Addresses, Container, Host, Starter, in_the_engine, on_the_host};
use crate::project::Project;
use crate::recipe::{Network, Recipe, Run, User, Wishes, arguments, recipe};
use crate::runner::Step;
use anyhow::Result;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;

/// A container that was started.
#[derive(Serialize)]
struct Started<'a> {
    name: &'a str,
    image: &'a str,
    #[serde(flatten)]
    addresses: Addresses,
}

/// Looks at everything that could make it fail, then starts it.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let host = Host::look();
    let starter = Starter::find(app.choice(), app.state(), project.suite())?;
    let recipe = described(&project, &args.container, Some(host.caller), starter.network())?;
    let run = Run {
        detach: args.detach,
        terminal: !args.detach && std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
        cdi: args.cdi,
        work: Some(absolute(&args.work)?),
        datasets: args.datasets.as_deref().map(absolute).transpose()?,
    };
    let why = || doctor::cause(app, &project);
    on_the_host(&recipe, &run, host, (!app.dry_run).then_some(&why))?;
    if !recipe.address.is_loopback() {
        let who = recipe.address;
        app.out.say(&format!(
            "warning: its services listen on {who}: whoever reaches this machine there reaches them"
        ));
    }
    let step =
        starter.step(format!("{} in a container", recipe.variant), arguments(&recipe, &run, starter.client));
    if app.dry_run {
        return app.out.result(&step.to_line(), &step.argv);
    }
    if let Some(engine) = starter.engine() {
        app.start(engine)?;
    }
    in_the_engine(&recipe, &starter, args.container.registry.is_some())?;
    match args.detach {
        true => background(app, args, &Container { starter: &starter, recipe: &recipe }, &step),
        false => foreground(app, args, &recipe, &step),
    }
}

/// The container takes this program's place: its signals and its exit status are the caller's.
fn foreground(app: &App, args: &Args, recipe: &Recipe, step: &Step) -> Result<()> {
    let addresses = Addresses::new(recipe, "").text(args.ssh_config);
    if !addresses.is_empty() {
        app.out.say(&addresses);
    }
    step.become_it()
}

fn background(app: &App, args: &Args, container: &Container, step: &Step) -> Result<()> {
    let recipe = container.recipe;
    container.start(step)?;
    let log = if recipe.listening.is_empty() { String::new() } else { container.answers()? };
    let addresses = Addresses::new(recipe, &log);
    let words = |args: &[&str]| container.starter.step("", args.iter().copied()).to_line();
    app.out.say(&format!("{} runs; its log: {}", recipe.name, words(&["logs", "--follow", &recipe.name])));
    app.out.say(&format!("to stop and remove it: {}", words(&["rm", "--force", &recipe.name])));
    let text = addresses.text(args.ssh_config);
    app.out.result(&text, &Started { name: &recipe.name, image: &recipe.image, addresses })
}

/// The recipe for what a command line says. Without a caller, and for root, it is the images' own user: services refuse root.
pub fn described(
    project: &Project,
    options: &Options,
    caller: Option<User>,
    network: Network,
) -> Result<Recipe> {
    let catalog = &project.catalog;
    let release = options.release.as_ref().unwrap_or(&catalog.defaults.release);
    catalog.release(release)?;
    let given = options.user.map(|(uid, gid)| User { uid, gid });
    let secrets = [("ssh", &options.ssh_key), ("jupyter", &options.token_file)];
    let mut wishes = Wishes::new(&options.variant);
    for (service, file) in secrets {
        if let Some(file) = file {
            wishes.secrets.insert(service.to_owned(), absolute(file)?);
        }
    }
    let wishes = Wishes {
        registry: options.registry.clone(),
        name: options.name.clone(),
        gpus: options.gpus.clone(),
        shared_memory: options.shm_size.clone(),
        user: given.or(caller.filter(|it| it.uid != 0)),
        services: options.service.clone(),
        ports: options.port.iter().cloned().collect(),
        network: match options.network {
            Some(Asked::Host) => Network::Host,
            Some(Asked::Bridge) => Network::Published,
            None => network,
        },
        address: options.address(),
        command: options.command.clone(),
        ..wishes
    };
    recipe(catalog, &project.resolved[release], &wishes)
}

/// Engines take absolute paths alone.
fn absolute(path: &Path) -> Result<String> {
    let path = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
    Ok(path.display().to_string())
}
