"""The network of a command that may reach listed hosts and nothing else."""
