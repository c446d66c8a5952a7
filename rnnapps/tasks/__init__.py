"""One module per task: from raw example to served answer."""
