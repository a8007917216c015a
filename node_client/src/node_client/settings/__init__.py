"""What a run is asked to do: options, environment, the trainer's configuration. No torch."""
