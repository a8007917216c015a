"""The words that a setting may be, with trl's names where it has one. Imports nothing."""

from typing import Literal

CurriculumKind = Literal["season", "staged", "ladder", "staged+ladder"]
StageSwitch = Literal["plateau", "round", "season"]
Resampling = Literal["none", "history", "dynamic"]
ScaleRewards = Literal["group", "batch", "none"]
# Never "sapo": trl and verl call another loss so (Soft Adaptive Policy Optimization).
LossType = Literal["grpo", "bnpo", "dapo", "dr_grpo"]
ImportanceSamplingLevel = Literal["token", "sequence"]

Tracker = Literal["none", "tensorboard", "wandb", "trackio"]
Importance = Literal["own", "sender", "none"]
SequenceImportance = Literal["truncate", "mask"]
ExternalPool = Literal["uniform", "informative", "by-node", "by-task", "fresh"]
ExternalShaping = Literal["none", "luffy"]

Start = Literal["auto", "resume", "fresh"]
"""Where a run begins: at a checkpoint if there is one, only at one, or anew."""

Precision = Literal["auto", "fp32", "bf16", "fp16"]
"""What the model multiplies in; its weights are float32 in any case."""

OptimizerKind = Literal["adamw", "adamw_8bit"]
"""Both are AdamW without weight decay; they differ in what their states take."""
