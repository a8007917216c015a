"""What a client keeps on disk: state folder, checkpoints, commitments. Knows no model and no
network.
"""
