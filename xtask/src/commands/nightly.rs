//! `nightly`: what `.github/workflows/images.yml` does, for people without GitHub: the same commands, one after the other.

use super::{App, ci, publish};
use crate::cli::Nightly as Args;
use crate::plan::Chosen;
use crate::runner::{Step, own_program};
use anyhow::Result;

/// Runs the pipeline; what a run before has done already is not done again.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let chosen = publish::chosen(&app.project()?, &args.what)?;
    let own = own_program()?;
    let xtask = |reason: &str, words: &[String]| {
        Step::new(reason, [own.as_str()]).args(words.iter().cloned()).args(app.options())
    };
    ci::walk(app, "Steps", &steps(args, &chosen, xtask))
}

/// Plan → build and push candidates → smoke test of each digest → names → the catalogue's pages → are they fresh?
fn steps(args: &Args, chosen: &Chosen, xtask: impl Fn(&str, &[String]) -> Step) -> Vec<Step> {
    let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let at = words(&["--registry", &args.what.registry]);
    let what = selected(chosen);
    let (gpus, require) = match &args.gpus {
        Some(gpus) => (words(&["--gpus", gpus, "--require-gpu"]), words(&["--require", "gpu-tested"])),
        None => (Vec::new(), Vec::new()),
    };
    let mut steps = vec![
        xtask("what changed", &[words(&["plan"]), what.clone(), at.clone()].concat()),
        xtask("candidates", &[words(&["build", "--push"]), what.clone(), at.clone()].concat()),
    ];
    for (release, variant) in chosen {
        let image = words(&["smoke", "--attach", "--release", release, "--variant", variant]);
        let reason = format!("smoke test of {release} {variant}");
        steps.push(xtask(&reason, &[image, at.clone(), gpus.clone()].concat()));
    }
    let age = words(&["--max-age", &args.max_age.to_string()]);
    let sign = args.sign.words();
    steps.push(xtask("names", &[words(&["publish"]), what.clone(), at.clone(), require, sign].concat()));
    let pages = words(&["site", "--out", &args.site.display().to_string()]);
    steps.push(xtask("the catalogue and its history", &[pages, at.clone()].concat()));
    steps.push(xtask("are they fresh?", &[words(&["freshness"]), what, at, age].concat()));
    steps
}

/// Releases and variants as options; each is named once.
fn selected(chosen: &Chosen) -> Vec<String> {
    let mut options = Vec::<String>::new();
    for (flag, names) in [
        ("--release", chosen.iter().map(|(release, _)| release).collect::<Vec<_>>()),
        ("--variant", chosen.iter().map(|(_, variant)| variant).collect()),
    ] {
        for name in names {
            if !options.chunks(2).any(|pair| pair[0] == flag && pair[1] == *name) {
                options.extend([flag.to_owned(), name.clone()]);
            }
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Published, Sign};

    #[test]
    fn a_night_is_six_kinds_of_steps_and_a_gpu_is_demanded_where_one_is_given() {
        let pair = |release: &str, variant: &str| (release.to_owned(), variant.to_owned());
        let chosen = vec![pair("2.15", "runtime"), pair("2.15", "devel")];
        let what = Published { registry: "r.example.org".to_owned(), release: vec![], variant: vec![] };
        let age = std::time::Duration::from_secs(60).into();
        let args = |gpus: Option<&str>| {
            let gpus = gpus.map(str::to_owned);
            let (what, site, sign) = (what.clone(), "pages".into(), Sign::default());
            Args { what, gpus, max_age: age, site, sign }
        };
        let told = |args: &Args| {
            let steps = steps(args, &chosen, |reason, words| Step::new(reason, words.to_vec()));
            steps.iter().map(Step::to_line).collect::<Vec<_>>()
        };
        let what = "--release 2.15 --variant runtime --variant devel --registry r.example.org";
        assert_eq!(
            told(&args(None)),
            [
                format!("plan {what}"),
                format!("build --push {what}"),
                "smoke --attach --release 2.15 --variant runtime --registry r.example.org".to_owned(),
                "smoke --attach --release 2.15 --variant devel --registry r.example.org".to_owned(),
                format!("publish {what}"),
                "site --out pages --registry r.example.org".to_owned(),
                format!("freshness {what} --max-age 1m"),
            ]
        );
        let with_gpu = told(&args(Some("all")));
        assert!(with_gpu[2].ends_with("--gpus all --require-gpu"), "{with_gpu:?}");
        assert!(with_gpu[4].ends_with("--require gpu-tested"), "{with_gpu:?}");
        let sign = Sign { sign: true, key: Some("cosign.key".to_owned()), ..Sign::default() };
        let signed = told(&Args { sign, ..args(None) });
        assert_eq!(signed[4], format!("publish {what} --sign --key cosign.key"));
    }
}
