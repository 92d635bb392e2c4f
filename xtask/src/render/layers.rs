//! Which wheel goes into which layer.

use crate::lock::Wheel;
use std::collections::BTreeMap;

/// Wheels that share a layer, and thereby a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer<'a> {
    /// The stage's name: the package's own, or the group's.
    pub name: String,
    /// Its wheels, in the lock's order.
    pub wheels: Vec<&'a Wheel>,
}

/// The layer of NVIDIA's small libraries.
const NVIDIA: &str = "nvidia";

/// The layer of what is small and not NVIDIA's.
const REST: &str = "python";

impl Layer<'_> {
    /// The layer whose libraries this one may hold copies of: torchvision brings a CUDA runtime of its own. Only the
    /// small rest waits for another layer; the big ones bring no such copies, and waiting would cost time.
    pub fn shares(&self) -> Option<&'static str> {
        (self.name == REST).then_some(NVIDIA)
    }
}

fn is_nvidia(wheel: &Wheel) -> bool {
    wheel.name.starts_with("nvidia-") || wheel.name.starts_with("cuda-")
}

/// Spreads wheels over layers: NVIDIA's libraries, which change least often, then Triton, the rest, and torch, whose
/// stage takes longest: BuildKit joins layers in their order, so what is ready early must not wait behind it. A package bigger than `own_above_mb` (megabytes of 10^6 bytes) has a layer of its own; the small ones share
/// `nvidia` and `python`.
pub fn layers(wheels: &[Wheel], own_above_mb: u64) -> Vec<Layer<'_>> {
    let mut groups: BTreeMap<(u8, &str), Vec<&Wheel>> = BTreeMap::new();
    for wheel in wheels {
        groups.entry(group(wheel, own_above_mb)).or_default().push(wheel);
    }
    groups.into_iter().map(|((_, name), wheels)| Layer { name: name.to_owned(), wheels }).collect()
}

/// Rank and name of a wheel's layer.
fn group(wheel: &Wheel, own_above_mb: u64) -> (u8, &str) {
    let name = wheel.name.as_str();
    let own = wheel.bytes > own_above_mb * 1_000_000;
    match (own, is_nvidia(wheel), name) {
        (true, true, _) => (0, name),
        (false, true, _) => (1, NVIDIA),
        (true, false, "torch") => (4, name),
        (true, false, _) => (2, name),
        (false, false, _) => (3, REST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(name: &str, mb: u64) -> Wheel {
        Wheel {
            name: name.to_owned(),
            version: "1".to_owned(),
            file: format!("{name}-1-py3-none-any.whl"),
            bytes: mb * 1_000_000,
            sha256: "0".to_owned(),
        }
    }

    #[test]
    fn big_wheels_are_alone_and_what_changes_least_comes_first() {
        let wheels = [
            wheel("cuda-toolkit", 1),
            wheel("numpy", 15),
            wheel("nvidia-cublas", 404),
            wheel("nvidia-nvtx", 1),
            wheel("torch", 539),
            wheel("torchvision", 7),
            wheel("triton", 285),
        ];
        let found = layers(&wheels, 100);
        let names = |layer: &Layer| layer.wheels.iter().map(|w| w.name.clone()).collect::<Vec<_>>().join("+");
        let shown: Vec<_> = found.iter().map(|layer| (layer.name.as_str(), names(layer))).collect();
        let expected = [
            ("nvidia-cublas", "nvidia-cublas"),
            ("nvidia", "cuda-toolkit+nvidia-nvtx"),
            ("triton", "triton"),
            ("python", "numpy+torchvision"),
            ("torch", "torch"),
        ];
        assert_eq!(shown, expected.map(|(a, b)| (a, b.to_owned())));
    }
}
