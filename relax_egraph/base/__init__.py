"""The ground floor: files, processes, and the arguments of public functions.  It knows no IR."""
