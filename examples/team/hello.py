"""Says what the team's image brings together."""

import einops
import torch

images = einops.rearrange(torch.arange(12.0), "(a b) -> b a", a=3)
print(f"einops {einops.__version__}, torch {torch.__version__}: {tuple(images.shape)}")
