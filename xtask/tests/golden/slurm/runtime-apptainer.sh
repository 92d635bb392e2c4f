#!/bin/bash
# runtime of release 2.15: serving and inference: PyTorch and nothing else.
# Printed by `cargo xtask slurm`; start it with `sbatch THIS_FILE` from the work folder.
# The image has no registry before its name: give one that the nodes can reach with --registry.
#SBATCH --job-name=pytorch-cuda-runtime
#SBATCH --output=%x-%j.log
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
#SBATCH --partition=gpu
set -euo pipefail

# Where the ranks of a distributed training meet. torchrun reads the variables with PET_, so that `torchrun train.py` is the
# same on one node and on many.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export PET_NNODES=$SLURM_NNODES PET_NPROC_PER_NODE=gpu PET_RDZV_ID=$SLURM_JOB_ID
export PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=$MASTER_ADDR:$MASTER_PORT
export HF_HOME=/workspace/models/huggingface
export TORCH_HOME=/workspace/models/torch

binds=("$PWD:/workspace")
if [[ -n ${DATASETS:-} ]]; then binds+=("$DATASETS:/datasets:ro"); fi
mounts=$(IFS=, && echo "${binds[*]}")

# The entry point is named, because neither runtime starts it by itself.
srun apptainer exec --nv --bind "$mounts" --pwd /workspace \
    docker://pytorch-cuda:2.15.0-cuda13.2-cudnn9-runtime \
    /usr/local/bin/entrypoint torchrun 'it'\''s $x.py'
