"""The backend of ``torch.compile``, which torch finds by its entry point."""
