"""What passes ask of a module: ranges, lifetimes, plans of memory.  Nothing here changes one."""
