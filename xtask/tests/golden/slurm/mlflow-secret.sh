#!/bin/bash
# mlflow of release 2.15: MLflow tracking server with PostgreSQL, MySQL and S3 back ends, clients, JupyterLab.
# Printed by `cargo xtask slurm`; start it with `sbatch THIS_FILE` from the work folder.
# The image has no registry before its name: give one that the nodes can reach with --registry.
#SBATCH --job-name=pytorch-cuda-mlflow
#SBATCH --output=%x-%j.log
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
set -euo pipefail

# Where the ranks of a distributed training meet. torchrun reads the variables with PET_, so that `torchrun train.py` is the
# same on one node and on many.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
export PET_NNODES=$SLURM_NNODES PET_NPROC_PER_NODE=gpu PET_RDZV_ID=$SLURM_JOB_ID
export PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=$MASTER_ADDR:$MASTER_PORT
export HF_HOME=/workspace/models/huggingface
export JUPYTER_IP=127.0.0.1
export JUPYTER_PORT=8888
export JUPYTER_TOKEN_FILE=/run/secrets/jupyter-token
export MLFLOW_HOST=127.0.0.1
export MLFLOW_PORT=5000
export SERVICES=jupyter
export TORCH_HOME=/workspace/models/torch

binds=("$PWD:/workspace")
if [[ -n ${DATASETS:-} ]]; then binds+=("$DATASETS:/datasets:ro"); fi
binds+=('/keys/to ken':/run/secrets/jupyter-token:ro)
mounts=$(IFS=, && echo "${binds[*]}")

# On the node's loopback: from your machine, once the job runs,
echo "mlflow: ssh -J LOGIN-NODE -L 5000:127.0.0.1:5000 $SLURMD_NODENAME"
echo "jupyter: ssh -J LOGIN-NODE -L 8888:127.0.0.1:8888 $SLURMD_NODENAME"

# The entry point is named, because neither runtime starts it by itself.
srun --container-image=pytorch-cuda:2.15.0-cuda13.2-cudnn9-mlflow \
    --container-mounts="$mounts" --container-workdir=/workspace --no-container-remap-root \
    /usr/local/bin/entrypoint /opt/services/mlflow
