//! Which GPUs a container gets: one spelling for every engine and cluster.

/// GPUs of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// None.
    None,
    /// All that the host has.
    All,
    /// So many, whichever are free.
    Count(u32),
    /// These: an index, a UUID (`GPU-…`, `MIG-…`), or a MIG slice by its place (`0:1`).
    Ids(Vec<String>),
}

impl Gpus {
    /// `all`, `none`, `count=2`, or ids with commas. Errors: a sentence for the command line.
    pub fn parse(text: &str) -> Result<Gpus, String> {
        let ways = "say `all`, `none`, `count=2`, or ids: 0,1 or GPU-… or MIG-…";
        match (text, text.strip_prefix("count=")) {
            ("none", _) => Ok(Gpus::None),
            ("all", _) => Ok(Gpus::All),
            (_, Some(count)) => match count.parse() {
                Ok(0) | Err(_) => Err(format!("`{count}` is no number of GPUs; {ways}")),
                Ok(count) => Ok(Gpus::Count(count)),
            },
            _ => match text.split(',').find(|id| !is_id(id)) {
                Some(wrong) => Err(format!("`{wrong}` is no GPU; {ways}")),
                None => Ok(Gpus::Ids(text.split(',').map(str::to_owned).collect())),
            },
        }
    }

    /// How many they are; none where that is known only on the host.
    pub fn count(&self) -> Option<u32> {
        match self {
            Gpus::None => Some(0),
            Gpus::All => None,
            Gpus::Count(count) => Some(*count),
            Gpus::Ids(ids) => u32::try_from(ids.len()).ok(),
        }
    }

    /// Docker's own option. Its value is a line of comma-separated values, so ids stand in quotes.
    pub fn docker(&self) -> Vec<String> {
        match self {
            Gpus::None => Vec::new(),
            Gpus::All => vec!["--gpus".into(), "all".into()],
            Gpus::Count(count) => vec!["--gpus".into(), count.to_string()],
            Gpus::Ids(ids) => vec!["--gpus".into(), format!("\"device={}\"", ids.join(","))],
        }
    }

    /// Names of the Container Device Interface, which Podman and Docker know too.
    pub fn cdi(&self) -> Vec<String> {
        let name = |id: &dyn std::fmt::Display| format!("nvidia.com/gpu={id}");
        match self {
            Gpus::None => Vec::new(),
            Gpus::All => vec![name(&"all")],
            Gpus::Count(count) => (0..*count).map(|index| name(&index)).collect(),
            Gpus::Ids(ids) => ids.iter().map(|id| name(id)).collect(),
        }
    }
}

fn is_id(id: &str) -> bool {
    let is_index = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_uuid =
        |text: &str| text.len() > 8 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-/".contains(&b));
    match id.split_once(':') {
        Some((gpu, slice)) => is_index(gpu) && is_index(slice),
        None => {
            is_index(id) || id.starts_with("GPU-") && is_uuid(id) || id.starts_with("MIG-") && is_uuid(id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_for_every_engine() {
        let ids = |ids: &[&str]| Gpus::Ids(ids.iter().map(|&id| id.to_owned()).collect());
        let mig = "MIG-1f2e3d4c-0000-1111-2222-333344445555";
        let cases: [(&str, Gpus, &str, &str, Option<u32>); 6] = [
            ("none", Gpus::None, "", "", Some(0)),
            ("all", Gpus::All, "--gpus all", "nvidia.com/gpu=all", None),
            ("count=2", Gpus::Count(2), "--gpus 2", "nvidia.com/gpu=0 nvidia.com/gpu=1", Some(2)),
            ("0,1", ids(&["0", "1"]), "--gpus \"device=0,1\"", "nvidia.com/gpu=0 nvidia.com/gpu=1", Some(2)),
            ("1:0", ids(&["1:0"]), "--gpus \"device=1:0\"", "nvidia.com/gpu=1:0", Some(1)),
            (
                mig,
                ids(&[mig]),
                &format!("--gpus \"device={mig}\""),
                &format!("nvidia.com/gpu={mig}"),
                Some(1),
            ),
        ];
        for (text, gpus, docker, cdi, count) in cases {
            assert_eq!(Gpus::parse(text).unwrap(), gpus);
            assert_eq!(gpus.docker().join(" "), docker);
            assert_eq!(gpus.cdi().join(" "), cdi);
            assert_eq!(gpus.count(), count);
        }
    }

    #[test]
    fn what_is_no_gpu_is_refused() {
        for text in ["", "0,", "one", "count=0", "count=x", "0:", "\"device=0\"", "MIG-", "GPU-x y"] {
            assert!(Gpus::parse(text).unwrap_err().contains("say `all`"), "{text}");
        }
    }
}
