"""False claims and the questions needed for a claim, in simulated seasons."""
