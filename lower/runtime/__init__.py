"""What runs beside kernels: the driver of native programs, and the pools of threads."""
