# needs: torch
"""Train a network to solve inverse kinematics, with a loss that goes through FK.

On an NVIDIA GPU poses and their gradients are computed there, nothing is copied: it
needs `pip install 'armillary[gpu,torch]'` and a driver. Without a GPU the same code
runs on the CPU.

    python train_on_gpu.py [STEPS]
"""

from __future__ import annotations

import sys

import torch

import armillary as arm

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
BATCH = 256
PLACE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

torch.manual_seed(0)
cell = arm.example("irb2400")
fk = cell.fk("tool0").torch()
lower, upper = (torch.tensor(each, device=PLACE) for each in cell.limits)
# Around the middle of each joint's range there is one answer to learn.
middle, reach = (lower + upper) / 2, (upper - lower) / 8
network = torch.nn.Sequential(
    torch.nn.Linear(12, 128), torch.nn.Tanh(), torch.nn.Linear(128, 6)
).to(PLACE, torch.float64)
steps = torch.optim.Adam(network.parameters(), lr=3e-3)
losses: list[float] = []
for _ in range(STEPS):
    q = middle + reach * (2 * torch.rand(BATCH, 6, device=PLACE) - 1)
    target = fk(q)[:, :3].flatten(1)
    found = fk(middle + reach * network(target))[:, :3].flatten(1)
    loss = ((found - target) ** 2).sum(1).mean()
    steps.zero_grad()
    loss.backward()
    steps.step()
    losses.append(float(loss.detach()))
print(f"on {PLACE}: loss {losses[0]:.3g} at first, {losses[-1]:.3g} at last")
assert losses[-1] < 0.2 * losses[0]
