"""The site's cost of relaying rollouts, beside a bare relay."""
