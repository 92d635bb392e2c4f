//! The verdicts: stable ids in the order of cause and effect. What stands before another explains it.

use crate::problem::Exit;
use serde::Serialize;
use std::fmt;

macro_rules! verdicts {
    ($($name:ident $id:literal $exit:literal $meaning:literal,)*) => {
        /// What is the matter. The ids are listed in the README and never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        pub enum Verdict {
            $(#[doc = $meaning] #[serde(rename = $id)] $name,)*
        }

        impl Verdict {
            /// Every verdict, causes before effects.
            #[cfg(test)]
            pub const ALL: &[Verdict] = &[$(Verdict::$name,)*];

            /// The id as it is printed and documented.
            pub fn as_str(self) -> &'static str {
                match self { $(Verdict::$name => $id,)* }
            }

            /// The code that `doctor` ends with.
            pub fn exit(self) -> u8 {
                match self { $(Verdict::$name => $exit,)* }
            }

            /// What it means, in a line.
            #[cfg(test)]
            pub fn meaning(self) -> &'static str {
                match self { $(Verdict::$name => $meaning,)* }
            }
        }
    };
}

verdicts! {
    DriverMissing "DRIVER_MISSING" 1 "no NVIDIA GPU, or its driver is not installed, not loaded, or finds no device",
    DriverUpgradedNeedsReboot "DRIVER_UPGRADED_NEEDS_REBOOT" 1 "the driver's libraries and the running kernel module have different versions",
    UvmMissing "UVM_MISSING" 1 "the device `/dev/nvidia-uvm`, without which CUDA cannot start, is missing",
    MigWithoutInstance "MIG_WITHOUT_INSTANCE" 1 "MIG is on, but the GPU has no instance",
    EngineMissing "ENGINE_MISSING" 3 "no engine is installed, or none answers",
    EngineNoPermission "ENGINE_NO_PERMISSION" 3 "an engine runs, but this user may not use it",
    DockerDesktopNoGpu "DOCKER_DESKTOP_NO_GPU" 1 "Docker Desktop answers; its virtual machine has no GPU",
    DockerFromSnap "DOCKER_FROM_SNAP" 1 "docker from snap answers; it does not see the host's toolkit and configuration",
    ToolkitMissing "TOOLKIT_MISSING" 1 "the NVIDIA Container Toolkit is not installed",
    ToolkitNotConfigured "TOOLKIT_NOT_CONFIGURED" 1 "the toolkit is installed, but the engine is not configured to use it",
    CdiSpecMissing "CDI_SPEC_MISSING" 1 "the engine attaches GPUs by CDI, but no specification describes them",
    CdiSpecUnreadable "CDI_SPEC_UNREADABLE" 1 "a CDI specification cannot be read",
    CdiSpecStale "CDI_SPEC_STALE" 1 "a CDI specification was made for another driver than the running one",
    ForwardCompatNotOnGeforce "FORWARD_COMPAT_NOT_ON_GEFORCE" 1 "the image needs forward compatibility, which this card does not support",
    DriverBelowImageRequirement "DRIVER_BELOW_IMAGE_REQUIREMENT" 1 "the image needs a newer driver than the host has",
    GpuTooOldForImage "GPU_TOO_OLD_FOR_IMAGE" 1 "the GPU is older than every architecture the image is compiled for",
    GpuTooNewForImage "GPU_TOO_NEW_FOR_IMAGE" 1 "the GPU is newer than every architecture the image is compiled for",
    CompatLibcudaShadowsDriver "COMPAT_LIBCUDA_SHADOWS_DRIVER" 1 "an older libcuda is found before the driver's own",
    CapabilityComputeMissing "CAPABILITY_COMPUTE_MISSING" 1 "the driver capability `compute` was not requested, so libcuda is not in the container",
    GpuLostCgroup "GPU_LOST_CGROUP" 1 "the container lost access to its GPU: systemd reloaded its cgroup",
    ShmSmall "SHM_SMALL" 1 "`/dev/shm` is under 1 GB: DataLoader workers and NCCL run out of it",
    DiskLow "DISK_LOW" 1 "not enough disk space for the image",
    Ok "OK" 0 "everything is in order",
}

impl Verdict {
    /// The exit of the command contract; none where all is well.
    pub fn failure(self) -> Option<Exit> {
        match self.exit() {
            0 => None,
            3 => Some(Exit::Unusable),
            _ => Some(Exit::Failed),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_table_of_verdicts() {
        let row = |it: &Verdict| format!("| `{it}` | {} | {} |\n", it.exit(), it.meaning());
        let table: String = Verdict::ALL.iter().map(row).collect();
        let readme = include_str!("../../../README.md");
        assert!(readme.contains(&table), "the README's table is not this:\n{table}");
    }
}
