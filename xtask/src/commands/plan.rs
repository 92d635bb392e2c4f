//! `plan`: what would be built or skipped, each with its reason, and the commands.

use super::App;
use super::order::{Order, by_root};
use crate::build::Secrets;
use crate::cli::{Build as Args, Plan as PlanArgs};
use crate::out::{columns, gigabytes, word};
use crate::plan::Planned;
use crate::project::Project;
use crate::root;
use crate::runner::Step;
use anyhow::Result;
use serde::Serialize;

/// A plan as a result.
#[derive(Default, Serialize)]
pub struct Plan {
    /// The images.
    pub images: Vec<Image>,
    commands: Vec<Step>,
}

/// An image of a plan.
#[derive(Serialize)]
pub struct Image {
    /// What is done about it.
    #[serde(flatten)]
    pub plan: Planned,
    /// What this machine must have or reach for it, beside what it has.
    needs: Vec<String>,
}

/// The decisions of `build`, on the root that is here or else the locked one; nothing is built.
/// What is there already is asked of the engine, or of a registry.
pub fn run(app: &App, args: PlanArgs) -> Result<()> {
    let plan = plan(app, &app.project()?, args)?;
    app.out.result(&table(&plan.images), &plan)
}

/// Every image that was chosen, and the commands.
pub fn plan(app: &App, project: &Project, args: PlanArgs) -> Result<Plan> {
    let PlanArgs { select, base, registry } = args;
    let chosen = project.select(&select)?;
    let (lock, files) = project.proved()?;
    let groups = by_root(project, &chosen, &select)?;
    let secrets = Secrets::gather(None, app.state())?;
    let args = Args { select, base, registry, ..Args::default() };
    let order = Order::new(app, &args, project, (&lock, &files), &secrets);
    let engine = app.find_engine(project)?;
    // A look is no reason to fetch an engine: one that is not here yet has no images.
    if !engine.is_new() || order.args.registry.is_some() {
        app.start(&engine)?;
    }
    order.tell_heavy(chosen.iter().map(|(release, _)| release))?;
    let mut plan = Plan::default();
    for (root, chosen) in groups {
        let prepared = order.prepare(&engine, &root, &chosen, true)?;
        plan.commands.extend(order.commands(&engine, &prepared)?);
        let needed = order.needed(&root, &chosen);
        for it in prepared.plans {
            let users = (it.release.clone(), it.variant.clone());
            let references =
                needed.iter().filter(|(_, of)| of.contains(&users)).map(|(reference, _)| reference.clone());
            let machine = root::can_run(order.platform).err().map(|error| error.to_string());
            plan.images.push(Image { needs: references.chain(machine).collect(), plan: it });
        }
    }
    Ok(plan)
}

fn table(images: &[Image]) -> String {
    let mut rows =
        vec![["RELEASE", "VARIANT", "ACTION", "REASON", "FETCH", "REFERENCE", "NEEDS"].map(str::to_owned)];
    rows.extend(images.iter().map(|Image { plan, needs }| {
        [
            plan.release.clone(),
            plan.variant.clone(),
            word(plan.action),
            word(plan.reason),
            gigabytes(plan.base_bytes + plan.own_bytes),
            plan.references.first().cloned().unwrap_or_default(),
            needs.join(", "),
        ]
    }));
    columns(&rows)
}
