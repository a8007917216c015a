"""Work on rollouts outside of the pool: archiving, checks and credits."""
