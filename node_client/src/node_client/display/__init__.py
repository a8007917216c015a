"""What a person sees in the terminal. Pure: views in, text out."""
