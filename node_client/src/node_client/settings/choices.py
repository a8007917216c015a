"""The values that settings with a fixed choice allow. They are trl's if trl has the setting."""

from typing import Literal

CurriculumKind = Literal["season", "staged", "ladder", "staged+ladder"]
StageSwitch = Literal["plateau", "round", "season"]
Resampling = Literal["none", "history", "dynamic"]
ScaleRewards = Literal["group", "batch", "none"]
# Never "sapo", the name of another loss in trl and verl (Soft Adaptive Policy Optimization).
LossType = Literal["grpo", "bnpo", "dapo", "dr_grpo"]
ImportanceSamplingLevel = Literal["token", "sequence"]

Tracker = Literal["none", "tensorboard", "wandb", "trackio"]
Importance = Literal["own", "sender", "none"]
SequenceImportance = Literal["truncate", "mask"]
ExternalPool = Literal["uniform", "informative", "by-node", "by-task", "fresh"]
ExternalShaping = Literal["none", "luffy"]

Start = Literal["auto", "resume", "fresh"]
"""Start of a run: from a checkpoint if there is one, only from one, or at step 1."""

Precision = Literal["auto", "fp32", "bf16", "fp16"]
"""Data type of matrix products; weights are float32 in any case."""

OptimizerKind = Literal["adamw", "adamw_8bit"]
"""Both are AdamW without weight decay; they differ in the memory of their states."""
