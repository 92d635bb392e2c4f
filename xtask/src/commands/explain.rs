//! `explain`: whether versions, GPU and driver go together, why, and what to take instead; or what runs on a machine.

use super::App;
use crate::catalog::Catalog;
use crate::cli::Explain;
use crate::compat::Compat;
use crate::explain::{Asked, Verdict, explain, here, words};
use crate::problem::{Id, refuse};
use crate::resolve::resolve;
use anyhow::Result;

/// The answer on standard output; a failed check where it is not good.
pub fn run(app: &App, args: Explain) -> Result<()> {
    let catalog = Catalog::read(&app.file)?;
    let compat = Compat::bundled()?;
    // An answer is of use above all when the catalog's own releases are refused; only `ours` is missing then.
    let ours = resolve(&catalog, compat, app.allow_unverified).unwrap_or_default();
    let asked = Asked {
        torch: args.torch,
        cuda: args.cuda,
        python: args.python,
        platform: args.platform,
        gpu: args.gpu,
        sm: args.sm,
        driver: args.driver,
        image: args.image,
    };
    let verdict = if asked.torch.is_none() && asked.cuda.is_none() && asked.image.is_none() {
        let answer = here(&asked, &catalog, &ours, compat)?;
        app.out.result(&answer.words(), &answer)?;
        answer.verdict
    } else {
        let answer = explain(&asked, &catalog, &ours, compat)?;
        app.out.result(&words(&answer), &answer)?;
        answer.verdict
    };
    let what = match verdict {
        Verdict::KnownGood => return Ok(()),
        Verdict::KnownBad => "this does not work",
        Verdict::Unknown => "it is not known whether this works",
    };
    refuse(Id::Check, "cargo xtask explain", what, "take one of the choices that the answer above names")
}
