"""Images: padding, resizing, and pixels moved between space and channels."""
