"""One reader per file format: plain Python, streaming, no TensorFlow."""
