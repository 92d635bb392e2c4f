//! Caches of build steps that machines share, beside the bases.

use std::collections::BTreeSet;

/// Where finished steps are looked for, and where they are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cache<'a> {
    /// Read before a step is run: what buildx takes, or a repository.
    pub from: &'a [String],
    /// Written after it: the same.
    pub to: &'a [String],
}

impl Cache<'_> {
    /// The settings of a bake that builds some targets. In a repository each target has a tag of its own.
    pub fn settings(&self, targets: &BTreeSet<String>) -> Vec<String> {
        let mut settings = Vec::new();
        for target in targets {
            settings.extend(
                self.from.iter().map(|it| format!("{target}.cache-from={}", address(it, target, ""))),
            );
            // What is not in the image is kept too: it takes most of the time.
            let whole = ",mode=max,image-manifest=true,oci-mediatypes=true";
            settings
                .extend(self.to.iter().map(|it| format!("{target}.cache-to={}", address(it, target, whole))));
        }
        settings
    }
}

/// What buildx takes as it is, a repository as a tag of it with `more` behind.
fn address(text: &str, target: &str, more: &str) -> String {
    match text.contains('=') {
        true => text.to_owned(),
        false => format!("type=registry,ref={text}:cache-{target}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_a_tag_for_each_target_and_buildx_words_are_left_alone() {
        let [from, to] = [["type=local,src=x".to_owned()], ["r.example.org/team/cache".to_owned()]];
        let targets = ["a", "b"].map(str::to_owned).into();
        let whole = "mode=max,image-manifest=true,oci-mediatypes=true";
        assert_eq!(
            Cache { from: &from, to: &to }.settings(&targets),
            [
                "a.cache-from=type=local,src=x".to_owned(),
                format!("a.cache-to=type=registry,ref=r.example.org/team/cache:cache-a,{whole}"),
                "b.cache-from=type=local,src=x".to_owned(),
                format!("b.cache-to=type=registry,ref=r.example.org/team/cache:cache-b,{whole}"),
            ]
        );
    }
}
