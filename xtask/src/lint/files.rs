//! What an image must not hold or be: unchecked downloads, files that everybody may write, a root user.

use super::commands::{is_open, writable};
use super::{Finding, Subject};
use crate::problem::Id;

/// `ADD` of an address, `--chmod`, and the last `USER`.
pub fn findings(subject: &Subject) -> Vec<Finding> {
    let file = &subject.dockerfile;
    let mut found = Vec::new();
    for instruction in file.instructions().filter(|i| ["ADD", "COPY"].contains(&i.word)) {
        let flag = |name: &str| instruction.flags.iter().find(|flag| flag.name == name);
        if let Some(mode) = flag("chmod").filter(|mode| is_open(&mode.value)) {
            found.push(writable(mode.line, &mode.value));
        }
        let text = instruction.lines.first().map_or("", |line| &line.text);
        let address = text.split_whitespace().find(|word| word.contains("://") && !word.starts_with("--"));
        if let Some(address) = address.filter(|_| instruction.word == "ADD" && flag("checksum").is_none()) {
            let what = format!("`ADD {}` takes whatever is there", crate::faults::strip_credentials(address));
            let cure = "say what it must be: `ADD --checksum=sha256:… ADDRESS`".to_owned();
            found.push(Finding { id: Id::Lint, line: instruction.line, what, cure });
        }
    }
    let last = file.stages.last().and_then(|stage| stage.instructions.iter().rfind(|i| i.word == "USER"));
    let name = last.and_then(|user| user.lines.first()).map_or("", |line| line.text.trim());
    if let Some(user) = last.filter(|_| ["root", "0"].contains(&name.split(':').next().unwrap_or_default())) {
        let what = format!("the image runs as `{name}`");
        let cure = "end with the user of variants.yaml, by number".to_owned();
        found.push(Finding { id: Id::Lint, line: user.line, what, cure });
    }
    found
}
