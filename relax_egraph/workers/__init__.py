"""Worker processes that run calls within limits of time and memory."""
