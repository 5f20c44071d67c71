"""The programs and listings of the design documents, each as a test; `README.md` lists them."""
