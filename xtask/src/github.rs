//! What GitHub Actions shows of a run: a problem at the line of its file, a table on the page of the job.

use crate::problem::Problem;
use std::io::Write;

/// A problem as a workflow command, which puts it beside the line of the file that it is about; `None` elsewhere than
/// in GitHub Actions.
pub fn annotation(problem: &Problem) -> Option<String> {
    std::env::var_os("GITHUB_ACTIONS").map(|_| error(problem))
}

/// Adds a table to the summary of the job, where there is one. It is for people: one that cannot be written is no error.
pub fn summarize<const N: usize>(title: &str, rows: &[[String; N]]) {
    let file = std::env::var_os("GITHUB_STEP_SUMMARY")
        .map(|path| std::fs::OpenOptions::new().create(true).append(true).open(path));
    if let Some(Ok(mut file)) = file {
        writeln!(file, "### {title}\n\n{}", table(rows)).ok();
    }
}

/// `::error file=…,line=…,col=…,title=…::…`, with the characters escaped that end a field.
fn error(problem: &Problem) -> String {
    let mut fields = position(&problem.place);
    fields.push(format!("title={}", field(&format!("{}: {}", problem.id, problem.place))));
    let text = data(&format!("{}\nhelp: {}", problem.what, problem.cure));
    format!("::error {}::{text}", fields.join(","))
}

/// The fields of `variants.yaml:12:11: releases."2.9".cuda`; none for a place that is no position in a file.
fn position(place: &str) -> Vec<String> {
    let mut parts = place.splitn(4, ':');
    let (file, line) = (parts.next().unwrap_or_default(), parts.next());
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u64>().ok());
    let Some(line) = number(line) else {
        return Vec::new();
    };
    let column = number(parts.next()).map(|column| format!("col={column}"));
    [format!("file={}", field(file)), format!("line={line}")].into_iter().chain(column).collect()
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn field(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Rows as a table of Markdown, the first of them its head.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let line =
        |row: &[String; N]| format!("| {} |\n", row.each_ref().map(|it| it.replace('|', "\\|")).join(" | "));
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.insert(1.min(lines.len()), format!("|{}\n", "---|".repeat(N)));
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Id;

    #[test]
    fn a_problem_stands_at_its_line() {
        let problem = |place: &str| Problem::new(Id::Schema, place, "100 %\nwrong", "say, `x: y`");
        let text = error(&problem("variants.yaml:12:11: releases.\"2.9\".cuda"));
        assert!(
            text.starts_with("::error file=variants.yaml,line=12,col=11,title=E_SCHEMA%3A variants"),
            "{text}"
        );
        assert!(text.ends_with("::100 %25%0Awrong%0Ahelp: say, `x: y`"), "{text}");
        let text = error(&problem("images/2.15/base/Dockerfile:3: ENV"));
        assert!(text.starts_with("::error file=images/2.15/base/Dockerfile,line=3,title="), "{text}");
        assert!(error(&problem("--variant")).starts_with("::error title=E_SCHEMA%3A --variant::"));
    }

    #[test]
    fn rows_become_a_table() {
        let rows = [["A", "B"], ["1", "a|b"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "| A | B |\n|---|---|\n| 1 | a\\|b |\n");
    }
}
