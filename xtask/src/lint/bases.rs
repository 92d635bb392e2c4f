//! What an image is made from is fixed: a stage, a named context, nothing, or an image by tag and digest.

use super::Finding;
use super::Subject;
use crate::problem::Id;

/// Every `FROM`, `COPY --from`, `--mount=from=` and `# syntax=`.
pub fn findings(subject: &Subject) -> Vec<Finding> {
    let file = &subject.dockerfile;
    let mut found: Vec<Finding> =
        file.syntax.iter().filter_map(|(line, image)| refused(*line, image, pinned(image))).collect();
    for (index, stage) in file.stages.iter().enumerate() {
        for instruction in &stage.instructions {
            let base = (instruction.word == "FROM").then(|| (instruction.line, stage.base.clone()));
            let others = instruction
                .flags
                .iter()
                .filter_map(|flag| Some((flag.line, source(&flag.name, &flag.value)?)));
            for (line, name) in base.into_iter().chain(others) {
                let known = name == "scratch"
                    || subject.contexts.contains_key(&name)
                    || file.stage(&name).is_some_and(|stage| stage < index)
                    || (instruction.word == "COPY" && name.parse().is_ok_and(|stage: usize| stage < index));
                if !known {
                    found.extend(refused(line, &name, pinned(&name)));
                }
            }
        }
    }
    found
}

/// What a flag takes files from.
fn source(flag: &str, value: &str) -> Option<String> {
    match flag {
        "from" => Some(value.to_owned()),
        "mount" => value.split(',').find_map(|part| part.strip_prefix("from=")).map(str::to_owned),
        _ => None,
    }
}

fn refused(line: usize, image: &str, verdict: Result<(), String>) -> Option<Finding> {
    let name = image.split(['@', '$']).next().unwrap_or_default().trim_end_matches(['{', ':']);
    let cure = format!(
        "write tag and digest, `{}:TAG@sha256:…`, or name a context of the bake target",
        if name.is_empty() { "NAME" } else { name.split(':').next().unwrap_or(name) }
    );
    let what = verdict.err()?;
    Some(Finding { id: Id::BaseUnpinned, line, what, cure })
}

/// Whether an image is named by tag and digest, and what is missing.
pub fn pinned(image: &str) -> Result<(), String> {
    if image.contains('$') {
        return Err(format!("`{image}`: whoever gives the argument decides what it is"));
    }
    let (name, digest) = image.split_once('@').unwrap_or((image, ""));
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':')).map_or("", |(_, tag)| tag);
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    let is_digest = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    match (tag, is_digest) {
        ("latest", _) => Err(format!("`{image}`: `latest` names another image tomorrow")),
        ("", true) => Err(format!("`{image}` has no tag: nobody can tell what the digest is")),
        ("", false) => {
            Err(format!("`{image}` is no stage, no named context, and has neither tag nor digest"))
        }
        (_, false) => Err(format!("`{image}` has no digest: its tag can move")),
        (_, true) => Ok(()),
    }
}
