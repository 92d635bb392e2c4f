//! Which wheel goes into which layer.

use crate::catalog::Layers as Sizes;
use crate::lock::Wheel;

/// Wheels that share a layer, and thereby a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer<'a> {
    /// The stage's name: the package's own, or the group's.
    pub name: String,
    /// Its wheels, in the lock's order.
    pub wheels: Vec<&'a Wheel>,
}

/// How the layers that NVIDIA's libraries share are named, with a number behind it.
const NVIDIA: &str = "nvidia";

/// The layer of what is small and not NVIDIA's.
const REST: &str = "python";

const MEGA: u64 = 1_000_000;

impl Layer<'_> {
    /// Whether it may hold copies of the libraries that NVIDIA's shared layers have: torchvision brings a CUDA runtime of
    /// its own. Only the small rest waits for other layers; the big ones bring no such copies, and waiting would cost time.
    pub fn shares(&self) -> bool {
        self.name == REST
    }

    /// Whether it is a shared layer of NVIDIA's.
    pub fn is_shared(&self) -> bool {
        self.name
            .strip_prefix(NVIDIA)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|it| it.parse::<usize>().is_ok())
    }
}

fn is_nvidia(wheel: &Wheel) -> bool {
    wheel.name.starts_with("nvidia-") || wheel.name.starts_with("cuda-")
}

/// Spreads wheels over layers: NVIDIA's libraries, which change least often, then Triton, the rest, and torch, whose
/// stage takes longest: BuildKit joins layers in their order, so what is ready early must not wait behind it.
///
/// What is small and not NVIDIA's shares one layer. NVIDIA's small ones share some, the biggest first, each in the first
/// that has room: layers of a few hundred megabytes, and not more of them than a puller likes.
pub fn layers<'w>(wheels: &'w [Wheel], sizes: &Sizes) -> Vec<Layer<'w>> {
    let (mut nvidia, others): (Vec<&Wheel>, Vec<&Wheel>) = wheels.iter().partition(|wheel| is_nvidia(wheel));
    nvidia.sort_by_key(|wheel| (std::cmp::Reverse(wheel.bytes), &wheel.name));
    let (alone, shared): (Vec<_>, Vec<_>) =
        nvidia.into_iter().partition(|wheel| wheel.bytes > sizes.nvidia_own_above_mb * MEGA);
    let (own, rest): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|wheel| wheel.bytes > sizes.own_above_mb * MEGA);
    let (torch, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|wheel| wheel.name == "torch");
    let named = |wheel: &'_ Wheel| wheel.name.clone();
    let mut layers: Vec<Layer> =
        alone.into_iter().map(|wheel| Layer { name: named(wheel), wheels: vec![wheel] }).collect();
    layers.extend(packed(shared, sizes.nvidia_shared_mb * MEGA));
    layers.extend(own.into_iter().map(|wheel| Layer { name: named(wheel), wheels: vec![wheel] }));
    layers.push(Layer { name: REST.to_owned(), wheels: rest });
    layers.extend(torch.into_iter().map(|wheel| Layer { name: named(wheel), wheels: vec![wheel] }));
    layers.retain(|layer| !layer.wheels.is_empty());
    layers
}

/// The layers that weigh more than they should, with their megabytes and the wheel that weighs most in each.
pub fn above_budget<'w>(wheels: &'w [Wheel], sizes: &Sizes) -> Vec<(String, u64, &'w Wheel)> {
    let weighed = |layer: Layer<'w>| {
        let bytes: u64 = layer.wheels.iter().map(|wheel| wheel.bytes).sum();
        let heaviest = layer.wheels.into_iter().max_by_key(|wheel| wheel.bytes)?;
        (bytes > sizes.budget_mb * MEGA).then_some((layer.name, bytes / MEGA, heaviest))
    };
    layers(wheels, sizes).into_iter().filter_map(weighed).collect()
}

/// Puts each wheel into the first layer that has room for it.
fn packed(wheels: Vec<&Wheel>, room: u64) -> impl Iterator<Item = Layer<'_>> {
    let mut bins: Vec<(u64, Vec<&Wheel>)> = Vec::new();
    for wheel in wheels {
        match bins.iter_mut().find(|(bytes, _)| bytes + wheel.bytes <= room) {
            Some((bytes, wheels)) => {
                *bytes += wheel.bytes;
                wheels.push(wheel);
            }
            None => bins.push((wheel.bytes, vec![wheel])),
        }
    }
    bins.into_iter().enumerate().map(|(i, (_, mut wheels))| {
        wheels.sort_by_key(|wheel| &wheel.name);
        Layer { name: format!("{NVIDIA}-{}", i + 1), wheels }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Compression;

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
            wheel("nvidia-cufft", 218),
            wheel("nvidia-cusolver", 228),
            wheel("nvidia-nccl", 216),
            wheel("nvidia-nvtx", 1),
            wheel("torch", 539),
            wheel("torchvision", 7),
            wheel("triton", 285),
        ];
        let sizes = Sizes {
            own_above_mb: 100,
            nvidia_own_above_mb: 225,
            nvidia_shared_mb: 450,
            budget_mb: 500,
            compression: Compression::Zstd,
            level: 1,
        };
        let found = layers(&wheels, &sizes);
        let names = |layer: &Layer| layer.wheels.iter().map(|w| w.name.clone()).collect::<Vec<_>>().join("+");
        let shown: Vec<_> = found.iter().map(|layer| (layer.name.as_str(), names(layer))).collect();
        let expected = [
            ("nvidia-cublas", "nvidia-cublas"),
            ("nvidia-cusolver", "nvidia-cusolver"),
            ("nvidia-1", "cuda-toolkit+nvidia-cufft+nvidia-nccl+nvidia-nvtx"),
            ("triton", "triton"),
            ("python", "numpy+torchvision"),
            ("torch", "torch"),
        ];
        assert_eq!(shown, expected.map(|(a, b)| (a, b.to_owned())));
        let heavy = above_budget(&wheels, &sizes);
        let heavy: Vec<_> = heavy.iter().map(|it| (it.0.as_str(), it.1, it.2.name.as_str())).collect();
        assert_eq!(heavy, [("torch", 539, "torch")]);
        let shared: Vec<_> = found.iter().filter(|it| it.is_shared()).map(|it| it.name.as_str()).collect();
        assert_eq!(shared, ["nvidia-1"]);
    }
}
