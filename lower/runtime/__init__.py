"""The runtime beside kernels: the driver of native programs, thread pools and workspaces."""
