"""Every picture that the package draws, as matplotlib figures."""
