"""The headings under which settings are listed in --help, `config show` and `swarm-node.toml`.

Every setting must be listed here under one heading. A setting that is missing gets no option.
"""

from collections.abc import Mapping
from functools import cache

from node_client.settings.fields import Setting, all_settings

PANELS: Mapping[str, str] = {
    "Run": "model arm token_file token share_hardware state_dir config steps device",
    "Limits": "hours pause_on_battery gpu_fraction step_seconds",
    "Service": "auto_update wait_when_refused",
    "Output": "plain json report_to project run_name",
    "Checkpoints and evaluation": """
        save_steps save_total_limit eval_tasks eval_every eval_samples eval_temperature
        push_to_hub hub_private_repo hub_interval
    """,
    "Training: questions": """
        datasets curriculum stage_switch stage_rounds resampling history_epoch
        dynamic_batches
    """,
    "Training: rollouts (none: the season's value)": """
        num_generations mix local external batch max_completion_length temperature top_p
    """,
    "Training: rollouts of other nodes": """
        external_candidates external_pool external_sampling keep_uninformative importance
        sequence_importance importance_cap external_shaping shared_rollouts sharing
        share_logprobs
    """,
    "Training: reward and loss (names as in trl)": """
        reward scale_rewards loss_type policy_loss importance_sampling_level epsilon
        epsilon_high delta beta mask_truncated_completions num_iterations
    """,
    "Training: optimizer and memory": """
        learning_rate optimizer max_grad_norm micro_batch_tokens precision
        gradient_checkpointing lora_r lora_alpha lora_target_modules
    """,
}


@cache
def panels() -> dict[str, tuple[Setting, ...]]:
    """Return the settings under each heading."""
    settings = all_settings()
    return {
        heading: tuple(settings[name] for name in names.split())
        for heading, names in PANELS.items()
    }


def panel_of(setting: Setting) -> str:
    """Return the heading under which a setting is listed."""
    return next(heading for heading, placed in panels().items() if setting in placed)
