"""Where models come from: a folder, the Hugging Face Hub, or the demo bases of the client."""
